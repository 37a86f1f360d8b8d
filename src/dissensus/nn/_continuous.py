"""Continuous-depth models: encode, integrate a field, decode."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypedDict

import torch
from torch import Tensor

from dissensus.errors import InputError, one_of
from dissensus.graph import Graph, SparseFeatures, build, check_normalize, rewire
from dissensus.nn._coders import Decoder, Encoder, check_dropout, check_sizes
from dissensus.nn._model import Model, quarters
from dissensus.runtime import exporting
from dissensus.solve import Adjoint, Autograd, Discrete, Field, Solution, solve, solver_named

GRADIENTS = ("discrete", "autograd", "adjoint")

# Cited by the models with rewire=True.
REWIRING = "with graph diffusion, Gasteiger et al. 2019, Diffusion Improves Graph Learning"


@dataclass(frozen=True)
class Context:
    """The graph that a forward pass runs on.

    Attributes:
        graph: the pattern of its communication matrix.
        weight: positive edge weights on the pattern's entries, [entries], or None.
        sizes: number of nodes of each graph in a batch; empty for a single graph.
    """

    graph: Graph
    weight: Tensor | None
    sizes: tuple[int, ...]


class StepOptions(TypedDict, total=False):
    """Keywords of :class:`ContinuousModel` for the solver."""

    time: float
    method: str
    step_size: float


class FurtherOptions(TypedDict, total=False):
    """All other keywords of :class:`ContinuousModel`."""

    rtol: float
    atol: float
    gradient: str
    adjoint_method: str | None
    adjoint_step_size: float | None
    encoder: str
    encoder_bias: bool
    decoder: str
    dropout: float
    input_dropout: float
    normalize_features: bool | str
    self_loops: bool
    rewire: bool
    rewire_neighbors: int
    rewire_restart: float


class ContinuousOptions(StepOptions, FurtherOptions):
    """All keywords of :class:`ContinuousModel`."""


class ContinuousModel(Model):
    """A model whose depth is time: ``decode(x(T))`` with ``dx/dt = field(x)`` and ``x(0) = encode(features)``.

    A subclass defines the field. Everything else, including the solver and its gradients, is shared, so that a
    comparison of two models is a comparison of their dynamics.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the state (the number of options).
        out_channels: number of classes.
        time: T, the time at which the integration ends.
        method: name of the solver (see :func:`dissensus.solve.solve`).
        step_size: step size of the fixed-step methods.
        rtol: relative tolerance of the adaptive methods.
        atol: absolute tolerance of the adaptive methods.
        gradient: ``discrete``, ``autograd`` or ``adjoint``.
        adjoint_method: solver of the continuous adjoint; None means the same as ``method``.
        adjoint_step_size: its step size; None means the same as ``step_size``.
        encoder: ``linear``, or ``mlp`` with two residual layers.
        encoder_bias: whether the encoder's linear map has a bias. Without a bias, nodes whose features are all zero
            (missing) start at zero with a linear encoder, so they only receive information from others.
        decoder: ``linear``; ``relu``, with a ReLU before the linear map; or ``mlp``, with two residual layers.
        dropout: dropout rate before the decoder and within residual layers.
        input_dropout: dropout rate of the features.
        normalize_features: scale the features of each node to Euclidean norm one, which suits bags of words. True
            divides them by their norm; ``"hellinger"`` divides by their sum and takes the square root (see
            :func:`dissensus.graph.features`).
        self_loops: add a self-loop to every node; False adds one only to nodes without incoming edges.
        rewire: replace the graph by its diffusion ("-rw"; see :func:`dissensus.graph.rewire`). The weights of the
            diffusion multiply the attention before normalisation.
        rewire_neighbors: number of neighbours that each node keeps.
        rewire_restart: restart probability of the diffusion.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]

    Attributes:
        mesh: the time steps of the last training pass, which ``dopri5`` tries first in the next pass. Like the running
            statistics of batch normalisation, it is updated by forward passes in training mode that record a gradient,
            only read in evaluation mode, and saved with the parameters. Two training passes over the same input
            therefore agree up to the solver's tolerance, and two evaluations exactly. Empty before the first training
            pass and for all other methods.
    """

    continuous = True

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
        encoder_bias: bool = True,
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
        check_sizes(rewire_neighbors=rewire_neighbors)
        if not 0.0 < rewire_restart < 1.0:
            raise InputError(f"rewire_restart is {rewire_restart}: it must be between 0 and 1, such as 0.05")
        check_dropout(dropout=dropout, input_dropout=input_dropout)
        check_normalize(normalize_features)
        if not (math.isfinite(time) and time > 0):
            raise InputError(f"time is {time}: it must be positive and finite")
        solver_named(method, step_size, rtol, atol)
        one_of("gradient", gradient, GRADIENTS)
        if adjoint_method is not None or adjoint_step_size is not None:
            own_step = step_size if adjoint_step_size is None else adjoint_step_size
            solver_named(adjoint_method or method, own_step, rtol, atol)
        self.adjoint_method, self.adjoint_step_size = adjoint_method, adjoint_step_size
        self.in_channels, self.hidden_channels, self.out_channels = in_channels, hidden_channels, out_channels
        self.time, self.step_size, self.rtol, self.atol = time, step_size, rtol, atol
        self.method, self.gradient = method, gradient
        self.normalize_features, self.self_loops = normalize_features, self_loops
        self.rewiring = {"neighbors": rewire_neighbors, "restart": rewire_restart} if rewire else None
        self.encoder = Encoder(in_channels, hidden_channels, encoder, input_dropout, dropout, encoder_bias)
        self.decoder = Decoder(hidden_channels, out_channels, decoder, dropout)
        self.mesh: tuple[float, ...] = ()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.mesh = ()

    def get_extra_state(self) -> Tensor:
        """The mesh of the solver, for ``state_dict``."""
        return self.decoder.linear.weight.new_tensor(self.mesh)

    def set_extra_state(self, state: Tensor) -> None:
        """Set the mesh of the solver from ``state_dict``."""
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
        """The field and the initial state for these features and this graph."""
        x = self.check_features(x)
        context = self.context(x.shape[0], edge_index, edge_weight, batch)
        x0 = self.encoder(x)
        return self.field(x0, context), self.start(x0)

    def full_precision(self) -> AbstractContextManager[Any]:
        """Switch autocast off: sparse products and step-size control need the model's own precision."""
        return torch.autocast(self.decoder.linear.weight.device.type, enabled=False)

    # Sparse products and step-size control cannot be traced, so torch.compile only compiles the decoder.
    @torch.compiler.disable
    def integrate(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        time: float | None = None,
        memory: int = 2**29,
        **options: Any,
    ) -> Solution:
        """Encode and integrate up to ``time`` (T by default); ``options`` go to :func:`dissensus.solve.solve`."""
        with self.full_precision():
            field, start = self.problem(x, edge_index, edge_weight, batch)
            end = self.time if time is None else time
            solver = solver_named(self.method, self.step_size, self.rtol, self.atol)
            return solve(field, start, end, solver, self._gradient(memory), mesh=self.mesh, **options)

    def _gradient(self, memory: int) -> Discrete | Autograd | Adjoint:
        if self.gradient == "adjoint":
            method, step_size = self.adjoint_method or self.method, self.adjoint_step_size or self.step_size
            return Adjoint(solver_named(method, step_size, self.rtol, self.atol))
        return Discrete(memory) if self.gradient == "discrete" else Autograd()

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
            batch: index of the graph that each node belongs to, [n], in ascending order; None for a single graph.

        Returns:
            [n, out_channels]
        """
        return self.decoder(self.read(self.final(x, edge_index, edge_weight, batch)))

    def final(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
    ) -> Tensor:
        """The final state, x(T). Updates ``mesh`` in training mode."""
        solution = self.integrate(x, edge_index, edge_weight, batch)
        if self.training and solution.state.requires_grad:
            # Rounded to the precision in which it is saved, so that a loaded model takes the same steps.
            self.mesh = tuple(self.decoder.linear.weight.new_tensor(solution.mesh).tolist())
        return solution.state

    def trajectory(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        times: Sequence[float],
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Hidden states at ``times``, in any order and also beyond T: [len(times), n, hidden_channels]."""
        times = [float(t) for t in times]
        if not times or min(times) < 0:
            raise InputError(f"times is {times}: give at least one time, and no negative ones")
        end = max(times)
        if end == 0.0:
            start = self.problem(x, edge_index, edge_weight, batch)[1]
            return torch.stack([self.read(start)] * len(times))
        solution = self.integrate(x, edge_index, edge_weight, batch, time=end, save_at=times)
        return torch.stack([self.read(state) for state in solution.saved])

    def scores_over_time(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        end: float,
        callback: Callable[[float, Tensor], None],
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> None:
        """Call ``callback(t, scores)`` after every step of the solver up to time ``end``; one step ends at T."""

        def decoded(t: float, state: Tensor) -> None:
            callback(t, self.decoder(self.read(state)))

        self.integrate(x, edge_index, edge_weight, batch, time=end, save_at=(self.time,), callback=decoded)

    @property
    def milestones(self) -> tuple[float, ...]:
        """Five times from 0 to T, evenly spaced; for fixed-step methods rounded to the ends of steps."""
        if not solver_named(self.method).fixed:
            return tuple(self.time * k / 4 for k in range(5))
        # Stopping elsewhere would cut a step in two and change the final state.
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
    """Edge weights in the model's precision. Raises an error unless all are positive and finite."""
    if not isinstance(edge_weight, Tensor) or not edge_weight.is_floating_point():
        return edge_weight  # Graph.values raises an error for any other type
    if not exporting() and not bool((torch.isfinite(edge_weight) & (edge_weight > 0)).all()):
        raise InputError("edge_weight must be positive and finite: remove all edges with other weights")
    return edge_weight.to(dtype)


def sizes_of(batch: Tensor | None, n: int) -> tuple[int, ...]:
    """Number of nodes of each graph in a batch; empty for a single graph."""
    if batch is None:
        return ()
    whole = isinstance(batch, Tensor) and batch.dtype in (torch.int64, torch.int32) and batch.shape == (n,)
    if not whole or bool((batch[1:] < batch[:-1]).any()) or bool((batch[:1] < 0).any()):
        raise InputError(
            f"batch must have the graph index of each of the {n} nodes, as integers in ascending order from 0: give "
            "the batch attribute of a PyG Batch"
        )
    sizes = torch.bincount(batch).tolist()
    return tuple(sizes) if len(sizes) > 1 else ()
