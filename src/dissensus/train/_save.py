"""A trained model as a folder: ``model.safetensors`` and ``config.json``; and what it predicts. Nothing is pickled."""

import json
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dissensus import __version__, data, nn
from dissensus.data import Dataset
from dissensus.errors import InputError
from dissensus.train._config import Config
from dissensus.train._fit import Result

MODEL, CONFIG = "model.safetensors", "config.json"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Saved:
    """A trained model read from a folder.

    Attributes:
        model: in evaluation mode, on the CPU.
        config: the configuration it was trained with.
        classes: the name of class 0, 1, ...
        undirected: whether the edges of a graph get their reverse first, as in training.
        features: the names of the features, in the model's order; None where the training graph had none.
        nodes: the ids of the nodes of the training graph, if the model is bound to these nodes and they had ids;
            otherwise None.
        facts: everything else that was written, accuracies among it.
    """

    model: nn.Model
    config: Config
    classes: tuple[str, ...]
    undirected: bool
    features: tuple[str, ...] | None
    nodes: tuple[str, ...] | None
    facts: dict[str, Any]


def save(result: Result, folder: str | PathLike[str]) -> None:
    """Write a trained model: its parameters, and the configuration, classes, preparation and accuracy beside them."""
    path = Path(folder)
    dataset = result.dataset
    facts = {
        "format": _FORMAT,
        "dissensus": __version__,
        "config": result.config.as_dict(),
        "classes": list(dataset.class_names),
        "preparation": {"undirected": _undirected(result)},
        "fingerprint": dataset.fingerprint,
        "features": dataset.feature_names,
        "nodes": None if _bound(result.model) is None else dataset.node_ids,
        "result": result.as_dict(),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        result.model.cpu().save(path / MODEL)
        (path / CONFIG).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): give another folder") from error


def is_saved(folder: str | PathLike[str]) -> bool:
    """Whether ``config.json`` there is one that :func:`save` wrote, of any version, and not another program's."""
    path = Path(folder) / CONFIG
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return False
    except ValueError:  # damaged: nobody can tell whose it was
        return True
    return isinstance(facts, dict) and "format" in facts


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
        undirected = bool(facts["preparation"]["undirected"])
        # Models that were saved before these were kept have neither.
        features, nodes = (
            None if facts.get(key) is None else tuple(map(str, facts[key])) for key in ("features", "nodes")
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path / CONFIG} is incomplete ({error} is missing): train and save again") from error
    model = nn.load(path / MODEL)
    if model.config["out_channels"] != len(classes):
        raise InputError(f"{path}: {MODEL} and {CONFIG} belong to different models: train and save again")
    return Saved(model, config, classes, undirected, features, nodes, facts)


def prepare(saved: Saved, graph: str | PathLike[str]) -> Dataset:
    """A graph loaded as the model wants it, by name or from a file; refused if the model cannot take it.

    Features that have names, here and in training, are put into the order of training. A model that is bound to the
    nodes of a largest component gets that of this graph, whose nodes keep their numbers as ids if they have no others.
    """
    dataset = _by_name(data.load(graph, undirected=saved.undirected), saved.features, graph)
    if _bound(saved.model) is not None and saved.config.data.largest_component:
        ids = dataset.node_ids or tuple(map(str, range(dataset.graph.num_nodes)))
        dataset = replace(dataset, node_ids=ids).largest_component()
    width, wanted = dataset.graph.num_features, saved.model.in_channels
    if width != wanted:
        raise InputError(
            f"{graph} has {width} features a node, and the model was trained on {wanted}: give a graph with the same "
            "features, or train on this one"
        )
    bound, nodes = _bound(saved.model), dataset.graph.num_nodes
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
    compared = None not in (saved.nodes, dataset.node_ids)
    return _bound(saved.model) is not None and not compared and saved.facts.get("fingerprint") != dataset.fingerprint


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


def _bound(model: nn.Model) -> int | None:
    """The node count that a model is tied to: by an option attention over nodes, or by sources among them."""
    sources = getattr(model, "sources", None)
    count: int | None = model.config.get("num_nodes") if sources is None else sources.numel()
    return count


@torch.no_grad()
def predict(saved: Saved, dataset: Dataset) -> Tensor:
    """The probability of each class, [n, classes]; rows sum to one."""
    dtype = next(saved.model.parameters()).dtype
    graph = dataset.graph
    return saved.model(graph.x.to(dtype), graph.edge_index, graph.edge_weight).softmax(1)


def prediction_rows(saved: Saved, dataset: Dataset, probabilities: Tensor) -> Iterator[Sequence[object]]:
    """A header, then for each node its id, its class, that class's probability, and the probability of every class."""
    yield ["node", "class", "probability", *(f"p({name})" for name in saved.classes)]
    ids = dataset.node_ids or range(dataset.graph.num_nodes)
    for node, row in zip(ids, probabilities.tolist(), strict=True):
        likeliest = max(range(len(row)), key=row.__getitem__)
        yield [node, saved.classes[likeliest], *(f"{value:.6g}" for value in (row[likeliest], *row))]


def _undirected(result: Result) -> bool:
    # ogbn-arxiv's protocol makes its edges undirected unless the configuration says otherwise.
    wanted = result.config.data.undirected
    return result.dataset.name == "ogbn-arxiv" if wanted is None else wanted
