"""Label propagation and feature propagation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import torch
from torch import Tensor
from torch_geometric.data import Data

from dissensus.errors import InputError
from dissensus.graph import SparseFeatures, build
from dissensus.nn._coders import check_sizes
from dissensus.nn._continuous import checked_weight
from dissensus.nn._discrete import DiscreteModel, DiscreteOptions, check_share
from dissensus.nn._layers import Layer, Propagation, symmetric_values
from dissensus.nn._registry import register
from dissensus.nn._stacked import GCN
from dissensus.runtime import Cache

# Features filled in, by the iterations that this took.
_FILLED: Cache[Tensor] = Cache(2)


class Neighbours(Layer):
    """Symmetric normalisation without self-loops."""

    self_loops = False


@register(
    "label-propagation",
    equation="Y ← αÂY + (1-α)Y(0), Y(0) the training labels",
    source="Zhou et al. 2004, Learning with Local and Global Consistency",
)
class LabelPropagation(DiscreteModel):
    r"""Label propagation, `"Learning with Local and Global Consistency"
    <https://papers.nips.cc/paper/2506-learning-with-local-and-global-consistency>`_ (Zhou et al., 2004).

    .. math::
        Y \leftarrow \alpha\, D^{-1/2} A D^{-1/2}\, Y + (1 - \alpha)\, Y(0)

    where Y(0) has the one-hot training labels and is zero at all other nodes. In a regression, the targets and a one
    for each are propagated, and the prediction is their ratio, a weighted mean of the training targets. The model
    ignores features and has no parameters, so there is nothing to train: :meth:`prepare` sets the labels.

    Args:
        in_channels: not used.
        hidden_channels: not used.
        out_channels: number of classes.
        alpha: weight of the neighbours.
        num_layers: number of propagation steps.

    Shapes:
        any features, ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    layer = Neighbours
    graph_buffers = ("labels",)
    labels: Tensor | None

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, alpha: float = 0.9, num_layers: int = 50
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers=num_layers, dropout=0.0)
        check_share(alpha=alpha)
        self.alpha, self.out_channels = alpha, out_channels
        self.register_buffer("labels", None)

    @property
    def bound_nodes(self) -> int | None:
        """Number of nodes of the graph whose labels are propagated."""
        return None if self.labels is None else len(self.labels)

    def prepare(self, data: Data) -> None:
        """Take the training labels of a PyG ``Data`` with ``y`` and ``train_mask``."""
        if data.batch is not None:
            raise InputError(
                "label propagation spreads labels from node to node, but here each graph has one: choose another model"
            )
        known = data.y[data.train_mask]
        if known.is_floating_point():
            labels = torch.zeros(data.num_nodes, 2)
            labels[data.train_mask] = torch.stack([known, torch.ones_like(known)], dim=1).to(labels)
        else:
            labels = torch.zeros(data.num_nodes, self.out_channels)
            labels[data.train_mask, known] = 1.0
        self.labels = labels.to(data.x)

    def check_features(self, x: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
        return x

    def states(
        self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None
    ) -> Iterator[Tensor | SparseFeatures]:
        if self.labels is None or len(self.labels) != x.shape[0]:
            raise InputError("label propagation needs the training labels of this graph: call model.prepare(data)")
        state = self.labels
        yield state
        for _ in range(self.num_layers):
            state = self.alpha * propagation(state) + (1.0 - self.alpha) * self.labels
            yield state

    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        *_, last = self.states(x, propagation, batch)
        assert isinstance(last, Tensor)
        assert self.labels is not None
        if last.size(1) == self.out_channels:
            return last
        # A node that no training target reaches gets their mean.
        sums = torch.where(last[:, 1:] > 0, last, self.labels.sum(0))
        return sums[:, :1] / sums[:, 1:]


@register(
    "feature-propagation",
    equation="a GCN on features filled in by X ← ÂX",
    source="Rossi et al. 2022, On the Unreasonable Effectiveness of Feature Propagation",
)
class FeaturePropagation(GCN):
    r"""Feature propagation followed by a GCN, `"On the Unreasonable Effectiveness of Feature propagation in Learning on
    Graphs with Missing Node Features" <https://arxiv.org/abs/2111.12128>`_ (Rossi et al., 2022).

    .. math::
        X \leftarrow D^{-1/2} A D^{-1/2} X, \qquad X_{\text{known}} \leftarrow X_{\text{known}}(0)

    fills in the missing features. A node whose features are all zero counts as missing. The result is the input of a
    :class:`GCN`.

    Args:
        iterations: number of propagation steps.
        in_channels, hidden_channels, out_channels, options: see :class:`GCN`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        iterations: int = 40,
        **options: Unpack[DiscreteOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        check_sizes(iterations=iterations)
        self.iterations = iterations

    def _prepare(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
    ) -> tuple[Tensor | SparseFeatures, Propagation, Tensor | None]:
        return super()._prepare(self.fill(x, edge_index, edge_weight), edge_index, edge_weight, batch)

    def fill(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """The features [n, in_channels] with every missing row filled in."""
        checked = self.check_features(x)
        # A training loop passes the same features every epoch.
        of_x: tuple[Tensor, ...] = (
            (checked.values, checked.pattern.row, checked.pattern.col)
            if isinstance(checked, SparseFeatures)
            else (checked,)
        )
        key, parts = (self.iterations, *checked.shape), (*of_x, edge_index, edge_weight)
        known = None if of_x[0].requires_grad else _FILLED.get(key, parts)
        if known is not None:
            return known
        start = checked.to_dense() if isinstance(checked, SparseFeatures) else checked
        graph = build(edge_index, start.shape[0], self_loops=False)
        weight = graph.values(checked_weight(edge_weight, start.dtype))
        propagation = Propagation(graph.pattern, symmetric_values(graph.pattern, weight, start.dtype))
        state, is_known = start, start.ne(0).any(1, keepdim=True)
        for _ in range(self.iterations):
            state = torch.where(is_known, start, propagation(state))
        return state if start.requires_grad else _FILLED.put(key, parts, state)
