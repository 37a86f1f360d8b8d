"""A trained model as a folder: ``model.safetensors`` and ``config.json``; and what it predicts. Nothing is pickled."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
        facts: everything else that was written, accuracies among it.
    """

    model: nn.Model
    config: Config
    classes: tuple[str, ...]
    undirected: bool
    facts: dict[str, Any]


def save(result: Result, folder: str | PathLike[str]) -> None:
    """Write a trained model: its parameters, and the configuration, classes, preparation and accuracy beside them."""
    path = Path(folder)
    facts = {
        "format": _FORMAT,
        "dissensus": __version__,
        "config": result.config.as_dict(),
        "classes": list(result.dataset.class_names),
        "preparation": {"undirected": _undirected(result)},
        "fingerprint": result.dataset.fingerprint,
        "result": result.as_dict(),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        result.model.cpu().save(path / MODEL)
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
        undirected = bool(facts["preparation"]["undirected"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{path / CONFIG} is incomplete ({error} is missing): train and save again") from error
    model = nn.load(path / MODEL)
    if model.config["out_channels"] != len(classes):
        raise InputError(f"{path}: {MODEL} and {CONFIG} belong to different models: train and save again")
    return Saved(model, config, classes, undirected, facts)


def prepare(saved: Saved, graph: str | PathLike[str]) -> Dataset:
    """A graph loaded as the model wants it, by name or from a file; refused if the model cannot take it."""
    dataset = data.load(graph, undirected=saved.undirected)
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
    return dataset


def _bound(model: nn.Model) -> int | None:
    """The node count that a model is tied to: by an option attention over nodes, or by sources among them."""
    sources = getattr(model, "sources", None)
    count: int | None = model.config.get("num_nodes") if sources is None else sources.numel()
    return count


@torch.no_grad()
def predict(saved: Saved, dataset: Dataset) -> Tensor:
    """The probability of each class, [n, classes]; rows sum to one."""
    dtype = next(saved.model.parameters()).dtype
    return saved.model(dataset.graph.x.to(dtype), dataset.graph.edge_index).softmax(1)


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
