"""Oversmoothing over depth: the measures of a model's hidden states, by layer or by time."""

import json
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from math import isfinite, nan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from dissensus import data, nn, train
from dissensus.data import Dataset
from dissensus.errors import InputError
from dissensus.measure._decay import DecayRate, decay_rate
from dissensus.measure._gradients import gradient_norms
from dissensus.measure._response import FilterResponse, filter_response
from dissensus.measure._summary import summary
from dissensus.measure._watch import watch
from dissensus.report import Curves, Series, Table
from dissensus.train import Saved

Row = dict[str, float | None]

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)
_ENERGIES = ("dirichlet_energy", "relative_dirichlet_energy")
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
# file name: title, label of the axis, columns, whether the axis is logarithmic
_CHARTS = {
    "energy": ("Dirichlet energy", "energy", _ENERGIES, True),
    "rank": ("Ranks of the hidden state", "rank", ("effective_rank", "numerical_rank"), False),
    "similarity": ("Distances and correlation", "", ("mad", "rank_one_distance", "channel_correlation"), False),
    "gradient": ("Gradient of the loss at the input", "norm", ("gradient_norm",), True),
    "sharpening": ("Sharpening share of the response", "share", ("sharpening",), False),
}


@dataclass(frozen=True)
class Depths:
    """Measures of hidden states over depth; the result of :func:`depths`.

    Attributes:
        model: name of the model or of its class.
        dataset: name of the graph.
        split: the split whose training nodes define the loss.
        continuous: whether depth is time rather than a number of layers.
        rows: one for each depth, with ``depth`` and the values of :func:`summary`. For untrained models also
            ``gradient_norm`` (of the loss with respect to the features) and ``sharpening`` (see
            :func:`filter_response`).
        whole: ``gradient_norm`` and ``sharpening`` of a given model; empty for untrained ones.
        settings: the settings of the models.
        response: the filter response of the given model, or of the deepest untrained one.
    """

    model: str
    dataset: str
    split: int | None
    continuous: bool
    rows: list[Row]
    whole: Row
    settings: dict[str, Any]
    response: FilterResponse = field(repr=False)

    @property
    def decay(self) -> dict[str, DecayRate]:
        """The fitted decay rates of both energies over depth."""
        energy, relative = (np.array(self._column(name)) for name in _ENERGIES)
        # Rounding errors of float32 states are eps^2 of their squared norm, which is energy / relative energy.
        floor = np.finfo(np.float32).eps ** 2
        norms = np.divide(energy, relative, where=relative > 0, out=np.zeros_like(energy))
        at = self._column("depth")
        return {
            "dirichlet_energy": decay_rate(energy, at, floor=floor * norms),
            "relative_dirichlet_energy": decay_rate(relative, at, floor=floor),
        }

    def as_dict(self) -> dict[str, Any]:
        """All results as plain values, as printed by ``dissensus measure --json``."""
        return {
            **{name: getattr(self, name) for name in ("dataset", "split", "model")},
            **self.settings,
            "continuous": self.continuous,
            **self.whole,
            "rows": self.rows,
            "decay": {name: rate._asdict() for name, rate in self.decay.items()},
        }

    def table(self) -> Table:
        """A table with one row for each depth and the decay rates below."""
        columns = [name for name in _HEADINGS if name in self.rows[0]]
        notes = [
            f"decay rate of the {_HEADINGS[name]}: {fit.rate:.3g} "
            f"(95% interval {fit.lower:.3g} to {fit.upper:.3g}, {fit.points} points)"
            for name, fit in self.decay.items()
        ]
        if self.whole:
            gradient = self.whole["gradient_norm"]
            shown = "unknown" if gradient is None else f"{gradient:.3g}"
            notes.append(f"whole model: gradient at the input {shown}, sharpening share {self.whole['sharpening']:.3f}")
        state = "a saved" if self.whole else "untrained"
        return Table(
            columns=[_HEADINGS[name] for name in columns],
            rows=[[row[name] for name in columns] for row in self.rows],
            caption=f"{self.model} ({state} model) on {self.dataset}",
            note="\n".join(notes),
            digits=3,
        )

    def charts(self) -> dict[str, Curves]:
        """All charts with data, by name."""
        name, charts = f"{self.model} on {self.dataset}", {}
        for file, (title, label, columns, logarithmic) in _CHARTS.items():
            lines = [Series(_HEADINGS[column], self._column("depth"), self._column(column)) for column in columns]
            lines = [line for line in lines if any(isfinite(y) and (y > 0 or not logarithmic) for y in line.y)]
            if lines:
                charts[file] = Curves(
                    lines,
                    x_label="depth (time)" if self.continuous else "depth (layers)",
                    y_label=label,
                    title=f"{title}: {name}",
                    x_log=True,
                    y_log=logarithmic,
                )
        gains = self.response.gain / self.response.gain.nan_to_num().max()
        if bool(gains.isfinite().any()):
            depth = "" if self.whole else f" at depth {self.rows[-1]['depth']}"
            charts["filter"] = Curves(
                [Series(name, self.response.frequency.tolist(), gains.tolist())],
                x_label="frequency (eigenvalue of the normalised Laplacian)",
                y_label="gain, relative to the largest",
                title=f"Filter response: {name}{depth}",
            )
        return charts

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the table (``measure.csv``) and the charts (PNG and SVG, with the extra ``plot``) to a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / "measure.csv").write_text(self.table().csv())
        charts = (file for name, curves in self.charts().items() for file in curves.save(path / name))
        return [path / "measure.csv", *charts]

    def _column(self, name: str) -> list[float]:
        values = (row.get(name) for row in self.rows)
        return [nan if value is None else float(value) for value in values]


