"""What one step of training works on: the whole graph, clusters of its nodes, or what a loader samples."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from dissensus import data
from dissensus.data import Clusters
from dissensus.errors import InputError
from dissensus.nn import Model
from dissensus.train._config import TrainConfig


@dataclass(frozen=True)
class Batch:
    """A graph, or a piece of one, on the device it is trained on.

    Attributes:
        x: node features, [n, features].
        edge_index: [2, edges].
        edge_weight: positive weights, [edges]; None where edges have none.
        y: classes, [n]; -1 where unknown.
        sources: which nodes are for training, [n], boolean.
        train: the nodes whose loss counts, [their number].
        graph: the graph of each node, [n], where PyG has batched several; otherwise None.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    y: Tensor
    sources: Tensor
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
        return cls(
            x=data.x.to(device, dtype),
            edge_index=data.edge_index.to(device),
            edge_weight=None if weight is None else weight.to(device, dtype),
            y=data.y.to(device),
            sources=data.train_mask.to(device),
            train=train.to(device),
            graph=None if graph is None else graph.to(device),
            **cls._parts(data, device),
        )

    @classmethod
    def _parts(cls, data: Data, device: torch.device) -> dict[str, Tensor]:
        return {}

    def prepare(self, model: Model) -> None:
        """GRAND++ draws its source from the training nodes, which only the split knows; without any, from all."""
        set_sources = getattr(model, "set_sources", None)
        if set_sources is not None:
            set_sources(self.sources if bool(self.sources.any()) else None)

    def scores(self, model: Model, forward: Callable[..., Tensor] | None = None) -> Tensor:
        """The model's scores, [n, classes]; ``forward`` is what to call where it is not the model itself."""
        self.prepare(model)
        return (forward or model)(self.x, self.edge_index, self.edge_weight, batch=self.graph)

    def loss(self, scores: Tensor, nodes: Tensor) -> Tensor:
        """Mean cross entropy of scores [n, classes] on some nodes."""
        return F.cross_entropy(scores.index_select(0, nodes), self.y.index_select(0, nodes))


@dataclass(frozen=True)
class Split(Batch):
    """The whole graph, with validation and test nodes as indices.

    Attributes:
        val: validation nodes, [their number].
        test: test nodes, [their number].
    """

    val: Tensor
    test: Tensor

    @classmethod
    def _parts(cls, data: Data, device: torch.device) -> dict[str, Tensor]:
        return {part: data[f"{part}_mask"].nonzero().view(-1).to(device) for part in ("val", "test")}


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
