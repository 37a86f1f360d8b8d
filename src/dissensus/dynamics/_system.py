"""Agents and options: parameters checked once, then a field to integrate and a flow to analyse."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dissensus.dynamics._convert import AnyGraph, as_matrix, as_option_matrix
from dissensus.dynamics._flow import Flow
from dissensus.dynamics._opinion import Opinion
from dissensus.dynamics._saturation import saturation as saturation_named
from dissensus.errors import InputError
from dissensus.graph import Pattern, row_sums

# An attention up to this above the critical one, relatively, is still the critical one.
_CRITICAL = 1e-9

# A number for all; one value an agent, [n]; or anything that broadcasts to [n, o]: NumPy or torch.
Values = Any


class Parameters(TypedDict, total=False):
    """The parameters of a :class:`System`, which every tool for opinion dynamics takes by keyword."""

    options: Any
    damping: Values
    attention: Values
    self_reinforcement: Values
    input: Values
    saturation: str
    normalize: bool
    self_loops: bool


class System:
    r"""Nonlinear opinion dynamics of n agents on o options, with parameters of their own for every agent and option.

    .. math::
        \dot x_{ij} = -d_{ij} x_{ij} + S\Big(u_i \Big(\alpha_{ij} x_{ij} + \sum_{k \ne i} a^a_{ik} x_{kj}
        + \sum_{l \ne j} a^o_{jl} x_{il} + \sum_{k \ne i} \sum_{l \ne j} a^a_{ik} a^o_{jl} x_{kl}\Big)\Big) + b_{ij}

    (The last sum is over :math:`x_{kl}`; some texts print :math:`x_{kj}` there.) The sums leave out an agent itself and
    an option itself, so the diagonals of both matrices are dropped; ``self_loops=True`` keeps them and gives the matrix
    form :math:`(\alpha - 1) X + (A_a + I) X (A_o + I)^\top` that networks with right-stochastic matrices use.

    Args:
        graph: the communication graph :math:`A_a`, of any kind that :func:`as_matrix` takes; weights of any sign.
        options: the option graph :math:`A_o`, [o, o]; or the number of uncorrelated options; None is one option.
        damping: d > 0. Like the next three: a number; one value an agent, [n]; or values that broadcast to [n, o] (one
            an option: [1, o]).
        attention: :math:`u \ge 0`; None is the critical attention of this system.
        self_reinforcement: :math:`\alpha \ge 0`.
        input: the input b.
        saturation: S by name.
        normalize: divide every row of :math:`A_a` by the sum of its absolute values (after the diagonal is dropped).
        self_loops: keep the diagonals.

    The communication matrix, where it is a dense torch tensor, and the other torch tensors keep their gradients.

    Attributes:
        agents, num_options: n and o.
    """

    def __init__(
        self,
        graph: AnyGraph,
        options: Any = None,
        *,
        damping: Values = 1.0,
        attention: Values | None = None,
        self_reinforcement: Values = 1.0,
        input: Values = 0.0,
        saturation: str = "tanh",
        normalize: bool = False,
        self_loops: bool = False,
    ) -> None:
        saturation_named(saturation)
        self.saturation = saturation
        matrix = as_matrix(graph, self_loops=self_loops)
        self.agents = matrix.shape[0]
        self.pattern, self.values = _communication(graph, matrix, normalize)
        self.options = _option_matrix(options, self_loops)
        # Before rows are normalised, as that leaves a matrix symmetric up to a change of scale.
        self._symmetric = abs(matrix - matrix.T).max() == 0.0 and (
            self.options is None or torch.equal(self.options, self.options.T)
        )
        self.num_options = 1 if self.options is None else len(self.options)
        self.damping = self._parameter("damping", damping, positive=True)
        self.self_reinforcement = self._parameter("self_reinforcement", self_reinforcement, positive=False)
        self.input = self._parameter("input", input)
        self.attention: Tensor | float = 1.0
        self._critical = attention is None
        if attention is None:
            attention = self.flow().critical_attention()
        self.attention = self._parameter("attention", attention, positive=False)

    def _parameter(self, name: str, value: Values, positive: bool | None = None) -> Tensor | float:
        tensor = torch.as_tensor(value, dtype=torch.float64).cpu()
        n, o = self.agents, self.num_options
        if tensor.dim() == 1:
            tensor = tensor.unsqueeze(1)
        if tensor.dim() > 2 or (tensor.dim() == 2 and not (tensor.shape[0] in (1, n) and tensor.shape[1] in (1, o))):
            raise InputError(
                f"{name} has shape {list(np.shape(value))} for {n} agents and {o} options: give a number, one value an "
                f"agent [{n}], or [{n}, {o}] ([1, {o}] for one value an option)"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{name} has NaN or infinite values: remove them")
        if positive is not None and bool((tensor <= 0 if positive else tensor < 0).any()):
            rule = "be positive" if positive else "not be negative"
            where = " somewhere" if tensor.dim() else ""
            raise InputError(f"{name} is {float(tensor.min()):g}{where}: it must {rule}")
        return tensor if tensor.dim() else float(tensor)

    @property
    def shape(self) -> tuple[int, int]:
        """[n, o]"""
        return self.agents, self.num_options

    def fades(self) -> bool:
        """Whether all opinions are known to tend to zero, from any start.

        They do without input, at or below the critical attention (to a relative 1e-9), under an odd S, if no entry of
        the matrices is negative or both are symmetric (before ``normalize``): then zero is the only equilibrium. At the
        critical attention itself they fade like 1/sqrt(t) where all agents hear one another, if only through others,
        and elsewhere perhaps more slowly (a chain of k agents like ``t^(-1/(2 3^(k-1)))``): no simulation of a finite
        time shows it.
        """
        flow = self.flow()
        if flow.input.any() or not flow.saturation.odd:
            return False
        known = self._symmetric or flow.sparse.data.min(initial=0.0) >= 0.0
        return bool(known) and (self._critical or flow.growth() <= 1.0 + _CRITICAL)

    def field(self) -> Opinion:
        """The right-hand side, for :func:`dissensus.solve.solve` and :func:`dissensus.solve.equilibrium`."""
        return Opinion(
            self.pattern,
            self.values,
            0.0 if self.options is None else self.options,
            self.input,
            damping=self.damping,
            attention=self.attention,
            self_reinforcement=self.self_reinforcement,
            saturation=self.saturation,
        )

    def flow(self) -> Flow:
        """The same in NumPy, with its Jacobian, for analysis; without gradients."""
        n, o = self.shape

        def full(value: Tensor | float) -> np.ndarray:
            array = value.detach().numpy() if isinstance(value, Tensor) else value
            return np.broadcast_to(array, (n, o)).astype(np.float64)

        row, col = self.pattern.row.numpy(), self.pattern.col.numpy()
        communication = scipy.sparse.csr_array((self.values.detach().numpy(), (row, col)), shape=(n, n))
        options = np.zeros((o, o)) if self.options is None else self.options.detach().numpy()
        return Flow(
            communication,
            options,
            full(self.damping),
            full(self.attention),
            full(self.self_reinforcement),
            full(self.input),
            saturation_named(self.saturation),
        )


def as_state(x: Any, shape: tuple[int, int]) -> Tensor:
    """Opinions as a float64 tensor [n, o]; [n] is accepted for one option."""
    tensor = torch.as_tensor(x, dtype=torch.float64).cpu()
    tensor = tensor.unsqueeze(1) if tensor.dim() == 1 else tensor
    if tensor.shape != shape:
        raise InputError(f"the state has shape {list(np.shape(x))}: it must be {list(shape)} (agents, options)")
    if not bool(torch.isfinite(tensor).all()):
        raise InputError("the state has NaN or infinite entries: remove them")
    return tensor


def _communication(graph: AnyGraph, matrix: scipy.sparse.csr_array, normalize: bool) -> tuple[Pattern, Tensor]:
    """Pattern and values of the matrix; those of a dense tensor that needs a gradient are taken from the tensor."""
    coo = matrix.tocoo()
    row, col = (torch.from_numpy(index.astype(np.int64)) for index in (coo.row, coo.col))
    pattern = Pattern(row, col, matrix.shape)
    differentiable = isinstance(graph, Tensor) and graph.layout == torch.strided and graph.requires_grad
    values = graph[row, col].double() if differentiable else torch.from_numpy(coo.data.copy())
    if normalize:
        values = values / row_sums(pattern, values.abs()).index_select(0, pattern.row)
    return pattern, values


def _option_matrix(options: Any, self_loops: bool) -> Tensor | None:
    """A_o as a dense tensor; None for one option."""
    checked = torch.from_numpy(as_option_matrix(options).toarray())
    if isinstance(options, int | None):
        return checked if len(checked) > 1 else None
    dense = isinstance(options, Tensor) and options.layout == torch.strided
    tensor = options.double() if dense else checked
    return tensor if self_loops else tensor - torch.diag(tensor.diagonal())


def system(graph: System | AnyGraph, **parameters: Any) -> System:
    """``graph`` itself if it is a system already, otherwise the system of a graph and parameters."""
    if not isinstance(graph, System):
        return System(graph, **parameters)
    if parameters:
        raise InputError(f"{', '.join(parameters)} cannot be changed in a finished System: make a new one")
    return graph
