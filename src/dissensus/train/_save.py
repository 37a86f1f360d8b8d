"""A trained model as a folder: ``model.safetensors`` and ``config.json``; and what it predicts. Nothing is pickled."""

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
from dissensus.files import whole
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
        classes: the name of class 0, 1, ...; empty for a regression.
        undirected: whether the edges of a graph get their reverse first, as in training.
        features: the names of the features, in the model's order; None where the training graph had none.
        nodes: the ids of the nodes of the training graph, if the model is bound to these nodes and they had ids;
            otherwise None.
        facts: everything else that was written, accuracies among it.
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
        """The node count of the one graph that the model can run on; None: any graph."""
        return self.model.bound_nodes if isinstance(self.model, nn.Model) else None

    @property
    def in_channels(self) -> int:
        """The number of features of a node."""
        return int(self.model.in_channels if isinstance(self.model, nn.Model) else self.facts["sizes"]["in_channels"])


def save(result: Run, folder: str | PathLike[str]) -> None:
    """Write a trained model: its parameters, configuration, classes and result.

    A model from a file of yours is stored with the path of the file, not with a copy: the file is needed to load it.
    """
    path = Path(folder)
    dataset, model = result.dataset, result.model.cpu()
    ours = isinstance(model, nn.Model)
    sizes = {"in_channels": dataset.graph.num_features, "out_channels": dataset.num_outputs}
    facts = {
        "format": _FORMAT,
        "dissensus": __version__,
        "config": result.config.as_dict(),
        "classes": list(dataset.class_names),
        "fingerprint": dataset.fingerprint,
        "features": dataset.feature_names,
        "nodes": dataset.node_ids if ours and model.bound_nodes is not None else None,
        "plain": not ours,
        "per": "graph" if dataset.per_graph else "node",
        "sizes": sizes | {"num_nodes": dataset.graph.num_nodes},
        "result": result.as_dict(),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        if ours:
            model.save(path / MODEL)
        else:
            save_model(model, str(path / MODEL))
        (path / CONFIG).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): give another folder") from error


def load_saved(folder: str | PathLike[str]) -> Saved:
    """Read what :func:`save` wrote."""
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
        # Models that were saved before these were kept have neither.
        features, nodes = (
            None if facts.get(key) is None else tuple(map(str, facts[key])) for key in ("features", "nodes")
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path / CONFIG} is incomplete ({error} is missing): train and save again") from error
    if facts.get("plain"):
        model = _plain(path, config, facts)
    else:
        model = nn.load(path / MODEL)
        if model.config["out_channels"] != max(1, len(classes)):
            raise InputError(f"{path}: {MODEL} and {CONFIG} belong to different models: train and save again")
    return Saved(model, config, classes, undirected(config), features, nodes, facts)


def _plain(path: Path, config: Config, facts: Mapping[str, Any]) -> torch.nn.Module:
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
    """A graph loaded as the model wants it, by name or from a file; refused if the model cannot take it.

    Features that have names, here and in training, are put into the order of training. A model that is bound to the
    nodes of a largest component gets that of this graph, whose nodes keep their numbers as ids if they have no others.
    """
    dataset = _by_name(data.load(graph, undirected=saved.undirected), saved.features, graph)
    if saved.bound_nodes is not None and saved.config.data.largest_component:
        ids = dataset.node_ids or tuple(map(str, range(dataset.graph.num_nodes)))
        dataset = replace(dataset, node_ids=ids).largest_component()
    width, wanted = dataset.graph.num_features, saved.in_channels
    if width != wanted:
        raise InputError(
            f"{graph} has {width} features a node, and the model was trained on {wanted}: give a graph with the same "
            "features, or train on this one"
        )
    bound, nodes = saved.bound_nodes, dataset.graph.num_nodes
    if bound not in (None, nodes):
        raise InputError(
            f"{graph} has {nodes} nodes, and the model is bound to the {bound} of the graph it was trained on: train "
            "one that works on any graph, such as bimp with --set model.option_attention=gram"
        )
    if None not in (saved.nodes, dataset.node_ids) and saved.nodes != dataset.node_ids:
        raise InputError(
            f"{graph} has other nodes than the graph that the model is bound to, or in another order: give the nodes "
            "of training in their order there, or train a model that works on any graph, such as bimp with --set "
            "model.option_attention=gram"
        )
    return dataset


