"""Measure oversmoothing over depth: energy, ranks, correlations, gradient and filter of a model on a dataset.

Without --load, an untrained model is made for every depth from the same seed, and its last hidden state is measured.
With --load, the hidden states of one saved model are read at the given depths, on a graph that is prepared as in its
training. Depth is the number of hidden layers of a discrete model, and the time of a continuous one (in Euler steps of
length 1, unless it was saved otherwise).
"""

import argparse
import json
import sys
import time
from copy import copy
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.catalogue import MODELS
from dissensus.errors import InputError, missing_extra, unknown

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from dissensus.data import Dataset
    from dissensus.measure import FilterResponse
    from dissensus.nn import Model
    from dissensus.report import Curves, Table
    from dissensus.train import Saved

Row = dict[str, float | None]

_DEPTHS = "1,2,4,8,16,32,64,128"
_DEFAULTS = {"model": "gcn", "hidden": 64, "seed": 1}
_DATASET = "cora"
_HEADINGS = {
    "depth": "depth",
    "dirichlet_energy": "energy",
    "relative_dirichlet_energy": "relative energy",
    "mad": "MAD",
    "effective_rank": "effective rank",
    "numerical_rank": "numerical rank",
    "rank_one_distance": "rank-one distance",
    "channel_correlation": "correlation",
    "gradient_norm": "gradient",
    "sharpening": "sharpening",
}
# file: title, label of the axis, columns, whether the axis is logarithmic
_CHARTS = {
    "energy": ("Dirichlet energy", "energy", ("dirichlet_energy", "relative_dirichlet_energy"), True),
    "rank": ("Ranks of the hidden state", "rank", ("effective_rank", "numerical_rank"), False),
    "similarity": ("Distances and correlation", "", ("mad", "rank_one_distance", "channel_correlation"), False),
    "gradient": ("Gradient of the loss at the input", "norm", ("gradient_norm",), True),
    "sharpening": ("Sharpening share of the response", "share", ("sharpening",), False),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    absent: Any = argparse.SUPPRESS  # so that a flag which --load makes meaningless is seen, and refused
    parser.add_argument(
        "--model",
        default=absent,
        metavar="NAME",
        help=f"untrained model, a name that 'dissensus models' lists (default: {_DEFAULTS['model']})",
    )
    parser.add_argument(
        "--dataset",
        default=absent,
        metavar="GRAPH",
        help=f"dataset by name, or file of a graph (default: {_DATASET}, or what the saved model was trained on)",
    )
    parser.add_argument(
        "--depths",
        default=absent,
        metavar="LIST",
        help=f"depths to measure at, comma-separated (default: {_DEPTHS}; all layers of a saved discrete model)",
    )
    parser.add_argument(
        "--load",
        default=absent,
        metavar="PATH",
        help="measure a saved model instead: the folder that 'train --save' wrote, or a file that 'model.save' wrote",
    )
    parser.add_argument(
        "--hidden",
        default=absent,
        type=int,
        metavar="N",
        help=f"hidden channels of the untrained model (default: {_DEFAULTS['hidden']})",
    )
    parser.add_argument(
        "--seed",
        default=absent,
        type=int,
        metavar="N",
        help=f"seed of the untrained model's weights (default: {_DEFAULTS['seed']})",
    )
    parser.add_argument(
        "--split",
        default=absent,
        type=int,
        metavar="N",
        help="split whose training nodes make the loss (default: the first, or that of the saved model on its graph)",
    )
    parser.add_argument(
        "-o", "--output", default=absent, metavar="DIR", help="write the table (CSV) and charts (PNG, SVG) there"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    given = vars(args)
    depths = _parse_depths(given["depths"]) if "depths" in given else None
    _check(given)
    started = time.perf_counter()
    model, saved = _load(Path(given["load"])) if "load" in given else (None, None)
    dataset, about = _dataset(given, saved)
    graph = dataset.split(about["split"]) if dataset.num_classes else dataset.graph
    if model is not None:
        # Classes of other names are numbered anew, and mean nothing to the model.
        labelled = saved is None or saved.classes == dataset.class_names
        answer, response = _saved(model, given["load"], depths, graph, labelled=labelled)
    else:
        settings = {key: given.get(key, default) for key, default in _DEFAULTS.items()}
        sizes = {"in_channels": graph.num_features, "out_channels": max(1, dataset.num_classes)}
        answer, response = _untrained(settings, depths or _parse_depths(_DEPTHS), graph, sizes)
    rows = answer["rows"]
    answer = {**about, **answer, "decay": _decay(rows)}
    table = _table(answer)
    if "output" in given:
        answer["files"] = [str(path) for path in _write(Path(given["output"]), table, _charts(answer, response))]
    answer["seconds"] = time.perf_counter() - started
    if args.json:
        from dissensus.runs._table import as_json

        print(json.dumps(as_json(answer)))
    else:
        table.show()
        for path in answer.get("files", []):
            print(f"wrote {path}", file=sys.stderr)
    return 0


def _parse_depths(text: str) -> list[int]:
    try:
        depths = [int(part) for part in text.split(",")]
    except ValueError:
        depths = []
    if not depths or depths != sorted(set(depths)) or depths[0] < 1:
        raise InputError(f"--depths is {text!r}; give increasing whole numbers from 1, such as 1,2,4,8")
    return depths


def _check(given: dict[str, Any]) -> None:
    """Refuse what cannot work before anything is loaded."""
    if "load" in given:
        for flag in _DEFAULTS:
            if flag in given:
                raise InputError(
                    f"--{flag} belongs to an untrained model, but --load brings its own; leave one of them out"
                )
    elif given.get("model", "gcn") not in MODELS:
        raise unknown("model", given["model"], MODELS)
    if given.get("hidden", 1) < 1:
        raise InputError(f"--hidden is {given['hidden']}; give at least 1")
    if "output" in given:
        if Path(given["output"]).is_file():
            raise InputError(f"-o {given['output']} is a file; name a directory")
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise missing_extra("matplotlib", "plot") from error


def _load(path: Path) -> "tuple[Model, Saved | None]":
    """A saved model, and what 'train --save' wrote beside it."""
    from dissensus import nn, train
    from dissensus.train._save import MODEL, is_saved

    if path.is_dir():
        saved = train.load_saved(path)
    elif path.name == MODEL and is_saved(path.parent):
        saved = train.load_saved(path.parent)
    else:
        return nn.load(path), None
    return saved.model, saved


def _dataset(given: dict[str, Any], saved: "Saved | None") -> "tuple[Dataset, dict[str, Any]]":
    """The dataset to measure on, prepared as the saved model was trained; its name, and the split."""
    from dissensus import data, train
    from dissensus.train._fit import load

    own = None if saved is None else saved.config.data
    if own is not None and "dataset" not in given:
        return load(own), {"dataset": own.name, "split": given.get("split", own.split)}
    name = given.get("dataset", _DATASET)
    dataset = data.load(name) if saved is None else train.prepare(saved, name)
    if saved is not None and train.order_unknown(saved, dataset):
        print(
            f"{name} is not the graph that the model is bound to, node by node: its nodes must be those of training, "
            "in their order there, or the measures mean nothing",
            file=sys.stderr,
        )
    split = dataset.default_splits[0]
    if own is not None and own.name in (name, str(Path(name).resolve())):
        split = own.split
    return dataset, {"dataset": name, "split": given.get("split", split)}


def _untrained(
    settings: dict[str, Any], depths: list[int], graph: "Data", sizes: dict[str, int]
) -> tuple[dict[str, Any], "FilterResponse"]:
    """One model for each depth: its last hidden state, the gradient that reaches its input, and its filter."""
    import torch

    from dissensus import measure, nn

    continuous = MODELS[settings["model"]].continuous
    rows: list[Row] = []
    for depth in depths:
        print(f"{settings['model']} at depth {depth}", file=sys.stderr)
        # The last layer of a discrete model gives the scores, so there is one more than hidden ones.
        options: dict[str, Any] = {"num_layers": depth + 1}
        if continuous:
            options = {"time": float(depth), "method": "euler", "step_size": 1.0}
        torch.manual_seed(settings["seed"])
        model = nn.create(settings["model"], hidden_channels=settings["hidden"], **sizes, **options)
        (state,) = measure.watch(model, graph, times=[depth]).states
        response = measure.filter_response(model, graph, bands=20 if depth == depths[-1] else 0, probes=2)
        measured = {"gradient_norm": _gradient_norm(model, graph), "sharpening": response.sharpening}
        rows.append({"depth": depth, **measure.summary(state, graph.edge_index), **measured})
    return {**settings, "continuous": continuous, "rows": rows}, response


def _saved(
    model: "Model", path: str, depths: list[int] | None, graph: "Data", *, labelled: bool
) -> tuple[dict[str, Any], "FilterResponse"]:
    """One model at every depth; gradient and filter are those of the whole."""
    from dissensus import measure

    continuous = "num_layers" not in model.config
    readable = _parse_depths(_DEPTHS) if continuous else _hidden_layers(model)
    if not readable:
        raise InputError(f"{path} holds a model of one layer, which has no hidden state to measure: load a deeper one")
    depths = depths or readable
    if not continuous and depths[-1] > readable[-1]:
        raise InputError(
            f"--depths reaches {depths[-1]}: {path} has {readable[-1]} hidden layers, so give at most that"
        )
    graph = copy(graph)
    graph.x = graph.x.to(next(model.parameters()).dtype)
    trace = measure.watch(model, graph, times=depths)
    rows = [
        {"depth": depth, **measure.summary(state, graph.edge_index)}
        for depth, state in zip(depths, trace.states, strict=True)
    ]
    response = measure.filter_response(model, graph, probes=2)
    gradient = _gradient_norm(model, graph) if labelled else None
    whole = {"gradient_norm": gradient, "sharpening": response.sharpening}
    return {"model": type(model).__name__, "load": path, "continuous": continuous, **whole, "rows": rows}, response


def _hidden_layers(model: "Model") -> list[int]:
    # Hundreds of states as wide as the features would fill the memory: of such a model only a few are read.
    return [int(layer) for layer in model.milestones if layer] or list(range(1, model.config["num_layers"]))


def _gradient_norm(model: "Model", graph: "Data") -> float | None:
    from dissensus import measure

    # Another graph may have more classes than the model knows.
    if not bool((graph.y >= 0).any()) or int(graph.y.max()) >= model.config["out_channels"]:
        return None
    return measure.gradient_norms(model, graph, of="states")["input"]


def _decay(rows: list[Row]) -> dict[str, dict[str, float]]:
    """The fitted decay of both energies over depth."""
    import numpy as np

    from dissensus import measure

    depths = np.array(_numbers(rows, "depth"))
    energy, relative = (np.array(_numbers(rows, name)) for name in _CHARTS["energy"][2])
    # Differences below the rounding of the float32 states: eps^2 of their squared norm, which is energy / relative.
    floor = np.finfo(np.float32).eps ** 2
    norms = np.divide(energy, relative, where=relative > 0, out=np.zeros_like(energy))
    return {
        "dirichlet_energy": measure.decay_rate(energy, depths, floor=floor * norms)._asdict(),
        "relative_dirichlet_energy": measure.decay_rate(relative, depths, floor=floor)._asdict(),
    }


def _table(answer: dict[str, Any]) -> "Table":
    from dissensus.report import Table

    rows: list[Row] = answer["rows"]
    columns = [name for name in _HEADINGS if name in rows[0]]
    notes = [
        f"decay rate of the {_HEADINGS[name]}: {fit['rate']:.3g} "
        f"(95% interval {fit['lower']:.3g} to {fit['upper']:.3g}, {fit['points']} points)"
        for name, fit in answer["decay"].items()
    ]
    if "load" in answer:
        gradient = "unknown" if answer["gradient_norm"] is None else f"{answer['gradient_norm']:.3g}"
        notes.append(f"whole model: gradient at the input {gradient}, sharpening share {answer['sharpening']:.3f}")
    state = "a saved" if "load" in answer else "untrained"
    return Table(
        columns=[_HEADINGS[name] for name in columns],
        rows=[[row[name] for name in columns] for row in rows],
        caption=f"{answer['model']} ({state} model) on {answer['dataset']}",
        note="\n".join(notes),
        digits=3,
    )


def _charts(answer: dict[str, Any], response: "FilterResponse") -> "dict[str, Curves]":
    """Every chart that has something to draw, by file name."""
    from dissensus.report import Curves, Series

    rows: list[Row] = answer["rows"]
    name = f"{answer['model']} on {answer['dataset']}"
    charts = {}
    for file, (title, label, columns, logarithmic) in _CHARTS.items():
        lines = [
            Series(_HEADINGS[column], _numbers(rows, "depth"), _numbers(rows, column))
            for column in columns
            if any(isfinite(value) and (value > 0 or not logarithmic) for value in _numbers(rows, column))
        ]
        if lines:
            charts[file] = Curves(
                lines,
                x_label="depth (time)" if answer["continuous"] else "depth (layers)",
                y_label=label,
                title=f"{title}: {name}",
                x_log=True,
                y_log=logarithmic,
            )
    gains = response.gain / response.gain.nan_to_num().max()
    if bool(gains.isfinite().any()):
        depth = "" if "load" in answer else f" at depth {rows[-1]['depth']}"
        charts["filter"] = Curves(
            [Series(name, response.frequency.tolist(), gains.tolist())],
            x_label="frequency (eigenvalue of the normalised Laplacian)",
            y_label="gain, relative to the largest",
            title=f"Filter response: {name}{depth}",
        )
    return charts


def _numbers(rows: list[Row], column: str) -> list[float]:
    values = (row.get(column) for row in rows)
    return [float("nan") if value is None else float(value) for value in values]


def _write(folder: Path, table: "Table", charts: "dict[str, Curves]") -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "measure.csv"]
    written[0].write_text(table.csv())
    for file, curves in charts.items():
        written += curves.save(folder / file)
    return written
