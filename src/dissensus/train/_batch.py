"""What one step of training works on: the whole graph, clusters of its nodes, or what a loader samples."""

from collections.abc import Callable, Iterable, Iterator
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


@dataclass(frozen=True)
class Batch:
    """A graph, a piece of one, or several graphs, on the device it is trained on; t targets, of nodes or of graphs.

    Attributes:
        x: node features, [n, features].
        edge_index: [2, edges].
        edge_weight: positive weights, [edges]; None where edges have none.
        y: classes, -1 where unknown, or numbers, [t].
        known: which targets are for training, [t], boolean.
        train: the targets whose loss counts, [their number].
        graph: the graph of each node, [n], where several are batched; otherwise None.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    y: Tensor
    known: Tensor
    train: Tensor
    graph: Tensor | None

    @classmethod
    def of(cls, data: Data, device: torch.device, dtype: torch.dtype) -> Self:
        """The batch of a PyG ``Data`` with ``x``, ``edge_index``, ``y``, ``train_mask`` and perhaps ``edge_weight``.

        Where it has a ``batch_size``, as those of PyG's ``NeighborLoader`` have, the first so many nodes are the ones
        that were asked for, and the loss is theirs alone.
        """
        seeds = data.train_mask[: data.batch_size] if "batch_size" in data else data.train_mask
        train, weight, graph = seeds.nonzero().view(-1), data.edge_weight, data.batch if "batch" in data else None
        y = data.y.view(-1)
        return cls(
            x=data.x.to(device, dtype),
            edge_index=data.edge_index.to(device),
            edge_weight=None if weight is None else weight.to(device, dtype),
            y=y.to(device, dtype) if y.is_floating_point() else y.to(device, torch.int64),
            known=data.train_mask.to(device),
            train=train.to(device),
            graph=None if graph is None else graph.to(device),
            **cls._parts(data, device),
        )

    @classmethod
    def _parts(cls, data: Data, device: torch.device) -> dict[str, Tensor]:
        return {}

    def without_features(self, rate: float | None) -> Self:
        """The same with all features of a node set to zero, each node with probability ``rate``."""
        if not rate:
            return self
        keep = torch.rand(len(self.x), 1, device=self.x.device) >= rate
        return replace(self, x=self.x * keep)

    @property
    def pooled(self) -> bool:
        """Whether there is one target for each graph, not for each node."""
        return self.graph is not None and len(self.y) != len(self.x)

    def prepare(self, model: torch.nn.Module) -> None:
        """Let one of our models take from the split what it needs, such as the training nodes."""
        if isinstance(model, Model):
            y, known = (self.y[self.graph], self.known[self.graph]) if self.pooled else (self.y, self.known)
            model.prepare(Data(x=self.x, y=y, train_mask=known))

    def scores(self, model: torch.nn.Module, forward: Callable[..., Tensor] | None = None) -> Tensor:
        """The model's scores, [t, outputs]; ``forward`` is what to call where it is not the model itself.

        Where each graph has one target, its scores are the mean of those of its nodes.
        """
        self.prepare(model)
        return self.pool((forward or model)(self.x, self.edge_index, **self.inputs(model)))

    def inputs(self, model: torch.nn.Module) -> dict[str, Tensor]:
        """What the model's forward takes beside ``x`` and ``edge_index``."""
        return inputs(model, self.edge_weight, self.graph)

    def pool(self, scores: Tensor) -> Tensor:
        """Scores of nodes, [n, outputs] or [n], as those of targets, [t, outputs]."""
        return pool(scores, self.graph if self.pooled else None, len(self.y))


@dataclass(frozen=True)
class WholeGraph(Batch):
    """The whole graph, with validation and test targets as indices.

    Attributes:
        val: validation targets, [their number].
        test: test targets, [their number].
    """

    val: Tensor
    test: Tensor

    @classmethod
    def _parts(cls, data: Data, device: torch.device) -> dict[str, Tensor]:
        return {part: data[f"{part}_mask"].nonzero().view(-1).to(device) for part in ("val", "test")}


