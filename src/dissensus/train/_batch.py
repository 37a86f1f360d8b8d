"""The batch of a training step: the whole graph, clusters of its nodes, or a batch of a loader."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import Sequential
from torch_geometric.utils import scatter

from dissensus import data
from dissensus.data import Clusters
from dissensus.errors import InputError
from dissensus.nn import Model
from dissensus.train._config import TrainConfig

MASKS = ("train_mask", "val_mask", "test_mask")
EDGE_FIELDS = {"edge_weight", "edge_attr"}
_NOT_FIELDS = {"x", "edge_index", "y", "batch_size"}


@dataclass(frozen=True)
class Batch:
    """A graph, a part of one, or several graphs, on the training device, with t targets of nodes or graphs.

    Attributes:
        x: node features, [n, features].
        edge_index: [2, edges].
        y: classes (-1 if unknown) or numbers, [t].
        known: boolean mask of the training targets, [t].
        train: indices of the targets in the loss.
        graph: index of the graph of each node, [n], or None for a single graph.
        fields: what a model may take besides ``x`` and ``edge_index`` (see :func:`fields_of`).
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    known: Tensor
    train: Tensor
    graph: Tensor | None
    fields: dict[str, Any]

    @classmethod
    def of(cls, data: Data, device: torch.device, dtype: torch.dtype) -> Self:
        """The batch of a PyG ``Data`` with ``x``, ``edge_index``, ``y``, ``train_mask`` and further fields.

        If it has a ``batch_size``, as in batches of PyG's ``NeighborLoader``, only the first ``batch_size`` nodes are
        in the loss.
        """
        seeds = data.train_mask[: data.batch_size] if "batch_size" in data else data.train_mask
        y, fields = data.y.view(-1), fields_of(data, device, dtype)
        return cls(
            x=data.x.to(device, dtype),
            edge_index=data.edge_index.to(device),
            y=y.to(device, dtype) if y.is_floating_point() else y.to(device, torch.int64),
            known=data.train_mask.to(device),
            train=seeds.nonzero().view(-1).to(device),
            graph=fields.get("batch"),
            fields=fields,
            **cls._extra(data, device),
        )

    @classmethod
    def _extra(cls, data: Data, device: torch.device) -> dict[str, Tensor]:
        return {}

    def without_features(self, rate: float | None) -> Self:
        """The same batch with the features of each node set to zero with probability ``rate``."""
        if not rate:
            return self
        keep = torch.rand(len(self.x), 1, device=self.x.device) >= rate
        return replace(self, x=self.x * keep)

    @property
    def pooled(self) -> bool:
        """Whether there is one target per graph instead of one per node."""
        return self.graph is not None and len(self.y) != len(self.x)

    def prepare(self, model: torch.nn.Module) -> None:
        """Let a model of this package take what it needs from the split, such as the training nodes.

        If there is one target per graph, each node gets the target of its graph, and ``batch`` is passed as well.
        """
        if isinstance(model, Model):
            graph = self.graph if self.pooled else None
            y, known = (self.y, self.known) if graph is None else (self.y[graph], self.known[graph])
            model.prepare(Data(x=self.x, y=y, train_mask=known, batch=graph))

    def scores(self, model: torch.nn.Module, forward: Callable[..., Tensor] | None = None) -> Tensor:
        """The model's scores, [t, outputs]; ``forward`` is called instead of the model if given.

        If there is one target per graph, the scores of a graph are the mean of those of its nodes.
        """
        self.prepare(model)
        call = model if forward is None else forward  # a compiled module has no truth value
        return self.pool(call(self.x, self.edge_index, **self.inputs(model)))

    def inputs(self, model: torch.nn.Module) -> dict[str, Any]:
        """The arguments of the model's forward besides ``x`` and ``edge_index``."""
        return inputs(model, self.fields)

    def pool(self, scores: Tensor) -> Tensor:
        """Turn scores of nodes, [n, outputs] or [n], into scores of targets, [t, outputs]."""
        return pool(scores, self.graph if self.pooled else None, len(self.y))


@dataclass(frozen=True)
class WholeGraph(Batch):
    """The whole graph, with validation and test targets as indices.

    Attributes:
        val: indices of the validation targets.
        test: indices of the test targets.
    """

    val: Tensor
    test: Tensor

    @classmethod
    def _extra(cls, data: Data, device: torch.device) -> dict[str, Tensor]:
        return {part: data[f"{part}_mask"].nonzero().view(-1).to(device) for part in ("val", "test")}


