"""Write the laboratory, one HTML file, and open it: opinions on a graph of your choice, simulated in the browser.

Attention, damping, self-reinforcement, input, coupling and depth are sliders; beside the network are opinions against
time, the bifurcation diagram, and Dirichlet energy and effective rank of all models. The file needs no network and no
server; its address has the whole state, so that a figure can be shared. With --store also finished runs: results
beside the paper's and over depth, training curves, and two runs' settings side by side.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli._common import add_json, print_json
from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.runs import Record


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("-o", "--output", default="lab.html", metavar="FILE", help="the page")
    parser.add_argument("--store", metavar="FILE", help="show the finished runs of this store as well")
    parser.add_argument("--no-open", action="store_true", help="write the page without opening it in a browser")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    from dissensus import report

    path = Path(args.output)
    if path.is_dir():
        raise InputError(f"-o {path}: this is a directory; give the name of a file, such as {path / 'lab.html'}")
    page = report.lab(path, None if args.store is None else _stored(args.store))
    opened = not args.no_open and _open(page)
    if args.json:
        print_json({"page": str(page), "opened": opened})
    else:
        print(f"The laboratory: {page}" + ("" if opened else "\nOpen it in a browser."))
    return 0


def _open(page: Path) -> bool:
    import webbrowser

    try:
        return webbrowser.open(page.resolve().as_uri())
    except webbrowser.Error as error:
        print(f"no browser could be started ({error})", file=sys.stderr)
        return False


def _stored(store: str) -> list[dict[str, Any]]:
    from dissensus import runs

    with runs.Store(store, create=False) as opened:
        # A study may keep runs of another kind beside these, such as energies over depth.
        return [_run(record) for record in opened.query() if record.result is None or "test" in record.result]


def _run(record: "Record") -> dict[str, Any]:
    from dissensus.runs import flat

    result = record.result or {}
    settings = {
        name.removeprefix("config."): value for name, value in flat(record).items() if name.startswith("config.")
    }
    dataset = str(result.get("dataset") or settings.get("data.name") or "?")
    model = str(result.get("model") or settings.get("model.name") or "?")
    metric = str(result.get("metric") or "accuracy")
    seed = f"split {settings.get('data.split', '?')} seed {settings.get('train.seed', '?')}"
    return {
        "dataset": dataset,
        "model": model,
        "label": f"{seed} ({record.key[:8]})",
        "metric": metric,
        "test": _number(result.get("test")),
        "paper": _paper(model, dataset) if metric == "accuracy" else None,
        "depth": _depth(result.get("options") or {}),
        "settings": settings,
        "history": result.get("history") or {},
    }


def _paper(model: str, dataset: str) -> float | None:
    """The accuracy that the paper prints."""
    from dissensus.studies import STUDIES

    tables = (STUDIES[name].printed for name in ("homophilic", "heterophilic", "large"))
    values = (table.get({"model": model, "dataset": dataset}) for table in tables)
    return next((value for value in values if value is not None), None)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _depth(options: dict[str, Any]) -> float | None:
    """Layers, or steps of a fixed size, or the end time."""
    if "num_layers" in options:
        return _number(options["num_layers"])
    time, step = _number(options.get("time")), _number(options.get("step_size"))
    return time / step if time and step else time