def inputs(model: torch.nn.Module, edge_weight: Tensor | None, batch: Tensor | None) -> dict[str, Tensor]:
    """``edge_weight`` and ``batch``, where there are some and the model's forward takes an argument so named."""
    given = {"edge_weight": edge_weight, "batch": batch}
    # PyG's Sequential has the names in its own signature.
    takes = model.signature.param_dict if isinstance(model, Sequential) else signature(model.forward).parameters
    return {name: value for name, value in given.items() if value is not None and name in takes}


def pool(scores: Tensor, graph: Tensor | None, graphs: int) -> Tensor:
    """Scores [n, outputs] or [n] as [n, outputs]; where the graph of each node is given, the mean of each graph's."""
    if scores.dim() == 1:
        scores = scores[:, None]
    return scores if graph is None else scatter(scores, graph, dim=0, dim_size=graphs, reduce="mean")


def check_graph(data: Data) -> None:
    """Refuse what cannot be trained on: targets that are missing or unknown, and masks that do not fit them."""
    for name in ("x", "edge_index", "y"):
        if not isinstance(getattr(data, name, None), Tensor):
            raise InputError(f"data.{name} is missing: give a PyG Data with x, edge_index, y and the three masks")
    if data.y.dim() > 2 or (data.y.dim() == 2 and data.y.size(1) != 1):
        raise InputError(f"data.y has shape {list(data.y.shape)}: give one target a node, [n], or a graph, [graphs]")
    graphs = int(data.batch.max()) + 1 if getattr(data, "batch", None) is not None else None
    if len(data.y) not in (len(data.x), graphs):
        either = "" if graphs is None else f", or one for each of the {graphs} graphs of data.batch"
        raise InputError(f"data.y has {len(data.y)} entries: give one for each of the {len(data.x)} nodes{either}")
    known = ~data.y.isnan() if data.y.is_floating_point() else data.y >= 0
    for name in MASKS:
        mask = getattr(data, name, None)
        if mask is None:
            raise InputError(
                f"data.{name} is missing: add three boolean masks, or take data.load(...).split(seed), or "
                "data.from_pyg(data).split(seed)"
            )
        if mask.dim() == 2:
            raise InputError(f"data.{name} holds {mask.size(1)} splits: choose one, as data.{name}[:, 0]")
        if mask.dtype != torch.bool or mask.shape != (len(data.y),):
            raise InputError(
                f"data.{name} is {mask.dtype} of shape {list(mask.shape)}: give booleans, one for each of the "
                f"{len(data.y)} entries of y"
            )
        if not bool(mask.any()):
            raise InputError(f"data.{name} is empty: mark at least one target in it")
        if bool((mask & ~known.view(-1)).any()):
            raise InputError(f"data.{name} marks a target that is unknown (-1 or NaN): unmark it")


def clusters_of(settings: TrainConfig, graph: Data, rank: int, workers: int) -> Clusters | None:
    """The clusters that a configuration asks for; None for full batch."""
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
    """Refuse what can be passed over only once."""
    if isinstance(loader, Iterator):
        raise InputError(
            "the loader is an iterator, which is used up after one epoch: give something that can be passed over once "
            "an epoch, such as a NeighborLoader or data.clusters(...)"
        )


def check_batch(batch: Any, weighted: bool) -> Data:
    """A loader's batch, if it has what training needs: weights, too, where the graph that is judged has them."""
    missing = [key for key in ("x", "edge_index", "y", "train_mask") if getattr(batch, key, None) is None]
    if missing:
        raise InputError(
            f"a batch of the loader has no {missing[0]}: give PyG Data with x, edge_index, y and train_mask, such as a "
            "loader of data.load(...).split(...) yields"
        )
    if weighted and getattr(batch, "edge_weight", None) is None:
        raise InputError(
            "a batch of the loader has no edge_weight, but the graph has, by which the model is judged: keep it in the "
            "batches, or leave it out of the graph"
        )
    found: Data = batch
    return found
