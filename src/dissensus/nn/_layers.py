"""PyG's layers on our sparse products. Parameters and results are the same, but no message is stored per edge."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, SAGEConv

from dissensus.graph import Graph, Pattern, SparseFeatures
from dissensus.kernels import dropout


@dataclass(frozen=True)
class Propagation:
    """A sparse n x n matrix: its pattern and its values [entries]. For attention, values are edge weights or None."""

    pattern: Pattern
    values: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """``A X``, differentiable: [n, channels]."""
        assert self.values is not None
        return self.pattern.spmm(self.values, x)


def symmetric_values(pattern: Pattern, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    r"""The entries of :math:`D^{-1/2} A D^{-1/2}`, with D the row sums of A: [entries].

    Args:
        pattern: n x n, self-loops included.
        weight: positive entries of A, [entries]; ones if None.
        dtype: dtype of the result.
    """
    weight = torch.ones(pattern.entries, dtype=dtype, device=pattern.device) if weight is None else weight
    scale = pattern.row_sums(weight).rsqrt()
    return weight * scale.index_select(0, pattern.row) * scale.index_select(0, pattern.col)


def mean_values(graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The entries of the matrix that takes weighted means over neighbours, [entries]; zero for isolated nodes."""
    pattern = graph.pattern
    weight = torch.ones(pattern.entries, dtype=dtype, device=pattern.device) if weight is None else weight
    # build adds a self-loop to isolated nodes, which must not count here.
    return pattern.row_normalize(weight) * ~graph.added


def project(linear: torch.nn.Module, x: Tensor | SparseFeatures) -> Tensor:
    """``X W'`` without the bias: [n, out]."""
    weight = linear.weight
    assert isinstance(weight, Tensor)
    return x.linear(weight) if isinstance(x, SparseFeatures) else x @ weight.t()


class Layer:
    """How a layer uses the graph.

    Attributes:
        self_loops: whether every node gets a self-loop.
    """

    self_loops = True

    @staticmethod
    def weigh(graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """The values of the :class:`Propagation`, from the positive edge weights on the graph's entries."""
        return symmetric_values(graph.pattern, weight, dtype)


class Convolution(Layer, GCNConv):
    r""":math:`\hat A X W^\top + b`; the propagation is :math:`\hat A`."""

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:
        out = propagation(project(self.lin, x))
        return out if self.bias is None else out + self.bias


class InitialResidual(Layer, GCN2Conv):
    r""":math:`H ((1 - \beta) I + \beta W)` of :math:`H = (1 - \alpha) \hat A X + \alpha X_0`."""

    def propagate(self, edge_index: Propagation, *, x: Tensor, edge_weight: None = None) -> Tensor:
        return edge_index(x)


class Sage(Layer, SAGEConv):
    r""":math:`\operatorname{mean}_{j} X_j W_1^\top + b + X W_2^\top`; the propagation takes the mean."""

    self_loops = False
    weigh = staticmethod(mean_values)

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:
        return propagation(project(self.lin_l, x)) + self.lin_l.bias + project(self.lin_r, x)


class Attention(Layer, GATConv):
    r""":math:`A^{(h)} X W_h^\top`, with heads concatenated or averaged, and
    :math:`a^{(h)}_{ij} = \operatorname{softmax}_j \operatorname{leakyrelu}(u_h^\top W_h x_i + v_h^\top W_h x_j)`.

    Edge weights (the values of the propagation) multiply the attention before normalisation.
    """

    @staticmethod
    def weigh(graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        return weight

    def attention(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """[entries, heads], from the projected states [n, heads, channels]."""
        pattern = propagation.pattern
        by_source, by_target = ((projected * a).sum(-1) for a in (self.att_src, self.att_dst))
        scores = by_source.index_select(0, pattern.col) + by_target.index_select(0, pattern.row)
        return pattern.row_softmax(F.leaky_relu(scores, self.negative_slope), propagation.values)

    def projected(self, x: Tensor | SparseFeatures) -> Tensor:
        """[n, heads, channels]"""
        return project(self.lin, x).view(-1, self.heads, self.out_channels)

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:
        projected = self.projected(x)
        weights = dropout(self.attention(projected, propagation), self.dropout, self.training)
        heads = [propagation.pattern.spmm(weights[:, h], projected[:, h]) for h in range(self.heads)]
        return (torch.cat(heads, 1) if self.concat else torch.stack(heads).mean(0)) + self.bias


class Dense(Layer, torch.nn.Linear):
    r""":math:`X W^\top + b`, which ignores the graph."""

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:  # type: ignore[override]
        return project(self, x) + self.bias