def order_unknown(saved: Saved, dataset: Dataset) -> bool:
    """Whether the model is bound to nodes, and neither ids nor contents tell that those of the dataset are the same."""
    compared, bound = None not in (saved.nodes, dataset.node_ids), saved.bound_nodes
    return bound is not None and not compared and saved.facts.get("fingerprint") != dataset.fingerprint


def _by_name(dataset: Dataset, wanted: tuple[str, ...] | None, graph: str | PathLike[str]) -> Dataset:
    """The dataset with its features in the order of the names ``wanted``; as it is where either has no names."""
    given = dataset.feature_names
    if wanted is None or given is None or wanted == given:
        return dataset
    position, known = {name: i for i, name in enumerate(given)}, set(wanted)
    missing = [name for name in wanted if name not in position]
    extra = [name for name in given if name not in known]
    if missing:
        raise InputError(f"{graph} has no feature {_listed(missing)}, which the model was trained on: add the column")
    if extra:
        raise InputError(f"{graph} has the feature {_listed(extra)}, which the model does not know: drop the column")
    turned = copy(dataset.graph)
    turned.x = turned.x[:, [position[name] for name in wanted]]
    return replace(dataset, graph=turned, feature_names=wanted)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a saved model says of a graph.

    Attributes:
        values: the probability of each class, [n, classes], rows that sum to one; of a regression the values, [n, 1].
            Where the dataset has one target for each graph, there is one row for each graph.
        names: the ids of the nodes, or the numbers of nodes or graphs, one for each row.
        classes: the names of the classes; empty for a regression.
        per: ``node`` or ``graph``.
        model: its name.
        order_unknown: whether the model is bound to the nodes of training, and nothing tells that these are the same.
    """

    values: Tensor
    names: Sequence[object]
    classes: tuple[str, ...]
    per: str
    model: str
    order_unknown: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values: the model, the number of nodes (or graphs), and how many are of each class."""
        counts = self.values.argmax(1).bincount(minlength=len(self.classes)).tolist()
        classes = {"classes": dict(zip(self.classes, counts, strict=True))} if self.classes else {}
        return {"model": self.model, f"{self.per}s": len(self.values), **classes}

    def rows(self) -> Iterator[list[object]]:
        """A header, then a row for each node: its id, its class, that class's probability, and that of every class.

        Of a regression: its id and its ``value``.
        """
        columns = ["class", "probability", *(f"p({name})" for name in self.classes)] if self.classes else ["value"]
        yield [self.per, *columns]
        for name, row in zip(self.names, self.values.tolist(), strict=True):
            likeliest = max(range(len(row)), key=row.__getitem__)
            numbers = [f"{value:.6g}" for value in ((row[likeliest], *row) if self.classes else row)]
            yield [name, *([self.classes[likeliest]] if self.classes else []), *numbers]

    def write(self, path: str | PathLike[str]) -> None:
        """The rows as a CSV file, whole or not at all."""
        try:
            with whole(Path(path)) as draft, draft.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(self.rows())
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror}): give another file") from error


@torch.no_grad()
def predict(model: Saved | str | PathLike[str], graph: Dataset | str | PathLike[str]) -> Prediction:
    """Predict the classes, or the values, of the nodes of a graph, or of the graphs of a collection.

    Args:
        model: the folder that :func:`save` wrote, or what :func:`load_saved` gives.
        graph: a dataset's name or file, or a dataset that fits the model.
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
    """Whether training added the reverse of every edge: as the configuration says, or else the dataset's protocol."""
    name, wanted = config.data.name, config.data.undirected
    return wanted if wanted is not None else name in data.names() and data.info(name).undirected