def fields_of(data: Data, device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    """The fields of a graph that a model may take by name, on the device and with floating-point tensors in the dtype.

    ``y`` is left out, because it has the labels to predict, and so is ``batch_size``, which counts seed nodes in a
    ``NeighborLoader`` but graphs in the models of PyG.
    """

    def moved(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.to(device, dtype) if value.is_floating_point() else value.to(device)

    return {key: moved(value) for key, value in data.to_dict().items() if key not in _NOT_FIELDS and value is not None}


def inputs(model: Callable[..., Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are arguments of a module's forward or of a function; ``**kwargs`` gets the fields of edges."""
    model = getattr(model, "_orig_mod", model)  # the module that was given to torch.compile
    if isinstance(model, Sequential):  # its forward accepts any arguments
        names = set(model.signature.param_dict)
    else:
        parameters = signature(model.forward if isinstance(model, torch.nn.Module) else model).parameters
        names = set(parameters)
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            names |= EDGE_FIELDS
    return {name: value for name, value in fields.items() if name in names}


def pool(scores: Tensor, graph: Tensor | None, graphs: int) -> Tensor:
    """Scores [n, outputs] or [n] as [n, outputs], averaged over each graph if the graph of each node is given."""
    if scores.dim() == 1:
        scores = scores[:, None]
    return scores if graph is None else scatter(scores, graph, dim=0, dim_size=graphs, reduce="mean")


def check_graph(data: Data) -> None:
    """Raise an error for graphs without targets and for invalid masks."""
    for name in ("x", "edge_index", "y"):
        if not isinstance(getattr(data, name, None), Tensor):
            raise InputError(
                f"data.{name} is missing: give a PyG Data with x, edge_index, y and masks, as dataset.split(1) is"
            )
    if data.y.dim() > 2 or (data.y.dim() == 2 and data.y.size(1) != 1):
        raise InputError(f"data.y has shape {list(data.y.shape)}: give one target per node [n] or per graph [graphs]")
    graphs = int(data.batch.max()) + 1 if getattr(data, "batch", None) is not None else None
    if len(data.y) not in (len(data.x), graphs):
        either = "" if graphs is None else f", or one for each of the {graphs} graphs of data.batch"
        raise InputError(f"data.y has {len(data.y)} entries: give one for each of the {len(data.x)} nodes{either}")
    known = ~data.y.isnan() if data.y.is_floating_point() else data.y >= 0
    for name in MASKS:
        mask = getattr(data, name, None)
        if mask is None:
            raise InputError(
                f"data.{name} is missing: add three boolean masks, or use data.load(...).split(seed) or "
                "data.from_pyg(data).split(seed)"
            )
        if mask.dim() == 2:
            raise InputError(f"data.{name} has {mask.size(1)} splits: choose one, such as data.{name}[:, 0]")
        if mask.dtype != torch.bool or mask.shape != (len(data.y),):
            raise InputError(
                f"data.{name} is {mask.dtype} of shape {list(mask.shape)}: give booleans, one for each of the "
                f"{len(data.y)} entries of y"
            )
        if not bool(mask.any()):
            raise InputError(f"data.{name} is empty: mark at least one target in it")
        if bool((mask & ~known.view(-1)).any()):
            raise InputError(f"data.{name} marks an unknown target (-1 or NaN): remove it from the mask")


def clusters_of(settings: TrainConfig, graph: Data, rank: int, workers: int) -> Clusters | None:
    """The clusters of a configuration, or None for full-batch training."""
    if settings.clusters is None:
        return None
    return data.clusters(
        graph,
        settings.clusters,
        batch_clusters=settings.clusters_per_step or 1,
        seed=settings.seed,
        method=settings.partitioner or "greedy",
        rank=rank,
        workers=workers,
    )


def check_loader(loader: Iterable[Data]) -> None:
    """Raise an error for a loader that can only be iterated over once."""
    if isinstance(loader, Iterator):
        raise InputError(
            "the loader is an iterator, which is used up after one epoch: give something that can be iterated over in "
            "every epoch, such as a NeighborLoader or data.clusters(...)"
        )


def check_batch(batch: Any, fields: Iterable[str]) -> Data:
    """Check that a loader's batch has all fields for training, and the edge fields of the graph used for evaluation."""
    missing = [key for key in ("x", "edge_index", "y", "train_mask") if getattr(batch, key, None) is None]
    if missing:
        raise InputError(
            f"a batch of the loader has no {missing[0]}: use a loader of PyG Data with x, edge_index, y and "
            "train_mask, such as data.load(...).split(...)"
        )
    for key in sorted(EDGE_FIELDS.intersection(fields)):
        if getattr(batch, key, None) is None:
            raise InputError(
                f"a batch of the loader has no {key}, but the graph that the model is evaluated on has: keep it in "
                "the batches, or leave it out of the graph"
            )
    found: Data = batch
    return found
