"""Save, load and apply trained models. A model is a folder with ``model.safetensors`` and ``config.json``."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import Tensor

from dissensus import __version__, data, nn
from dissensus.data import Dataset
from dissensus.errors import InputError
from dissensus.files import atomic_write
from dissensus.train._batch import fields_of, inputs, pool
from dissensus.train._config import Config
from dissensus.train._run import Run

MODEL, CONFIG = "model.safetensors", "config.json"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Saved:
    """A trained model read from a folder.

    Attributes:
        model: in evaluation mode, on the CPU.
        config: the configuration it was trained with.
        classes: the names of classes 0, 1, ...; empty for a regression.
        undirected: whether the reverse of every edge is added to a graph, as in training.
        features: the names of the features, in the model's order; None if the training graph had none.
        nodes: the ids of the nodes of the training graph, if the model only works on these nodes and they had ids;
            otherwise None.
        facts: the content of ``config.json``, with the results of training.
    """

    model: torch.nn.Module
    config: Config
    classes: tuple[str, ...]
    undirected: bool
    features: tuple[str, ...] | None
    nodes: tuple[str, ...] | None
    facts: dict[str, Any]

    @property
    def bound_nodes(self) -> int | None:
        """The number of nodes of the only graph that the model works on; None if it works on any graph."""
        return self.model.bound_nodes if isinstance(self.model, nn.Model) else None

    @property
    def in_channels(self) -> int:
        """The number of features of a node."""
        return int(self.model.in_channels if isinstance(self.model, nn.Model) else self.facts["sizes"]["in_channels"])


def save(result: Run, folder: str | PathLike[str]) -> None:
    """Write a trained model: its parameters, configuration, classes and result.

    For a model from your own file, only the path of the file is saved: the file is needed to load the model.
    """
    path = Path(folder)
    dataset, model = result.dataset, result.model.cpu()
    is_ours = isinstance(model, nn.Model)
    sizes = {"in_channels": dataset.graph.num_features, "out_channels": dataset.num_outputs}
    facts = {
        "format": _FORMAT,
        "dissensus": __version__,
        "config": result.config.as_dict(),
        "classes": list(dataset.class_names),
        "fingerprint": dataset.fingerprint,
        "features": dataset.feature_names,
        "nodes": dataset.node_ids if is_ours and model.bound_nodes is not None else None,
        "plain": not is_ours,
        "per": "graph" if dataset.per_graph else "node",
        "sizes": sizes | {"num_nodes": dataset.graph.num_nodes},
        "result": result.as_dict(),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        if is_ours:
            model.save(path / MODEL)
        else:
            save_model(model, str(path / MODEL))
        (path / CONFIG).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): give another folder") from error


def load_saved(folder: str | PathLike[str]) -> Saved:
    """Read a model that :func:`save` has written."""
    path = Path(folder)
    try:
        facts = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} holds no trained model ({error.strerror}): write one with train --save") from error
    except ValueError as error:
        raise InputError(f"{path / CONFIG} is damaged ({error}): train and save the model again") from error
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise InputError(f"{path / CONFIG} is of a format that this version cannot read: train and save again")
    try:
        config, classes = Config.from_dict(facts["config"]), tuple(map(str, facts["classes"]))
        # Models of earlier versions have neither.
        features, nodes = (
            None if facts.get(key) is None else tuple(map(str, facts[key])) for key in ("features", "nodes")
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path / CONFIG} is incomplete ({error} is missing): train and save again") from error
    if facts.get("plain"):
        model = _load_module(path, config, facts)
    else:
        model = nn.load(path / MODEL)
        if model.config["out_channels"] != max(1, len(classes)):
            raise InputError(f"{path}: {MODEL} and {CONFIG} belong to different models: train and save again")
    return Saved(model, config, classes, undirected(config), features, nodes, facts)


def _load_module(path: Path, config: Config, facts: Mapping[str, Any]) -> torch.nn.Module:
    """A saved module that is not a :class:`dissensus.nn.Model`, created by the file or package that defines it."""
    with torch.random.fork_rng(devices=[]):
        model: Any = config.model.create(**facts["sizes"])
    if (time := facts["result"].get("time")) is not None:
        model.time = time
    try:
        load_model(model.to(getattr(torch, config.train.dtype)), str(path / MODEL))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{path / MODEL} does not fit {config.model.name} ({error}): train and save again") from error
    return cast(torch.nn.Module, model.eval())


def prepare(saved: Saved, graph: str | PathLike[str]) -> Dataset:
    """Load a graph, by name or from a file, as it is needed by the model. Raises an error if the model cannot use it.

    If the features have names, here and in training, they are sorted as in training. If the model only works on the
    nodes of its training graph, and this was a largest component, the largest component of the graph is taken; nodes
    without ids get their numbers in the whole graph as ids.
    """
    dataset = _with_feature_order(data.load(graph, undirected=saved.undirected), saved.features, graph)
    if saved.bound_nodes is not None and saved.config.data.largest_component:
        ids = dataset.node_ids or tuple(map(str, range(dataset.graph.num_nodes)))
        dataset = replace(dataset, node_ids=ids).largest_component()
    width, wanted = dataset.graph.num_features, saved.in_channels
    if width != wanted:
        raise InputError(
            f"{graph} has {width} features per node, and the model was trained with {wanted}: give a graph with "
            "the same features, or train a model on this one"
        )
    bound, nodes = saved.bound_nodes, dataset.graph.num_nodes
    if bound not in (None, nodes):
        raise InputError(
            f"{graph} has {nodes} nodes, but the model only works on the {bound} nodes of its training graph: train a "
            "model that works on any graph, such as bimp with --set model.option_attention=gram"
        )
    if None not in (saved.nodes, dataset.node_ids) and saved.nodes != dataset.node_ids:
        raise InputError(
            f"the model only works on the nodes of its training graph, and {graph} has others or another order: give "
            "the same nodes in the same order, or train a model that works on any graph, such as bimp with --set "
            "model.option_attention=gram"
        )
    return dataset


def order_unknown(saved: Saved, dataset: Dataset) -> bool:
    """Whether the model only works on the nodes of its training graph, and the dataset's nodes may be others."""
    compared, bound = None not in (saved.nodes, dataset.node_ids), saved.bound_nodes
    return bound is not None and not compared and saved.facts.get("fingerprint") != dataset.fingerprint


