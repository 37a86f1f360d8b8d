"""Discrete-depth models, at any depth, on PyG's layers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import DiffGroupNorm, PairNorm

from dissensus.errors import InputError, one_of
from dissensus.graph import Graph, SparseFeatures, build, check_normalize, dropout, row_sums
from dissensus.nn._coders import check_dropout, check_sizes
from dissensus.nn._continuous import checked_weight, sizes_of
from dissensus.nn._layers import Attention, Convolution, Dense, Sage
from dissensus.nn._model import Model, quarters
from dissensus.nn._propagation import Propagation, project, symmetric_values

NORMS = ("none", "pair", "group")


class DiscreteModel(Model):
    """A model whose depth is a number of layers.

    A subclass says how edges are weighted and what the states are, layer by layer.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states.
        out_channels: number of classes.
        num_layers: depth.
        dropout: after every layer but the last.
        input_dropout: on the features.
        normalize_features: every node's features at Euclidean norm one, for bags of words: True divides by the norm,
            ``"hellinger"`` takes the root of their shares (see :func:`dissensus.graph.features`).
    """

    self_loops = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        normalize_features: bool | str = False,
    ) -> None:
        super().__init__()
        check_sizes(
            in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels, num_layers=num_layers
        )
        check_dropout(dropout=dropout, input_dropout=input_dropout)
        check_normalize(normalize_features)
        self.in_channels, self.num_layers = in_channels, num_layers
        self.dropout, self.input_dropout, self.normalize_features = dropout, input_dropout, normalize_features

    @abstractmethod
    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        """Scores [n, out_channels] from checked features, after input dropout."""

    @abstractmethod
    def states(
        self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None
    ) -> Iterator[Tensor | SparseFeatures]:
        """The states 0 (the features) to ``num_layers``, one after another."""

    def weigh(self, graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """The values that messages are weighted with, [entries], from positive edge weights."""
        return symmetric_values(graph.pattern, weight, dtype)

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Scores of the classes.

        Args:
            x: node features, [n, in_channels], dense or sparse.
            edge_index: [2, edges], from source to target; a repeated edge counts once.
            edge_weight: positive weights, [edges].
            batch: the graph of each node, [n], ascending, where several graphs are batched.

        Returns:
            [n, out_channels]
        """
        return self.scores(*self._prepare(x, edge_index, edge_weight, batch))

    def trajectory(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        times: Sequence[float],
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """The states after the layers ``times``, whole numbers from 0 (the features) to ``num_layers``.

        They must have one width: hidden layers, 1 to ``num_layers - 1``, always do.

        Returns:
            [len(times), n, channels]
        """
        wrong = [t for t in times if not (0 <= t <= self.num_layers and t == int(t))]
        if wrong or not len(times):
            raise InputError(f"times = {list(times)}: name layers, whole numbers from 0 to {self.num_layers}")
        wanted = {int(t) for t in times}
        states = {}
        for layer, state in enumerate(self.states(*self._prepare(x, edge_index, edge_weight, batch))):
            if layer in wanted:
                states[layer] = state.to_dense() if isinstance(state, SparseFeatures) else state
        if len({state.shape[1] for state in states.values()}) > 1:
            raise InputError(
                f"times = {list(times)}: these layers have different widths; ask for hidden ones together (1 to "
                f"{self.num_layers - 1}), and for the features (0) and the scores ({self.num_layers}) on their own"
            )
        return torch.stack([states[int(t)] for t in times])

    def _prepare(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
    ) -> tuple[Tensor | SparseFeatures, Propagation, Tensor | None]:
        x = self.check_features(x)
        sizes_of(batch, x.shape[0])
        propagation = self._propagation(x, edge_index, edge_weight)
        if isinstance(x, SparseFeatures):
            return x.dropout(self.input_dropout, self.training), propagation, batch
        return dropout(x, self.input_dropout, self.training), propagation, batch

    def _propagation(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None) -> Propagation:
        graph = build(edge_index, x.shape[0], self_loops=self.self_loops)
        weight = graph.values(checked_weight(edge_weight, x.dtype))
        return Propagation(graph.pattern, self.weigh(graph, weight, x.dtype))


class StackedModel(DiscreteModel):
    """A stack of layers ``X <- dropout(activation(norm(layer(X))))``; the last layer gives the scores.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states.
        out_channels: number of classes.
        options: of :class:`DiscreteModel`.
    """

    activation = staticmethod(torch.relu)

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        widths = [in_channels, *[hidden_channels] * (self.num_layers - 1), out_channels]
        layers = (self.layer(widths[i], widths[i + 1], i == self.num_layers - 1) for i in range(self.num_layers))
        self.layers = torch.nn.ModuleList(layers)

    @abstractmethod
    def layer(self, in_channels: int, out_channels: int, last: bool) -> torch.nn.Module:
        """A layer that takes (x, propagation)."""

    def normalize(self, x: Tensor, i: int, batch: Tensor | None) -> Tensor:
        """What comes between hidden layer i and the activation."""
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


class GCN(StackedModel):
    r"""Graph convolutional network, `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_ (Kipf and Welling, 2017).

    .. math::
        X \leftarrow \operatorname{relu}(\operatorname{norm}(\hat A X W^\top + b)), \qquad
        \hat A = D^{-1/2} (A + I) D^{-1/2}

    with one of two normalisations against oversmoothing, or none: ``pair``, `"PairNorm"
    <https://arxiv.org/abs/1909.12223>`_ (Zhao and Akoglu, 2020), which keeps the mean squared distance between the
    nodes of a graph (in a batch: give ``batch``), and ``group``, `"differentiable group normalisation"
    <https://arxiv.org/abs/2006.06972>`_ (Zhou et al., 2020), whose statistics are of all nodes in training and running
    means in evaluation.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states.
        out_channels: number of classes.
        norm: ``none``, ``pair`` or ``group``.
        groups: number of groups of ``group``.
        group_weight: factor of the normalised states that ``group`` adds.
        options: of :class:`DiscreteModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        norm: str = "none",
        groups: int = 10,
        group_weight: float = 0.01,
        **options: Any,
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

    def layer(self, in_channels: int, out_channels: int, last: bool) -> torch.nn.Module:
        return Convolution(in_channels, out_channels)

    def normalize(self, x: Tensor, i: int, batch: Tensor | None) -> Tensor:
        if self.norm == "none":
            return x
        return self.norms[i](x, batch) if self.norm == "pair" else self.norms[i](x)


class GAT(StackedModel):
    r"""Graph attention network, `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_ (Veličković et al.,
    2018).

    .. math::
        X \leftarrow \operatorname{elu}\big(\Vert_h A^{(h)} X W_h^\top + b\big), \qquad
        a^{(h)}_{ij} = \operatorname{softmax}_j \operatorname{leakyrelu}(u_h^\top W_h x_i + v_h^\top W_h x_j)

    with the heads side by side in hidden layers and averaged in the last one.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states, all heads together.
        out_channels: number of classes.
        heads: attention heads; divides ``hidden_channels``.
        attention_dropout: on the attention.
        options: of :class:`DiscreteModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    activation = staticmethod(torch.nn.functional.elu)

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = 8,
        attention_dropout: float = 0.5,
        **options: Any,
    ) -> None:
        check_sizes(heads=heads)
        check_dropout(attention_dropout=attention_dropout)
        if hidden_channels % heads:
            raise InputError(
                f"heads = {heads} does not divide hidden_channels = {hidden_channels}: choose hidden_channels = "
                f"{heads * max(1, round(hidden_channels / heads))}"
            )
        self._heads, self._attention_dropout = heads, attention_dropout
        super().__init__(in_channels, hidden_channels, out_channels, **options)

    def layer(self, in_channels: int, out_channels: int, last: bool) -> torch.nn.Module:
        width = out_channels if last else out_channels // self._heads
        return Attention(in_channels, width, self._heads, concat=not last, dropout=self._attention_dropout)

    def weigh(self, graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        return weight

    @torch.no_grad()
    def graphs(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, None]:
        """The first layer's attention, averaged over heads: sparse CSR [n, n], every row sums to one; and None."""
        x, first = self.check_features(x), self.layers[0]
        assert isinstance(first, Attention)
        propagation = self._propagation(x, edge_index, edge_weight)
        return propagation.pattern.matrix(first.attention(first.projected(x), propagation).mean(1)), None


class SAGE(StackedModel):
    r"""GraphSAGE with mean aggregation, `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ (Hamilton et al., 2017).

    .. math::
        X_i \leftarrow \operatorname{relu}(W_1 \operatorname{mean}_{j \to i} X_j + b + W_2 X_i)

    The mean is weighted where edges have weights; a node that listens to nobody has mean zero.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states.
        out_channels: number of classes.
        options: of :class:`DiscreteModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    self_loops = False

    def layer(self, in_channels: int, out_channels: int, last: bool) -> torch.nn.Module:
        return Sage(in_channels, out_channels)

    def weigh(self, graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        pattern = graph.pattern
        weight = torch.ones(pattern.entries, dtype=dtype, device=pattern.device) if weight is None else weight
        given = weight * ~graph.added  # the graph gives a loop to nodes without neighbours; here they have none
        return given / row_sums(pattern, weight).index_select(0, pattern.row)


class MLP(StackedModel):
    r"""Layers :math:`X \leftarrow \operatorname{relu}(X W^\top + b)`, blind to the graph.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states.
        out_channels: number of classes.
        options: of :class:`DiscreteModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] (not used) -> scores [n, out_channels]
    """

    def layer(self, in_channels: int, out_channels: int, last: bool) -> torch.nn.Module:
        return Dense(in_channels, out_channels)


class SGC(DiscreteModel):
    r"""Simple graph convolution, `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_ (Wu
    et al., 2019).

    .. math::
        \hat A^K X W^\top + b

    As all of it is linear, scores come from :math:`\hat A^K (X W^\top)`: products as wide as there are classes. The
    states of the trajectory are :math:`\hat A^k X`.

    Args:
        in_channels: width of the node features, and of the states.
        hidden_channels: not used: there is no hidden layer.
        out_channels: number of classes.
        num_layers: K.
        input_dropout: on the features.
        normalize_features: as in :class:`DiscreteModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        input_dropout: float = 0.5,
        normalize_features: bool | str = False,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            num_layers=num_layers,
            dropout=0.0,
            input_dropout=input_dropout,
            normalize_features=normalize_features,
        )
        self.linear = torch.nn.Linear(in_channels, out_channels)

    @property
    def milestones(self) -> tuple[float, ...]:
        """Layers from 0 to K, about a quarter of K apart."""
        return tuple(quarters(self.num_layers))

    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        scores = project(self.linear, x)
        for _ in range(self.num_layers):
            scores = propagation(scores)
        return scores + self.linear.bias

    def states(
        self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None
    ) -> Iterator[Tensor | SparseFeatures]:
        state = x.to_dense() if isinstance(x, SparseFeatures) else x
        yield state
        for _ in range(self.num_layers):
            state = propagation(state)
            yield state


class DGC(SGC):
    r"""Decoupled graph convolution, `"Dissecting the Diffusion Process in Linear Graph Convolutional Networks"
    <https://arxiv.org/abs/2102.10739>`_ (Wang et al., 2021).

    .. math::
        P^K X W^\top + b, \qquad P = (1 - T/K)\, I + (T/K)\, \hat A

    K Euler steps of the diffusion :math:`\dot X = (\hat A - I) X` up to time T, which is chosen on its own.

    Args:
        in_channels: width of the node features, and of the states.
        hidden_channels: not used: there is no hidden layer.
        out_channels: number of classes.
        time: T.
        num_layers: K; steps of T/K above 1 overshoot.
        options: ``input_dropout`` and ``normalize_features``, as in :class:`SGC`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        time: float = 5.27,
        num_layers: int = 250,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers=num_layers, **options)
        if not (isfinite(time) and time > 0):
            raise InputError(f"time is {time}: it must be positive and finite (T > 0)")
        self.time = float(time)

    def weigh(self, graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        step = self.time / self.num_layers
        values = step * symmetric_values(graph.pattern, weight, dtype)
        return values.index_add(0, graph.pattern.diagonal, values.new_full((graph.num_nodes,), 1.0 - step))
