"""Agents and options: parameters checked once, then a field to integrate and a flow to analyse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dissensus.dynamics._convert import AnyGraph, as_matrix, as_option_matrix
from dissensus.dynamics._flow import FORMS, Flow, Form
from dissensus.dynamics._opinion import Opinion
from dissensus.dynamics._saturation import Saturation
from dissensus.dynamics._saturation import saturation as saturation_named
from dissensus.errors import InputError, one_of
from dissensus.graph import Pattern
from dissensus.solve import AutogradField, Field

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
    saturation: str | Callable[[Tensor], Tensor]
    form: Form
    normalize: bool
    self_loops: bool
    effective: bool


@dataclass(frozen=True)
class Feedback:
    r"""Attention that is driven by the opinions an agent hears, with dynamics of its own.

    .. math::
        \tau\, \dot u_i = -u_i + u_{low} + (u_{high} - u_{low}) \frac{y_i^p}{y_{th}^p + y_i^p}, \qquad
        y_i = \frac{1}{o} \sum_j \sum_k (a_{ik} x_{kj})^2

    Below the critical attention ``low`` makes agents resist weak inputs, ``high`` above it lets strong ones set off a
    cascade (Bizyaeva, Franci and Leonard, Nonlinear opinion dynamics with tunable sensitivity, 2023).

    Attributes:
        low, high: attention at rest and when fully aroused, not negative; where simulations start is ``low``.
        threshold: the strength y at which half of the difference is reached.
        power: steepness p.
        time: the time constant.
    """

    low: float
    high: float
    threshold: float = 0.1
    power: float = 2.0
    time: float = 1.0

    def __post_init__(self) -> None:
        if not (self.low >= 0 and self.high >= 0 and min(self.threshold, self.power, self.time) > 0):
            raise InputError(f"{self}: low and high must not be negative, threshold, power and time must be positive")

    def target(self, heard: Tensor) -> Tensor:
        """The attention that agents tend to, from y."""
        share = heard**self.power / (self.threshold**self.power + heard**self.power)
        return self.low + (self.high - self.low) * share


class System:
    r"""Nonlinear opinion dynamics of n agents on o options, with parameters of their own for every agent and option.

    .. math::
        \dot x_{ij} = -d_{ij} x_{ij} + S\Big(u_i \Big(\alpha_{ij} x_{ij} + \sum_k a^a_{ik} x_{kj}
        + \sum_l a^o_{jl} x_{il} + \sum_k \sum_l a^a_{ik} a^o_{jl} x_{kl}\Big)\Big) + b_{ij}

    (The last sum is over :math:`x_{kl}`; some texts print :math:`x_{kj}` there.) In matrix form the sums are
    :math:`(\alpha - 1) X + (A_a + I) X (A_o + I)^\top`. Diagonal entries of the matrices count as they are given;
    ``self_loops=False`` drops them, for sums over :math:`k \ne i` and :math:`l \ne j`.

    Args:
        graph: the communication graph :math:`A_a`, of any kind that :func:`as_matrix` takes; weights of any sign.
        options: the option graph :math:`A_o`, [o, o]; or the number of uncorrelated options; None is one option.
        damping: d > 0. Like the next three: a number; one value per agent, [n]; values that broadcast to [n, o] (one
            per option: [1, o]); or, for :func:`simulate`, one set per run, [batch, 1 or n, 1 or o].
        attention: :math:`u \ge 0`; None is the critical attention of this system. For :func:`simulate` also a function
            of time, or a :class:`Feedback`.
        self_reinforcement: :math:`\alpha \ge 0`.
        input: the input b; for :func:`simulate` also a function of time.
        saturation: S by name, or any smooth function of tensors, whose derivative autograd finds.
        form: where S stands: ``argument``, :math:`S(u \sum a x)`; ``sum``, :math:`u\, S(\sum a x)`; ``opinions``,
            :math:`u \sum a\, S(x)`.
        normalize: divide every row of :math:`A_a` by the sum of its absolute values.
        self_loops: keep the diagonals.
        effective: ``graph`` is the full matrix :math:`A_e`, [n o, n o], in place of the three sums, with opinion
            (i, j) at index i o + j, and ``options`` the number o.

    The communication matrix, where it is a dense torch tensor, and the other torch tensors keep their gradients.

    Attributes:
        agents, num_options: n and o.
        batch: number of runs that have parameters of their own; None without.
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
        saturation: str | Callable[[Tensor], Tensor] = "tanh",
        form: Form = "argument",
        normalize: bool = False,
        self_loops: bool = True,
        effective: bool = False,
    ) -> None:
        one_of("form", form, FORMS)
        if not (isinstance(saturation, str) or callable(saturation)):
            raise InputError(f"saturation is {saturation!r}: give a name, such as 'tanh', or a function of tensors")
        self.saturation, self.form = saturation, form
        self._saturate = saturation_named(saturation) if isinstance(saturation, str) else saturation
        matrix = as_matrix(graph, self_loops=self_loops)
        self.pattern, self.values = weighted_pattern(graph, matrix, normalize)
        self.effective = effective
        self.num_options = 1
        if effective:
            self.num_options = 1 if options is None else options
            if not isinstance(self.num_options, int) or matrix.shape[0] % max(self.num_options, 1):
                raise InputError(
                    f"options must be the number of options of an effective matrix and divide its {matrix.shape[0]} "
                    "rows: give options=o"
                )
        self.agents = matrix.shape[0] // self.num_options
        self.options = None if effective else _option_matrix(options, self_loops)
        # Before rows are normalised, as that leaves a matrix symmetric up to a change of scale.
        self._symmetric = abs(matrix - matrix.T).max() == 0.0 and (
            self.options is None or torch.equal(self.options, self.options.T)
        )
        if self.options is not None:
            self.num_options = len(self.options)
        self.batch: int | None = None
        self.damping = self.parameter("damping", damping)
        self.self_reinforcement = self.parameter("self_reinforcement", self_reinforcement)
        self.input = self.parameter("input", input)
        self.attention: Any = 1.0
        self._critical = attention is None
        if attention is None:
            attention = self.flow().critical_attention()
        self.attention = self.parameter("attention", attention)

    def parameter(self, name: str, value: Any) -> Any:
        """A checked parameter: a number or tensor; a function of time and a :class:`Feedback` stay as they are."""
        if callable(value) or isinstance(value, Feedback):
            if name not in ("attention", "input"):
                raise InputError(f"{name} cannot be a function: give numbers; input and attention may change in time")
            return value
        try:
            tensor = torch.as_tensor(value, dtype=torch.float64).cpu()
        except (TypeError, ValueError, RuntimeError):
            raise InputError(f"{name} is {value!r}: give numbers") from None
        n, o = self.agents, self.num_options
        if tensor.dim() == 1:
            tensor = tensor.unsqueeze(1)
        fits = tensor.dim() < 2 or (tensor.shape[-2] in (1, n) and tensor.shape[-1] in (1, o))
        if tensor.dim() == 3:
            fits = fits and self.batch in (None, len(tensor))
            self.batch = len(tensor) if fits else self.batch
        if tensor.dim() > 3 or not fits:
            raise InputError(
                f"{name} has shape {list(np.shape(value))} for {n} agents and {o} options: give a number, one value "
                f"per agent [{n}], or [{n}, {o}] ([1, {o}] for one value per option), and for an ensemble "
                f"[batch, 1 or {n}, 1 or {o}]"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{name} has NaN or infinite values: remove them")
        wrong = {"damping": tensor <= 0, "attention": tensor < 0, "self_reinforcement": tensor < 0}.get(name)
        if wrong is not None and bool(wrong.any()):
            rule = "be positive" if name == "damping" else "not be negative"
            where = " somewhere" if tensor.dim() else ""
            raise InputError(f"{name} is {float(tensor.min()):g}{where}: it must {rule}")
        return tensor if tensor.dim() or tensor.requires_grad else float(tensor)

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
        if self.batch is not None or self.changing:
            return False
        flow = self.flow()
        named = isinstance(self._saturate, Saturation) and self._saturate.odd
        if flow.input.any() or not named or self.form != "argument":
            return False
        known = self._symmetric or flow.matrix.data.min(initial=0.0) >= 0.0
        return bool(known) and (self._critical or flow.growth() <= 1.0 + _CRITICAL)

    def settles(self) -> bool:
        """Whether opinions are known to come to rest, from any start: the flow has a Lyapunov function.

        It has where all matrices are symmetric (before ``normalize``), S is one of the odd, increasing ones by name,
        and the damping is one number or S is applied to the ``opinions`` (Cohen and Grossberg, 1983).
        """
        named = isinstance(self._saturate, Saturation) and self._saturate.odd
        one = not isinstance(self.damping, Tensor) or self.damping.dim() == 0 or self.form == "opinions"
        return self._symmetric and named and one and not self.changing

    def critical_attention(self) -> float | None:
        """u* of these agents, as one attention for all; None where the neutral opinion is stable at every attention."""
        flow = replace(self.flow(), attention=np.ones(self.inner))
        try:
            return flow.critical_attention()
        except InputError:
            return None

    def field(self, batch: int = 1) -> Field:
        """The right-hand side of ``batch`` runs side by side, [n, batch o] (see :meth:`pack`)."""
        n, o = self.inner
        damping, alpha = (self._spread(v, batch) for v in (self.damping, self.self_reinforcement))
        plain = isinstance(self.saturation, str) and self.form == "argument"
        if plain and not self.changing:
            attention, source = (self._spread(v, batch) for v in (self.attention, self.input))
            return Opinion(
                self.pattern,
                self.values,
                0.0 if self.options is None else self.options,
                source,
                damping=damping,
                attention=attention,
                self_reinforcement=alpha,
                saturation=str(self.saturation),
            )
        feedback = self.attention if isinstance(self.attention, Feedback) else None
        attention = self._of_time("attention", 0.0 if feedback else self.attention, batch)
        source = self._of_time("input", self.input, batch)

        def drive(x: Tensor) -> Tensor:
            # (alpha - 1) X + (A_a + I) X (A_o + I)'
            y = x if self.options is None else (x.view(-1, o) @ self.options.T).view_as(x) + x
            return self.pattern.spmm(self.values, y) + y + (alpha - 1.0) * x

        def right(t: float, state: Tensor) -> Tensor:
            x = state[:, : batch * o].contiguous()
            if feedback is None:
                u = attention(t)
            else:
                own = state[:, batch * o :]
                u = own.repeat_interleave(o, 1)
            if self.form == "opinions":
                core = u * drive(self._saturate(x))
            else:
                core = u * self._saturate(drive(x)) if self.form == "sum" else self._saturate(u * drive(x))
            f = core + source(t) - damping * x
            if feedback is None:
                return f
            # Squares of weighted opinions, summed over neighbours and averaged over options.
            heard = self.pattern.spmm(self.values.square(), x.square()).view(n, batch, o).mean(2)
            return torch.cat([f, (feedback.target(heard) - own) / feedback.time], 1)

        # What changes in time is constant to autograd.
        steady = [f(0.0) for f, v in ((attention, self.attention), (source, self.input)) if isinstance(v, Tensor)]
        given = (self.values, self.options, damping, alpha, *steady)
        learned = [v for v in given if isinstance(v, Tensor) and v.requires_grad]
        limit = 1.0 / float(torch.as_tensor(self.damping).detach().max())
        return AutogradField(right, learned, euler_limit=limit)

    def _of_time(self, name: str, value: Any, batch: int) -> Callable[[float], Tensor | float]:
        if callable(value):
            return lambda t: self._spread(self.parameter(name, value(t)), batch)
        constant = self._spread(value, batch)
        return lambda t: constant

    def _spread(self, value: Any, batch: int) -> Any:
        """A parameter for states [n, batch o]; numbers and [n, 1] broadcast as they are."""
        if not isinstance(value, Tensor) or value.dim() == 0:
            return value
        if value.dim() == 2 and not self.effective and (batch == 1 or value.shape[1] == 1):
            return value
        return self.pack(value.expand(batch, *self.shape))

    def pack(self, x: Tensor) -> Tensor:
        """[batch, n, o] -> [n, batch o], the layout of :meth:`field`; the rows are opinions if a matrix A_e couples
        them."""
        return x.reshape(len(x), *self.inner).transpose(0, 1).reshape(self.inner[0], -1)

    def unpack(self, x: Tensor) -> Tensor:
        """[..., n, batch o] -> [..., batch, n, o]."""
        split = x.reshape(*x.shape[:-1], -1, self.inner[1]).transpose(-3, -2)
        return split.reshape(*split.shape[:-2], *self.shape)

    @property
    def changing(self) -> bool:
        """Whether attention or input are functions of time, or the attention has dynamics of its own."""
        return any(callable(v) or isinstance(v, Feedback) for v in (self.attention, self.input))

    @property
    def inner(self) -> tuple[int, int]:
        """The shape in which states are computed: [n, o], and [n o, 1] with an effective matrix."""
        return (self.agents * self.num_options, 1) if self.effective else self.shape

    @property
    def communication(self) -> scipy.sparse.csr_array:
        """:math:`A_a`, [n, n], or the full matrix :math:`A_e`."""
        place = self.pattern.row.numpy(), self.pattern.col.numpy()
        return scipy.sparse.csr_array((self.values.detach().numpy(), place), shape=self.pattern.shape)

    def flow(self) -> Flow:
        """The same in NumPy, with its Jacobian, for analysis; without gradients."""
        if self.batch is not None:
            raise InputError("the parameters are those of an ensemble: give attention=, and analyse one run at a time")
        for name in ("attention", "input"):
            if callable(getattr(self, name)) or isinstance(getattr(self, name), Feedback):
                raise InputError(f"the {name} changes in time: equilibria need a constant one; simulate instead")

        def full(value: Tensor | float) -> np.ndarray:
            array = value.detach().numpy() if isinstance(value, Tensor) else value
            return np.broadcast_to(array, self.shape).astype(np.float64).reshape(self.inner)

        o = self.inner[1]
        options = np.zeros((o, o)) if self.options is None else self.options.detach().numpy()
        return Flow(
            self.communication,
            options,
            full(self.damping),
            full(self.attention),
            full(self.self_reinforcement),
            full(self.input),
            self._saturate,
            self.form,
        )


def as_state(x: Any, shape: tuple[int, int]) -> Tensor:
    """Opinions as a float64 tensor [n, o], or [batch, n, o]; [n] is accepted for one option."""
    try:
        tensor = torch.as_tensor(x, dtype=torch.float64).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise InputError("the state is not made of numbers: give an array [agents, options]") from None
    tensor = tensor.unsqueeze(1) if tensor.dim() == 1 else tensor
    if tensor.shape[-2:] != shape or tensor.dim() > 3 or (tensor.dim() == 3 and len(tensor) == 0):
        raise InputError(
            f"the state has shape {list(np.shape(x))}: it must be {list(shape)} (agents, options), for an ensemble "
            f"with one more dimension in front"
        )
    if not bool(torch.isfinite(tensor).all()):
        raise InputError("the state has NaN or infinite entries: remove them")
    return tensor


def weighted_pattern(graph: AnyGraph, matrix: scipy.sparse.csr_array, normalize: bool) -> tuple[Pattern, Tensor]:
    """Pattern and values of the matrix; those of a dense tensor that needs a gradient are taken from the tensor."""
    coo = matrix.tocoo()
    row, col = (torch.from_numpy(index.astype(np.int64)) for index in (coo.row, coo.col))
    pattern = Pattern(row, col, matrix.shape)
    differentiable = isinstance(graph, Tensor) and graph.layout == torch.strided and graph.requires_grad
    values = graph[row, col].double() if differentiable else torch.from_numpy(coo.data.copy())
    if normalize:
        values = values / pattern.row_sums(values.abs()).index_select(0, pattern.row)
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
        check_names(parameters)
        return System(graph, **parameters)
    if parameters:
        raise InputError(f"{', '.join(parameters)} cannot be changed in a finished System: make a new one")
    return graph


def check_names(parameters: Iterable[str]) -> None:
    """Refuse misspelt parameters."""
    for name in parameters:
        one_of("parameter", name, Parameters.__annotations__)