def _with_feature_order(dataset: Dataset, wanted: tuple[str, ...] | None, graph: str | PathLike[str]) -> Dataset:
    """The dataset with its features in the order of the names ``wanted``; unchanged if either has no names."""
    given = dataset.feature_names
    if wanted is None or given is None or wanted == given:
        return dataset
    position, known = {name: i for i, name in enumerate(given)}, set(wanted)
    missing = [name for name in wanted if name not in position]
    extra = [name for name in given if name not in known]
    if missing:
        raise InputError(
            f"{graph} has no feature {_shortened(missing)}, which the model was trained on: add the column"
        )
    if extra:
        raise InputError(
            f"{graph} has the feature {_shortened(extra)}, which the model was trained without: drop the column"
        )
    reordered = copy(dataset.graph)
    reordered.x = reordered.x[:, [position[name] for name in wanted]]
    return replace(dataset, graph=reordered, feature_names=wanted)


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictions of a saved model for a graph.

    Attributes:
        values: the probability of each class, [n, classes]; for a regression the predicted values, [n, 1]. If the
            dataset has one target per graph, there is one row per graph.
        names: one for each row: the ids of the nodes if they have ids, otherwise the numbers of the nodes or graphs.
        classes: the names of the classes; empty for a regression.
        per: ``node`` or ``graph``.
        model: the name of the model.
        order_unknown: whether the model only works on the nodes of its training graph, and these may be others.
    """

    values: Tensor
    names: Sequence[object]
    classes: tuple[str, ...]
    per: str
    model: str
    order_unknown: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values: the model, the number of nodes (or graphs), and the number predicted for each class."""
        counts = self.values.argmax(1).bincount(minlength=len(self.classes)).tolist()
        classes = {"classes": dict(zip(self.classes, counts, strict=True))} if self.classes else {}
        return {"model": self.model, f"{self.per}s": len(self.values), **classes}

    def rows(self) -> Iterator[list[object]]:
        """A header, then one row per node: its id, the predicted class, its probability, and those of all classes.

        For a regression, a row has the id and the predicted ``value``.
        """
        columns = ["class", "probability", *(f"p({name})" for name in self.classes)] if self.classes else ["value"]
        yield [self.per, *columns]
        for name, row in zip(self.names, self.values.tolist(), strict=True):
            predicted = max(range(len(row)), key=row.__getitem__)
            numbers = [f"{value:.6g}" for value in ((row[predicted], *row) if self.classes else row)]
            yield [name, *([self.classes[predicted]] if self.classes else []), *numbers]

    def write(self, path: str | PathLike[str]) -> None:
        """Write the rows to a CSV file, which is never left incomplete."""
        try:
            with atomic_write(Path(path)) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(self.rows())
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror}): give another file") from error


@torch.no_grad()
def predict(model: Saved | str | PathLike[str], graph: Dataset | str | PathLike[str]) -> Prediction:
    """Predict the classes, or the values, of the nodes of a graph, or of the graphs of a collection.

    Args:
        model: the folder that :func:`save` has written, or the result of :func:`load_saved`.
        graph: the name or the file of a dataset, or a dataset that fits the model.
    """
    saved = model if isinstance(model, Saved) else load_saved(model)
    dataset = graph if isinstance(graph, Dataset) else prepare(saved, graph)
    data, dtype = dataset.graph, getattr(torch, saved.config.train.dtype)
    fields = fields_of(data, torch.device("cpu"), dtype)
    scores = saved.model(data.x.to(dtype), data.edge_index, **inputs(saved.model, fields))
    per = saved.facts.get("per", "graph" if dataset.per_graph else "node")
    if per == "graph":
        batch = torch.zeros(len(scores), dtype=torch.long) if data.batch is None else data.batch
        scores = pool(scores, batch, int(batch[-1]) + 1)
    else:
        scores = pool(scores, None, len(scores))
    return Prediction(
        values=scores.softmax(1) if saved.classes else scores,
        names=(dataset.node_ids if per == "node" else None) or range(len(scores)),
        classes=saved.classes,
        per=per,
        model=saved.config.model.name,
        order_unknown=order_unknown(saved, dataset),
    )


def undirected(config: Config) -> bool:
    """Whether training adds the reverse of every edge, by the configuration or else by the dataset's protocol."""
    name, wanted = config.data.name, config.data.undirected
    return wanted if wanted is not None else name in data.names() and data.info(name).undirected
