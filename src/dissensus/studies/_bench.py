"""Speed and memory of the package, by the modules in ``benchmarks/`` of a source checkout."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dissensus.errors import InputError, one_of
from dissensus.report import Page, Table
from dissensus.runtime import scope

# benchmark, also a module in benchmarks/ -> what it measures
BENCHMARKS = {
    "training": "epochs of BIMP with the paper's settings, beside a plain version",
    "runtime": "epochs of five continuous models, each beside its plain version",
    "floor": "a field evaluation against its bare kernels",
    "scaling": "time and memory as graphs and depth grow",
    "arxiv": "a training step on a graph of arXiv's size",
    "clusters": "training on clusters of nodes beside full batch, on a graph of arXiv's size",
    "infinite": "BIMP's equilibrium beside T = 12 and 128 steps",
    "opinions": "ensembles of opinions beside scipy in a loop, and large networks",
}


@dataclass(frozen=True)
class Benchmarks:
    """What :func:`bench` measured: the ``results`` of each benchmark, and the ``facts`` of the machine."""

    results: list[dict[str, Any]]
    facts: dict[str, str]
    quick: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"provenance": self.facts, "quick": self.quick, "results": self.results}

    def show(self) -> None:
        """Print every table, and the processor they were measured on."""
        for result in self.results:
            rest: dict[str, Any] = {}
            print(f"\n{result['benchmark']}: {result['about']}")
            for key, value in result.items():
                if isinstance(value, list):
                    print()
                    _rows(value, key).show()
                elif isinstance(value, dict):
                    rest |= {f"{key}, {name}": inner for name, inner in value.items()}
                elif key not in ("benchmark", "about", "note"):
                    rest[key] = value
            if rest:
                print()
                Table(["measured", "value"], [[_words(key), _rounded(value)] for key, value in rest.items()]).show()
            print(f"\n{result['note']}")
        facts = self.facts
        print(f"\n{facts['cpu']}, {facts['threads']} threads, torch {facts['torch']}, {facts['date']}")


def bench(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    threads: int | None = None,
    output: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Benchmarks:
    """Run benchmarks one after the other; all compare with plain PyG + torchdiffeq in the same process.

    Args:
        names: which ones; all if none is named.
        quick: tiny graphs and few epochs, to see that they run.
        threads: of torch; None leaves them as they are.
        output: JSON file, written after each benchmark so that an interruption loses at most one.
        progress: called with a line before each benchmark.
    """
    chosen = [one_of("benchmark", name, BENCHMARKS) for name in names] or list(BENCHMARKS)
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}: give at least 1, or none to leave them as they are")
    if output is not None and not Path(output).parent.is_dir():
        raise InputError(f"there is no folder {Path(output).parent}: create it first")
    folder = Path(__file__).parents[3] / "benchmarks"
    if not folder.is_dir():
        raise InputError("the benchmarks are not part of the installed package: run this in a checkout of the source")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

    import torch

    with scope(threads=threads):
        found = Benchmarks([], {**Page.provenance(), "threads": str(torch.get_num_threads())}, quick)
        for name in chosen:
            progress(f"{name}: {BENCHMARKS[name]} ...")
            found.results.append(import_module(name).run(quick=quick))
            if output is not None:
                Path(output).write_text(json.dumps(found.as_dict(), indent=1) + "\n", encoding="utf-8")
    return found


def _rows(rows: list[dict[str, Any]], title: str) -> Table:
    """A list of measurements, turned where they have more figures than would fit beside each other."""
    names = list(rows[0])
    cells = [[_rounded(row[name]) for name in names] for row in rows]
    caption = "" if title == "rows" else _words(title)
    if len(names) <= 9:
        return Table([_words(name) for name in names], cells, caption)
    columns = ["measured", *(str(index + 1) for index in range(len(rows)))]
    turned = [[_words(name), *values] for name, values in zip(names, zip(*cells, strict=True), strict=True)]
    return Table(columns, turned, caption)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _rounded(value: Any) -> Any:
    # As text, since one column may hold figures of very different sizes.
    return f"{value:.4g}" if isinstance(value, float) else str(value) if isinstance(value, int) else value
