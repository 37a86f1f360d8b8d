"""Measure speed and memory, as ratios in one run, against plain PyG + torchdiffeq; needs a source checkout."""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# benchmark, also a module in benchmarks/ -> what it measures
BENCHMARKS = {
    "training": "epochs of BIMP with the paper's settings, beside a plain version",
    "runtime": "epochs of five continuous models, each beside its plain version",
    "floor": "a field evaluation against its bare kernels",
    "scaling": "time and memory as graphs and depth grow",
    "arxiv": "a training step on a graph of arXiv's size",
    "clusters": "training on clusters of nodes beside full batch, on a graph of arXiv's size",
    "infinite": "BIMP's equilibrium beside T = 12 and 128 steps",
}


def configure(parser: argparse.ArgumentParser) -> None:
    listed = "; ".join(f"{name}: {text}" for name, text in BENCHMARKS.items())
    parser.add_argument(
        "benchmark", nargs="*", metavar="BENCHMARK", help=f"which ones, all if none is named ({listed})"
    )
    parser.add_argument("--quick", action="store_true", help="tiny graphs and few epochs: does it run?")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0 leaves them as they are")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON to this file too")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(args: argparse.Namespace) -> int:
    from dissensus.errors import InputError, one_of

    chosen = [one_of("benchmark", name, BENCHMARKS) for name in args.benchmark] or list(BENCHMARKS)
    if args.threads < 0:
        raise InputError(f"--threads is {args.threads}: give at least 1, or 0 to leave them as they are")
    if args.output and not Path(args.output).parent.is_dir():
        raise InputError(f"there is no folder {Path(args.output).parent}: make it first")
    folder = Path(__file__).parents[3] / "benchmarks"
    if not folder.is_dir():
        raise InputError("the benchmarks are not part of the installed package: run this in a checkout of the source")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

    import torch

    from dissensus.report import provenance

    if args.threads:
        torch.set_num_threads(args.threads)
    facts = {**provenance(), "threads": str(torch.get_num_threads())}
    results: list[dict[str, Any]] = []
    for name in chosen:
        print(f"{name}: {BENCHMARKS[name]} ...", file=sys.stderr, flush=True)
        results.append(import_module(name).run(quick=args.quick))
        report = {"provenance": facts, "quick": args.quick, "results": results}
        if args.output:  # after each, so that an interruption loses one at most
            Path(args.output).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if args.json:
        print(json.dumps(report))
    else:
        _show(results, facts)
    return 0


def _show(results: list[dict[str, Any]], facts: dict[str, str]) -> None:
    from dissensus.report import Table

    for result in results:
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
    print(f"\n{facts['cpu']}, {facts['threads']} threads, torch {facts['torch']}, {facts['date']}")


def _rows(rows: list[dict[str, Any]], title: str) -> Any:
    """A list of measurements, turned where they have more figures than would fit beside each other."""
    from dissensus.report import Table

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
