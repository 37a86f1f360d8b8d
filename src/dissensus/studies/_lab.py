"""The laboratory with the finished runs of a store beside it."""

import os
from pathlib import Path
from typing import Any

from dissensus import report, runs
from dissensus.errors import InputError
from dissensus.runs import Record


def lab(path: str | os.PathLike[str], store: str | os.PathLike[str] | None = None) -> Path:
    """Write the laboratory, one HTML file in which opinions on a graph are simulated in the browser.

    Args:
        path: of the file; its folder is made if needed.
        store: file of finished runs, shown in a section of their own: test results beside the paper's and over depth,
            training curves, and the settings of two runs side by side.

    Returns:
        The path.
    """
    if Path(path).is_dir():
        raise InputError(f"{path} is a directory: give the name of a file, such as {Path(path) / 'lab.html'}")
    if store is None:
        return report.lab(Path(path))
    with runs.Store(store, create=False) as opened:
        # A study may keep runs of another kind beside these, such as energies over depth.
        shown = [_run(record) for record in opened.query() if record.result is None or "test" in record.result]
    return report.lab(Path(path), shown)


def _run(record: Record) -> dict[str, Any]:
    """What :func:`dissensus.report.lab` takes."""
    result = record.result or {}
    row = runs.flat(record).items()
    settings = {name.removeprefix("config."): value for name, value in row if name.startswith("config.")}
    dataset = result.get("dataset", settings.get("data.name", "?"))
    model = result.get("model", settings.get("model.name", "?"))
    metric = result.get("metric", "accuracy")
    place = f"split {settings.get('data.split', '?')} seed {settings.get('train.seed', '?')}"
    return {
        "dataset": dataset,
        "model": model,
        "label": f"{place} ({record.key[:8]})",
        "metric": metric,
        "test": result.get("test"),
        "paper": _paper(model, dataset) if metric == "accuracy" else None,
        "depth": _depth(result.get("options", {})),
        "settings": settings,
        "history": result.get("history", {}),
    }


def _paper(model: str, dataset: str) -> float | None:
    """The accuracy that the paper prints."""
    from dissensus.studies import STUDIES

    tables = (STUDIES[name].printed for name in ("homophilic", "heterophilic", "large"))
    values = (table.get({"model": model, "dataset": dataset}) for table in tables)
    return next((value for value in values if value is not None), None)


def _depth(options: dict[str, Any]) -> float | None:
    """Layers, or steps of a fixed size, or the end time."""
    if "num_layers" in options:
        return float(options["num_layers"])
    time, step = options.get("time"), options.get("step_size")
    return time / step if time and step else time