def depths(
    model: str | PathLike[str] | Saved | torch.nn.Module = "gcn",
    dataset: str | PathLike[str] | Dataset | None = None,
    depths: Sequence[int] | None = None,
    *,
    hidden_channels: int | None = None,
    seed: int | None = None,
    split: int | None = None,
    notify: Callable[[str], None] = lambda text: None,
) -> Depths:
    """Measure oversmoothing over depth: the number of hidden layers, or the time of a continuous model.

    >>> measure.depths("gcn", "karate", [1, 8, 64]).table().show()  # doctest: +SKIP

    Args:
        model: one of two things. A *name* (or ``file.py:Class``): for every depth an untrained model is created with
            the same seed and its last hidden state is measured; continuous models take Euler steps of size 1. For a
            module without ``trajectory`` this is the last layer output of width ``hidden_channels``. Or a *model*,
            whose hidden states are measured at every depth: a module, the result of
            :func:`dissensus.train.load_saved`, or a path written by ``dissensus train --save`` or ``model.save``.
        dataset: name, file or :class:`~dissensus.data.Dataset`. The default is Cora, or the training graph of a saved
            model. The graph is prepared in the same way as for the training of a saved model.
        depths: increasing integers from 1. The default is 1, 2, 4, ... 128, or all layers of a given model.
        hidden_channels: width of untrained models; 64 by default.
        seed: random seed for the weights of untrained models; 1 by default.
        split: the split whose training nodes define the loss. The default is the first split, or the split of a saved
            model on its own graph.
        notify: called with messages for the user.

    Returns:
        The measures as ``rows``; see also ``decay``, ``table()``, ``charts()``, ``save(folder)`` and ``as_dict()``.
    """
    if depths is not None and (not depths or list(depths) != sorted(set(depths)) or depths[0] < 1):
        raise InputError(f"depths are {list(depths)}: give increasing integers from 1, such as 1,2,4,8")
    if isinstance(model, str):
        found = nn.info(model)
        if hidden_channels is not None and hidden_channels < 1:
            raise InputError(f"hidden channels are {hidden_channels}: give at least 1")
        loaded, name, split = _dataset("cora" if dataset is None else dataset, None, split, notify)
        settings: dict[str, Any] = {"hidden": hidden_channels or 64, "seed": 1 if seed is None else seed}
        return _untrained(found, settings, depths or DEPTHS, loaded, name, split, notify)
    if hidden_channels is not None or seed is not None:
        raise InputError("hidden channels and seed are for untrained models: leave them out, or give a model's name")
    settings = {}
    if isinstance(model, PathLike):
        settings = {"load": str(model)}
        model = _load(Path(model))
    saved = model if isinstance(model, Saved) else None
    loaded, name, split = _dataset("cora" if dataset is None and saved is None else dataset, saved, split, notify)
    module = model.model if isinstance(model, Saved) else model
    # If the dataset's classes have other names than the model's, its labels cannot be used for the loss.
    labelled = saved is None or saved.classes == loaded.class_names
    return _given(module, settings, depths, loaded, name, split, labelled=labelled)


def _load(path: Path) -> Saved | torch.nn.Module:
    """Load a folder written by ``train --save``, the model file in it, or a file written by ``model.save``."""
    if path.is_dir():
        return train.load_saved(path)
    try:
        config = json.loads((path.parent / "config.json").read_text(encoding="utf-8"))
    except OSError:
        return nn.load(path)
    except ValueError:  # a damaged config.json, which load_saved reports if it is ours
        return train.load_saved(path.parent)
    # Other libraries, too, write a config.json next to their models.
    ours = path.name == "model.safetensors" and isinstance(config, dict) and "format" in config
    return train.load_saved(path.parent) if ours else nn.load(path)


