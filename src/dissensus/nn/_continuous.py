"""Continuous-depth models: encode, integrate a field, decode."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dissensus.errors import InputError, one_of
from dissensus.graph import Graph, SparseFeatures, build
from dissensus.nn._coders import Decoder, Encoder, check_dropout, check_sizes
from dissensus.nn._model import Model
from dissensus.solve import GRADIENTS, METHODS, Adjoint, Field, Solution, solve


@dataclass(frozen=True)
class Context:
    """The graph that a forward pass runs on.

    Attributes:
        graph: the pattern of its communication matrix.
        weight: positive edge weights on the pattern's entries, [entries], or None.
        sizes: number of nodes of each graph of a batch; empty for one graph.
    """

    graph: Graph
    weight: Tensor | None
    sizes: tuple[int, ...]


class ContinuousModel(Model):
    """A model whose depth is time: ``decode(x(T))`` with ``dx/dt = field(x)`` and ``x(0) = encode(features)``.

    A subclass says what the field is; everything else, the solver and its gradients included, is shared, so that a
    comparison of two models compares their dynamics.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the state (the number of options).
        out_channels: number of classes.
        time: T, the end of the integration.
        method: the solver, by name (see :func:`dissensus.solve.solve`).
        step_size: of the fixed-step methods.
        rtol: relative tolerance of the adaptive methods.
        atol: absolute tolerance of the adaptive methods.
        gradient: ``discrete``, ``autograd`` or ``adjoint``.
        adjoint_method: solver of the continuous adjoint; None takes ``method``.
        adjoint_step_size: its step; None takes ``step_size``.
        encoder: ``linear``, or ``mlp`` with two residual layers.
        decoder: the same.
        dropout: before the decoder, and within residual layers.
        input_dropout: on the features.
        self_loops: every node listens to itself. Without, only nodes that listen to nobody do.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        time: float,
        method: str,
        step_size: float,
        rtol: float,
        atol: float,
        gradient: str,
        adjoint_method: str | None,
        adjoint_step_size: float | None,
        encoder: str,
        decoder: str,
        dropout: float,
        input_dropout: float,
        self_loops: bool,
    ) -> None:
        super().__init__()
        check_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_dropout(dropout=dropout, input_dropout=input_dropout)
        if not time > 0:
            raise InputError(f"time is {time}: it must be positive (T > 0)")
        if not step_size > 0:
            raise InputError(f"step_size is {step_size}: it must be positive")
        self.in_channels, self.hidden_channels, self.out_channels = in_channels, hidden_channels, out_channels
        self.time, self.step_size, self.rtol, self.atol = time, step_size, rtol, atol
        self.method = one_of("method", method, METHODS)
        self.gradient: Any = one_of("gradient", gradient, GRADIENTS)
        self.adjoint = Adjoint(adjoint_method, adjoint_step_size)
        self.self_loops = self_loops
        self.encoder = Encoder(in_channels, hidden_channels, encoder, input_dropout, dropout)
        self.decoder = Decoder(hidden_channels, out_channels, decoder, dropout)

    @abstractmethod
    def field(self, x0: Tensor, context: Context) -> Field:
        """The vector field for the encoded state x0 [n, hidden_channels]."""

    def start(self, x0: Tensor) -> Tensor:
        """The initial state of the integration, from the encoded features."""
        return x0

    def read(self, state: Tensor) -> Tensor:
        """The part of the state that is decoded, [n, hidden_channels]."""
        return state

    def integrate(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        time: float | None = None,
        **options: Any,
    ) -> Solution:
        """Encode and solve up to ``time`` (T by default); ``options`` go to :func:`dissensus.solve.solve`."""
        x = self.check_features(x)
        context = self.context(x.shape[0], edge_index, edge_weight, batch)
        x0 = self.encoder(x)
        return solve(
            self.field(x0, context),
            self.start(x0),
            self.time if time is None else time,
            self.method,
            step_size=self.step_size,
            rtol=self.rtol,
            atol=self.atol,
            gradient=self.gradient,
            adjoint=self.adjoint,
            **options,
        )

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
            edge_index: [2, edges], from source to target.
            edge_weight: positive weights, [edges].
            batch: the graph of each node, [n], ascending, where several graphs are batched.

        Returns:
            [n, out_channels]
        """
        return self.decoder(self.read(self.integrate(x, edge_index, edge_weight, batch).state))

    def trajectory(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        times: Sequence[float],
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Hidden states at ``times`` (any order, beyond T as well): [len(times), n, hidden_channels]."""
        times = [float(t) for t in times]
        if not times or min(times) < 0:
            raise InputError(f"times = {times}: give at least one, none negative")
        end = max(times)
        if end == 0.0:
            return torch.stack([self.encoder(self.check_features(x))] * len(times))
        solution = self.integrate(x, edge_index, edge_weight, batch, time=end, save_at=times)
        return torch.stack([self.read(state) for state in solution.saved])

    def context(self, n: int, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None) -> Context:
        """The checked graph of a forward pass on n nodes."""
        graph = build(edge_index, n, self_loops=self.self_loops)
        weight = graph.values(edge_weight)
        if weight is not None and not bool((torch.isfinite(weight) & (weight > 0)).all()):
            raise InputError("edge_weight must be positive and finite: drop the edges whose weight is not")
        return Context(graph, weight, _sizes(batch, n))


def _sizes(batch: Tensor | None, n: int) -> tuple[int, ...]:
    if batch is None:
        return ()
    if batch.shape != (n,) or bool((batch[1:] < batch[:-1]).any()):
        raise InputError(f"batch must hold the graph of each of the {n} nodes in ascending order, as PyG's Batch does")
    sizes = torch.bincount(batch).tolist()
    return tuple(sizes) if len(sizes) > 1 else ()
