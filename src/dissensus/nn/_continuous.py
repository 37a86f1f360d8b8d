"""Continuous-depth models: encode, integrate a field, decode."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph import Graph, SparseFeatures, build, check_normalize, check_rewiring, rewire
from dissensus.nn._coders import Decoder, Encoder, check_dropout, check_sizes
from dissensus.nn._model import Model, quarters
from dissensus.solve import Adjoint, Field, Solution, check_options, has_fixed_steps, solve


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
        decoder: ``linear``, ``relu`` with a rectifier before it, or ``mlp`` with two residual layers.
        dropout: before the decoder, and within residual layers.
        input_dropout: on the features.
        normalize_features: every node's features at Euclidean norm one, for bags of words: True divides by the norm,
            ``"hellinger"`` takes the root of their shares (see :func:`dissensus.graph.features`).
        self_loops: every node listens to itself. Without, only nodes that listen to nobody do.
        rewire: run on the graph's diffusion in place of the graph ("-rw"; see :func:`dissensus.graph.rewire`): its
            weights multiply the attention before it is normalised.
        rewire_neighbors: entries that a node keeps.
        rewire_restart: restart probability of the diffusion.

    Attributes:
        mesh: the ends of the steps that ``dopri5`` tries first, learned from the last pass in training that a gradient
            went back through; empty before, and for the other methods. It is saved with the parameters.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        time: float = 8.0,
        method: str = "dopri5",
        step_size: float = 1.0,
        rtol: float = 1e-3,
        atol: float = 1e-3,
        gradient: str = "discrete",
        adjoint_method: str | None = None,
        adjoint_step_size: float | None = None,
        encoder: str = "linear",
        decoder: str = "linear",
        dropout: float = 0.3,
        input_dropout: float = 0.5,
        normalize_features: bool | str = False,
        self_loops: bool = True,
        rewire: bool = False,
        rewire_neighbors: int = 64,
        rewire_restart: float = 0.05,
    ) -> None:
        super().__init__()
        check_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_dropout(dropout=dropout, input_dropout=input_dropout)
        check_normalize(normalize_features)
        self.adjoint = Adjoint(adjoint_method, adjoint_step_size)
        check_options(time, method, step_size, rtol, atol, gradient, self.adjoint)
        self.in_channels, self.hidden_channels, self.out_channels = in_channels, hidden_channels, out_channels
        self.time, self.step_size, self.rtol, self.atol = time, step_size, rtol, atol
        self.method, self.gradient = method, gradient
        self.normalize_features, self.self_loops = normalize_features, self_loops
        check_rewiring(rewire_neighbors, rewire_restart)
        self.rewiring = {"neighbors": rewire_neighbors, "restart": rewire_restart} if rewire else None
        self.encoder = Encoder(in_channels, hidden_channels, encoder, input_dropout, dropout)
        self.decoder = Decoder(hidden_channels, out_channels, decoder, dropout)
        # Where the solver steps, learned from the last pass that a gradient went back through in training. Like the
        # parameters it is saved and, until the next gradient, kept: a result does not depend on what was asked before.
        self.mesh: tuple[float, ...] = ()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.mesh = ()

    def get_extra_state(self) -> Tensor:
        """The solver's mesh, for ``state_dict``."""
        return self.decoder.linear.weight.new_tensor(self.mesh)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the solver's mesh from ``state_dict``."""
        self.mesh = tuple(state.tolist())

    @abstractmethod
    def field(self, x0: Tensor, context: Context) -> Field:
        """The vector field for the encoded state x0 [n, hidden_channels]."""

    def start(self, x0: Tensor) -> Tensor:
        """The initial state of the integration, from the encoded features."""
        return x0

    def read(self, state: Tensor) -> Tensor:
        """The part of the state that is decoded, [n, hidden_channels]."""
        return state

    def problem(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
    ) -> tuple[Field, Tensor]:
        """The field and the initial state that features and graph give."""
        x = self.check_features(x)
        context = self.context(x.shape[0], edge_index, edge_weight, batch)
        x0 = self.encoder(x)
        return self.field(x0, context), self.start(x0)

    def full_precision(self) -> torch.autocast:
        """Autocast off: sparse products and the error control of solvers need the model's own precision."""
        return torch.autocast(self.decoder.linear.weight.device.type, enabled=False)

    # Sparse products and step-size control are not for tracing; what remains is the decoder.
    @torch.compiler.disable
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
        with self.full_precision():
            field, start = self.problem(x, edge_index, edge_weight, batch)
            solution = solve(
                field,
                start,
                self.time if time is None else time,
                self.method,
                step_size=self.step_size,
                rtol=self.rtol,
                atol=self.atol,
                gradient=self.gradient,
                adjoint=self.adjoint,
                mesh=self.mesh,
                **options,
            )
        if self.training and solution.state.requires_grad:
            solution.state.register_hook(partial(self._learn_mesh, solution.mesh))
        return solution

    def _learn_mesh(self, mesh: tuple[float, ...], grad: Tensor) -> None:
        # Rounded as it will be saved.
        self.mesh = tuple(self.decoder.linear.weight.new_tensor(mesh).tolist())

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
        return self.decoder(self.read(self.final(x, edge_index, edge_weight, batch)))

    def final(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
    ) -> Tensor:
        """The state whose readout is decoded: x(T)."""
        return self.integrate(x, edge_index, edge_weight, batch).state

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
            start = self.problem(x, edge_index, edge_weight, batch)[1]
            return torch.stack([self.read(start)] * len(times))
        solution = self.integrate(x, edge_index, edge_weight, batch, time=end, save_at=times)
        return torch.stack([self.read(state) for state in solution.saved])

    @property
    def milestones(self) -> tuple[float, ...]:
        """Times from 0 to T, a quarter of T apart; of a fixed-step method the nearest ends of its steps."""
        if not has_fixed_steps(self.method):
            return tuple(self.time * k / 4 for k in range(5))
        # Stopping elsewhere would cut a step in two, and so change where the model ends.
        *before, _ = quarters(math.ceil(self.time / self.step_size - 1e-9))
        return *(self.step_size * k for k in before), self.time

    def context(self, n: int, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None) -> Context:
        """The checked graph of a forward pass on n nodes."""
        weight = checked_weight(edge_weight, self.decoder.linear.weight.dtype)
        if self.rewiring is not None:
            edge_index, weight = rewire(edge_index, n, weight, **self.rewiring)
            weight = weight.to(self.decoder.linear.weight.dtype)
        graph = build(edge_index, n, self_loops=self.self_loops)
        return Context(graph, graph.values(weight), sizes_of(batch, n))


def checked_weight(edge_weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Positive edge weights in the model's precision, or an error that says what is wrong."""
    if not isinstance(edge_weight, Tensor) or not edge_weight.is_floating_point():
        return edge_weight  # of another type: the graph refuses it, and says why
    if not bool((torch.isfinite(edge_weight) & (edge_weight > 0)).all()):
        raise InputError("edge_weight must be positive and finite: drop the edges whose weight is not")
    return edge_weight.to(dtype)


def sizes_of(batch: Tensor | None, n: int) -> tuple[int, ...]:
    """Number of nodes of each graph of a batch; empty for one graph."""
    if batch is None:
        return ()
    whole = isinstance(batch, Tensor) and batch.dtype in (torch.int64, torch.int32) and batch.shape == (n,)
    if not whole or bool((batch[1:] < batch[:-1]).any()) or bool((batch[:1] < 0).any()):
        raise InputError(
            f"batch must hold the graph of each of the {n} nodes, whole numbers in ascending order from 0, as PyG's "
            "Batch does"
        )
    sizes = torch.bincount(batch).tolist()
    return tuple(sizes) if len(sizes) > 1 else ()
