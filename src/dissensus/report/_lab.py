"""The laboratory: opinions on a graph, simulated in the browser, and finished runs beside the paper."""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from dissensus.report._curves import Curves, Series
from dissensus.report._html import curves_html, prose, table_html
from dissensus.report._table import Cell, Table, Value
from dissensus.report._web import document, embedded, text_of

_SCRIPTS = ("solve", "graphs", "dynamics", "measures", "state", "network", "runs", "view", "start")
_INTRO = (
    "Agents on a graph form opinions. Below the critical attention u* they fade to a neutral consensus, as the "
    "features of a deep graph network do when it oversmooths; above it they commit, and may disagree. Drag the sliders "
    "and watch."
)


# A finished run: see :func:`lab`.
LabRun = Mapping[str, Any]


def lab(path: str | Path, runs: Sequence[LabRun] | None = None) -> Path:
    """Write the laboratory to ``path``, a self-contained HTML file, and return the path.

    Args:
        path: the file; its folder is created if missing.
        runs: finished runs, which get a section: test results beside the paper's and over depth, and training curves
            and settings of two runs side by side. None leaves the section out. A run is a mapping with ``dataset``,
            ``model``, ``label`` (distinguishes it from other runs of this dataset and model), ``metric``, ``test`` (its
            value on the test nodes, or None if the run failed), ``paper`` (the paper's value, or None), ``depth``
            (layers or steps, or None), ``settings`` (dotted names to values) and ``history`` (training curves by name,
            one value per epoch).
    """
    stored = "" if runs is None else _runs_section(runs)
    body = f"<header><h1>Opinion laboratory</h1>{prose(_INTRO)}</header>\n" + text_of("lab/lab.html").replace(
        '<div id="runs"></div>', stored
    )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    scripts = [f"lab/{name}.js" for name in _SCRIPTS]
    target.write_text(document("Opinion laboratory", body, scripts, ["lab/lab.css"]), encoding="utf-8")
    return target


def _runs_section(runs: Sequence[LabRun]) -> str:
    if not runs:
        return _section("<p>The store has no finished run yet. Train one with <code>--store</code>.</p>")
    charts = "".join(curves_html(curves, f"depth-{index}") for index, curves in enumerate(_depths(runs)))
    return _section(table_html(_accuracy(runs), "accuracy") + charts + text_of("lab/compare.html") + _data(runs))


def _section(content: str) -> str:
    return f'<section id="runs" aria-labelledby="runs-title"><h2 id="runs-title">Finished runs</h2>{content}</section>'


def _accuracy(runs: Sequence[LabRun]) -> Table:
    """Mean test results by dataset and model, beside the paper's."""
    groups: dict[tuple[str, str, str], list[LabRun]] = {}
    for run in runs:
        groups.setdefault((run["dataset"], run["model"], run["metric"]), []).append(run)
    rows: list[list[Cell]] = []
    for (dataset, model, metric), members in groups.items():
        scores = [run["test"] for run in members if run["test"] is not None and isfinite(run["test"])]
        paper = members[0]["paper"]
        depths = {run["depth"] for run in members if run["depth"] is not None}
        mean = Value.of(scores) if scores else None
        difference = None if mean is None or paper is None else mean.mean - paper
        rows.append([dataset, model, metric, mean, paper, difference, len(depths) or None, len(members) - len(scores)])
    columns = ["dataset", "model", "metric", "test", "paper", "difference", "depths", "failed"]
    note = (
        "Mean and standard deviation over the runs, whose number is in brackets. Runs of all depths and settings count."
    )
    return Table(columns, rows, "Test results against the paper", note, fixed=["difference"])


def _depths(runs: Sequence[LabRun]) -> list[Curves]:
    """Mean test results over depth, a chart for each dataset on which a model has runs of at least two depths."""
    found: dict[str, dict[str, dict[float, list[float]]]] = {}
    for run in runs:
        if run["depth"] and run["test"] is not None and isfinite(run["test"]):
            found.setdefault(run["dataset"], {}).setdefault(run["model"], {}).setdefault(run["depth"], []).append(
                run["test"]
            )
    charts = []
    for dataset, models in found.items():
        series = [
            Series(model, sorted(scores), [fmean(scores[depth]) for depth in sorted(scores)])
            for model, scores in models.items()
            if len(scores) > 1
        ]
        if series:
            charts.append(Curves(series, "depth", "test", f"Test results over depth: {dataset}", x_log=True))
    return charts


def _data(runs: Sequence[LabRun]) -> str:
    """The runs for the script: every setting as text, curves as numbers."""
    return embedded(
        "stored-runs",
        [
            {
                "name": f"{run['model']} on {run['dataset']} {run['label']}".strip(),
                "settings": {name: str(value) for name, value in run["settings"].items()},
                "history": {
                    name: [value if isfinite(value) else None for value in values]
                    for name, values in run["history"].items()
                },
            }
            for run in runs
        ],
    )
