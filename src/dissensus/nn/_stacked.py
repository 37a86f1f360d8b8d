"""Stacks of one kind of layer: GCN and its normalisations, GAT, GraphSAGE, MLP."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Unpack

import torch
from torch import Tensor
from torch_geometric.nn import DiffGroupNorm, PairNorm

from dissensus.errors import one_of
from dissensus.graph import SparseFeatures
from dissensus.kernels import dropout
from dissensus.nn._coders import check_dropout, check_heads, check_sizes
from dissensus.nn._discrete import DiscreteModel, DiscreteOptions
from dissensus.nn._layers import Attention, Convolution, Dense, Propagation, Sage
from dissensus.nn._registry import register

NORMS = ("none", "pair", "group")


class StackedModel(DiscreteModel):
    """A stack of layers ``X <- dropout(activation(norm(layer(X))))``; the last layer gives the scores.

    The arguments are those of :class:`DiscreteModel`.
    """

    activation = staticmethod(torch.relu)

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, **options: Unpack[DiscreteOptions]
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        widths = [in_channels, *[hidden_channels] * (self.num_layers - 1), out_channels]
        self.layers = torch.nn.ModuleList(
            self.make(*sizes, last=i == self.num_layers - 1) for i, sizes in enumerate(pairwise(widths))
        )

    def make(self, in_channels: int, out_channels: int, last: bool) -> torch.nn.Module:
        """A layer, called with (x, propagation)."""
        return self.layer(in_channels, out_channels)

    def normalize(self, x: Tensor, i: int, batch: Tensor | None) -> Tensor:
        """The normalisation between hidden layer i and its activation."""
        return x

    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        *_, last = self.states(x, propagation, batch)
        assert isinstance(last, Tensor)
        return last

    def states(
        self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None
    ) -> Iterator[Tensor | SparseFeatures]:
        yield x
        for i, layer in enumerate(self.layers):
            x = layer(x, propagation)
            if i < self.num_layers - 1:
                assert isinstance(x, Tensor)
                x = dropout(self.activation(self.normalize(x, i, batch)), self.dropout, self.training)
            yield x


@register(
    "gcn",
    equation="X ← relu(ÂXW)",
    source="Kipf and Welling 2017, Semi-Supervised Classification with Graph Convolutional Networks",
    tables="homophilic, heterophilic, large, depth, energy",
)
@register(
    "gcn-pairnorm",
    equation="X ← relu(PairNorm(ÂXW))",
    source="Zhao and Akoglu 2020, PairNorm: Tackling Oversmoothing in GNNs",
    tables="homophilic, heterophilic, depth, energy",
    options={"norm": "pair"},
)
@register(
    "gcn-group",
    equation="X ← relu(GroupNorm(ÂXW))",
    source="Zhou et al. 2020, Towards Deeper Graph Neural Networks with Differentiable Group Normalization",
    tables="homophilic, heterophilic, depth, energy",
    options={"norm": "group"},
)
class GCN(StackedModel):
    r"""Graph convolutional network, `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf and Welling, 2017).

    .. math::
        X \leftarrow \operatorname{relu}(\operatorname{norm}(\hat A X W^\top + b)), \qquad
        \hat A = D^{-1/2} (A + I) D^{-1/2}

    Two normalisations against oversmoothing are available: ``pair``, `"PairNorm"
    <https://arxiv.org/abs/1909.12223>`_ (Zhao and Akoglu, 2020), keeps the mean squared distance between the nodes of a
    graph (for several graphs, pass ``batch``); and ``group``, `"differentiable group normalisation"
    <https://arxiv.org/abs/2006.06972>`_ (Zhou et al., 2020), uses the statistics of all nodes in training and running
    means in evaluation.

    Args:
        norm: ``none``, ``pair`` or ``group``.
        groups: number of groups, for ``group``.
        group_weight: weight of the normalised states that ``group`` adds.
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    layer = Convolution

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        norm: str = "none",
        groups: int = 10,
        group_weight: float = 0.01,
        **options: Unpack[DiscreteOptions],
    ) -> None:
        one_of("norm", norm, NORMS)
        check_sizes(groups=groups)
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        hidden = range(self.num_layers - 1)
        if norm == "pair":
            self.norms = torch.nn.ModuleList(PairNorm() for _ in hidden)
        elif norm == "group":
            self.norms = torch.nn.ModuleList(DiffGroupNorm(hidden_channels, groups, group_weight) for _ in hidden)
        self.norm = norm

    def normalize(self, x: Tensor, i: int, batch: Tensor | None) -> Tensor:
        if self.norm == "none":
            return x
        return self.norms[i](x, batch) if self.norm == "pair" else self.norms[i](x)


@register(
    "gat",
    equation="X ← elu(‖_h A_h(X) X W_h)",
    source="Veličković et al. 2018, Graph Attention Networks",
    tables="homophilic, heterophilic, large, depth, energy",
)
class GAT(StackedModel):
    r"""Graph attention network, `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_ (Veličković et al.,
    2018).

    .. math::
        X \leftarrow \operatorname{elu}\big(\Vert_h A^{(h)} X W_h^\top + b\big), \qquad
        a^{(h)}_{ij} = \operatorname{softmax}_j \operatorname{leakyrelu}(u_h^\top W_h x_i + v_h^\top W_h x_j)

    Heads are concatenated in hidden layers and averaged in the last one.

    Args:
        heads: number of attention heads; must divide ``hidden_channels``, the width of the concatenated heads.
        attention_dropout: dropout rate of the attention.
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    layer = Attention
    activation = staticmethod(torch.nn.functional.elu)

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = 8,
        attention_dropout: float = 0.5,
        **options: Unpack[DiscreteOptions],
    ) -> None:
        check_heads(heads, hidden_channels)
        check_dropout(attention_dropout=attention_dropout)
        self._heads, self._attention_dropout = heads, attention_dropout
        super().__init__(in_channels, hidden_channels, out_channels, **options)

    def make(self, in_channels: int, out_channels: int, last: bool) -> torch.nn.Module:
        width = out_channels if last else out_channels // self._heads
        return Attention(in_channels, width, self._heads, concat=not last, dropout=self._attention_dropout)

    @torch.no_grad()
    def graphs(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, None]:
        """The attention of the first layer, averaged over heads, as sparse CSR [n, n]; and None. Rows sum to one."""
        x, first = self.check_features(x), self.layers[0]
        assert isinstance(first, Attention)
        propagation = self._propagation(x, edge_index, edge_weight)
        return propagation.pattern.matrix(first.attention(first.projected(x), propagation).mean(1)), None


@register(
    "sage",
    equation="X_i ← relu(W₁ mean_j X_j + W₂ X_i)",
    source="Hamilton et al. 2017, Inductive Representation Learning on Large Graphs",
    tables="homophilic, heterophilic, depth, energy",
)
class SAGE(StackedModel):
    r"""GraphSAGE with mean aggregation, `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ (Hamilton et al., 2017).

    .. math::
        X_i \leftarrow \operatorname{relu}(W_1 \operatorname{mean}_{j \to i} X_j + b + W_2 X_i)

    Edge weights weight the mean. It is zero for nodes without incoming edges.

    The arguments are those of :class:`DiscreteModel`.
    """

    layer = Sage


@register("mlp", equation="X ← relu(XW)", source="Rosenblatt 1958, The Perceptron")
class MLP(StackedModel):
    r"""Multilayer perceptron, :math:`X \leftarrow \operatorname{relu}(X W^\top + b)`, which ignores the graph.

    The arguments are those of :class:`DiscreteModel`.
    """

    layer = Dense