def _dataset(
    given: str | PathLike[str] | Dataset | None, saved: Saved | None, split: int | None, notify: Callable[[str], None]
) -> tuple[Dataset, str, int | None]:
    """The dataset, prepared as in the training of the saved model; its name; and the split."""
    own = None if saved is None else saved.config.data
    if own is not None and given is None:
        return own.load(), own.name, own.split if split is None else split
    if isinstance(given, Dataset):
        dataset, name = given, given.name
    else:
        assert given is not None
        name = str(given)
        dataset = data.load(given) if saved is None else train.prepare(saved, given)
        if saved is not None and train.order_unknown(saved, dataset):
            notify(
                f"the model depends on the nodes of its training graph, and {name} may be another graph: the measures "
                "are only meaningful if it has the same nodes in the same order"
            )
    if split is None:
        same = own is not None and own.name in (name, str(Path(name).resolve()))
        split = own.split if own is not None and same else dataset.default_splits[0]
    return dataset, name, split


def _graph(dataset: Dataset, split: int | None) -> Data:
    return dataset.split(split) if dataset.num_classes and split is not None else dataset.graph


def _untrained(
    model: nn.ModelInfo,
    settings: dict[str, Any],
    depths: Sequence[int],
    dataset: Dataset,
    name: str,
    split: int | None,
    notify: Callable[[str], None],
) -> Depths:
    """Measure one untrained model per depth: its last hidden state, gradient norm and filter response."""
    graph, rows = _graph(dataset, split), []
    sizes = {"in_channels": graph.num_features, "out_channels": max(1, dataset.num_outputs)}
    for depth in depths:
        notify(f"{model.name} at depth {depth}")
        torch.manual_seed(settings["seed"])
        # The last layer of a discrete model gives the scores, so there is one layer more than hidden ones.
        options = model.at_depth(depth if model.continuous else depth + 1)
        created = model.create(hidden_channels=settings["hidden"], **sizes, **options)
        if hasattr(created, "trajectory"):
            (state,) = watch(created, graph, times=[depth]).states
        else:
            states = watch(created, graph).states
            state = next((s for s in reversed(states) if s.size(1) == settings["hidden"]), states[-1])
        response = filter_response(created, graph, bands=20 if depth == depths[-1] else 0, probes=2)
        gradient = _gradient_norm(created, graph, dataset.num_classes)
        measured = {"gradient_norm": gradient, "sharpening": response.sharpening}
        rows.append({"depth": depth, **summary(state, graph.edge_index), **measured})
    return Depths(model.name, name, split, model.continuous, rows, {}, settings, response)


def _given(
    model: torch.nn.Module,
    settings: dict[str, Any],
    depths: Sequence[int] | None,
    dataset: Dataset,
    name: str,
    split: int | None,
    *,
    labelled: bool,
) -> Depths:
    """Measure one model at every depth. Gradient norm and filter response are those of the whole model."""
    graph = copy(_graph(dataset, split))
    graph.x = graph.x.to(next(model.parameters()).dtype)
    is_ours, classes = isinstance(model, nn.Model), dataset.num_classes
    outputs = () if is_ours else watch(model, graph).states
    readable: Sequence[int] = range(1, len(outputs) + 1)
    if isinstance(model, nn.Model):
        readable, classes = DEPTHS if model.continuous else _hidden_layers(model), model.config["out_channels"]
    continuous = isinstance(model, nn.Model) and model.continuous
    if not readable:
        raise InputError("a model with one layer has no hidden state to measure: give a deeper one")
    depths = depths or readable
    if not continuous and depths[-1] > readable[-1]:
        raise InputError(
            f"depths reaches {depths[-1]}, but the model has {readable[-1]} hidden layers: give no larger depth"
        )
    states = watch(model, graph, times=depths).states if is_ours else [outputs[depth - 1] for depth in depths]
    rows: list[Row] = [
        {"depth": depth, **summary(state, graph.edge_index)} for depth, state in zip(depths, states, strict=True)
    ]
    response = filter_response(model, graph, probes=2)
    gradient = _gradient_norm(model, graph, classes) if labelled else None
    whole: Row = {"gradient_norm": gradient, "sharpening": response.sharpening}
    return Depths(type(model).__name__, name, split, continuous, rows, whole, settings, response)


def _hidden_layers(model: nn.Model) -> list[int]:
    # Hundreds of states as wide as the features would fill the memory, so SGC and DGC name a few layers (`milestones`).
    return [int(layer) for layer in model.milestones if layer] or list(range(1, model.config["num_layers"]))


def _gradient_norm(model: torch.nn.Module, graph: Data, classes: int) -> float | None:
    # A regression has no classes, and another graph may have more classes than the model.
    if len(graph.y) != graph.num_nodes or not bool((graph.y >= 0).any()) or int(graph.y.max()) >= classes:
        return None
    return gradient_norms(model, graph, of="states")["input"]
