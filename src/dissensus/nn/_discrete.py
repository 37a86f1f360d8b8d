"""The base classes of models whose depth is a number of layers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph import Graph, SparseFeatures, build, check_normalize
from dissensus.kernels import dropout
from dissensus.nn._coders import check_dropout, check_sizes
from dissensus.nn._continuous import checked_weight, sizes_of
from dissensus.nn._layers import Layer, Propagation, project
from dissensus.nn._model import Model, quarters


class LayerOptions(TypedDict, total=False):
    """Keywords of :class:`DiscreteModel` other than ``num_layers``."""

    dropout: float
    input_dropout: float
    normalize_features: bool | str


class DiscreteOptions(LayerOptions, total=False):
    """Keywords of :class:`DiscreteModel`."""

    num_layers: int


class DiscreteModel(Model):
    """A model whose depth is a number of layers.

    A subclass defines the states layer by layer, and the class of its ``layer``
    (:class:`~dissensus.nn._layers.Layer`), which defines the weights of messages.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: dropout rate after every layer but the last.
        input_dropout: dropout rate of the features.
        normalize_features: scale the features of each node to Euclidean norm one, which suits bags of words. True
            divides them by their norm; ``"hellinger"`` divides by their sum and takes the square root (see
            :func:`dissensus.graph.features`).

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    layer: Any = Layer

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
        """Scores [n, out_channels] from features that were checked and dropped out."""

    @abstractmethod
    def states(
        self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None
    ) -> Iterator[Tensor | SparseFeatures]:
        """The states one by one, from 0 (the features) to ``num_layers``."""

    def weigh(self, graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """The weights of the messages, [entries], from positive edge weights."""
        return self.layer.weigh(graph, weight, dtype)

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
            edge_index: [2, edges], from source to target; repeated edges count once.
            edge_weight: positive weights, [edges].
            batch: index of the graph that each node belongs to, [n], in ascending order; None for a single graph.

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
        """The states after the layers ``times``, integers from 0 (the features) to ``num_layers``.

        All these states must have the same width. Hidden layers, 1 to ``num_layers - 1``, always do.

        Returns:
            [len(times), n, channels]
        """
        wrong = [t for t in times if not (0 <= t <= self.num_layers and t == int(t))]
        if wrong or not len(times):
            raise InputError(f"times is {list(times)}: give layers, as integers from 0 to {self.num_layers}")
        wanted = {int(t) for t in times}
        states = {}
        for layer, state in enumerate(self.states(*self._prepare(x, edge_index, edge_weight, batch))):
            if layer in wanted:
                states[layer] = state.to_dense() if isinstance(state, SparseFeatures) else state
        if len({state.shape[1] for state in states.values()}) > 1:
            raise InputError(
                f"times is {list(times)}, and these layers have different widths: ask for the hidden layers (1 to "
                f"{self.num_layers - 1}), the features (0) and the scores ({self.num_layers}) separately"
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
        graph = build(edge_index, x.shape[0], self_loops=self.layer.self_loops)
        weight = graph.values(checked_weight(edge_weight, x.dtype))
        return Propagation(graph.pattern, self.weigh(graph, weight, x.dtype))


class EncodedModel(DiscreteModel):
    """A linear encoder, ``num_layers`` layers of equal width, and a linear decoder. A subclass defines the layer.

    The arguments are those of :class:`DiscreteModel`.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, **options: Unpack[DiscreteOptions]
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.encoder = torch.nn.Linear(in_channels, hidden_channels)
        self.decoder = torch.nn.Linear(hidden_channels, out_channels)

    @property
    def milestones(self) -> tuple[float, ...]:
        """At most five layers from 1 to ``num_layers``, evenly spaced."""
        return tuple(k for k in quarters(self.num_layers) if k)

    def encode(self, x: Tensor | SparseFeatures) -> Tensor:
        """The first hidden state, [n, hidden_channels]."""
        return torch.relu(project(self.encoder, x) + self.encoder.bias)

    def step(self, x: Tensor, x0: Tensor, i: int, propagation: Propagation) -> Tensor:
        """The state after layer i = 0, 1, ..., from the state before it and the encoded features."""
        raise NotImplementedError

    def hidden(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Iterator[Tensor]:
        """The states after the encoder and after each layer."""
        x0 = state = self.encode(x)
        yield state
        for i in range(self.num_layers):
            state = self.step(dropout(state, self.dropout, self.training), x0, i, propagation)
            yield state

    def states(
        self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None
    ) -> Iterator[Tensor | SparseFeatures]:
        yield x
        _, *layers = self.hidden(x, propagation)
        yield from layers

    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        *_, last = self.hidden(x, propagation)
        return self.decoder(dropout(last, self.dropout, self.training))


def check_share(**shares: float) -> None:
    """Raise an error for shares outside [0, 1]."""
    for name, share in shares.items():
        if not 0.0 <= share <= 1.0:
            raise InputError(f"{name} is {share}: give a number from 0 to 1")
