"""Opinions over time: DeGroot's model, continuous-time consensus, and nonlinear opinion dynamics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
import torch
from torch import Tensor

from dissensus.dynamics._convert import AnyGraph, as_matrix
from dissensus.dynamics._system import Parameters, System, as_state, system
from dissensus.errors import InputError, one_of
from dissensus.graph import Pattern, row_sums, spmm
from dissensus.solve import AutogradField, Field, Pullback, solve

Model = Literal["nonlinear", "degroot", "consensus"]
MODELS = ("nonlinear", "degroot", "consensus")
Verdict = Literal["consensus", "dissensus", "polarised"]


@dataclass(frozen=True)
class Summary:
    """What the agents came to.

    Attributes:
        verdict: ``consensus``, all agents agree on every option, or tend to zero; ``polarised``, on some option the
            agents form two camps of opposite sign; ``dissensus`` otherwise.
        neutral: every opinion is near zero, or tends to zero however slowly (:meth:`System.fades`); a consensus.
        mean: over the agents in the last state, [o].
        variance: over the agents in the last state, [o].
        spread: largest minus smallest opinion of the last state, [o].
    """

    verdict: Verdict
    neutral: bool
    mean: tuple[float, ...]
    variance: tuple[float, ...]
    spread: tuple[float, ...]


@dataclass(frozen=True)
class Simulation:
    """Opinions over time.

    Attributes:
        times: [steps]
        states: [steps, n, o]
        model: its name.
        system: agents and parameters of a nonlinear model with constant influence, otherwise None.
    """

    times: Tensor
    states: Tensor = field(repr=False)
    model: str
    system: System | None = field(default=None, repr=False)

    @property
    def final(self) -> Tensor:
        """The last state, [n, o]."""
        return self.states[-1]

    @property
    def mean(self) -> Tensor:
        """Over the agents, [steps, o]."""
        return self.states.mean(1)

    @property
    def variance(self) -> Tensor:
        """Over the agents, [steps, o]."""
        return self.states.var(1, correction=0)

    def summary(self, tol: float = 0.01) -> Summary:
        """What the last state shows, and whether it is on its way to the neutral one.

        Args:
            tol: differences up to this count as none, relative to the largest opinion that was ever held.

        Two camps are a sign that at least a tenth of the agents have each, with 90 per cent of the variance between the
        camps (of a normal distribution it would be 64 per cent).
        """
        states = self.states.detach()
        x, scale = states[-1], tol * float(states.abs().max())
        spread = x.amax(0) - x.amin(0)
        neutral = bool(x.abs().max() <= scale) or (self.system is not None and self.system.fades())
        if neutral or bool((spread <= scale).all()):
            verdict: Verdict = "consensus"
        else:
            verdict = "polarised" if any(_polarised(option) for option in x.T[spread > scale]) else "dissensus"
        variance = x.var(0, correction=0)
        return Summary(verdict, neutral, *(tuple(value.tolist()) for value in (x.mean(0), variance, spread)))


def _polarised(x: Tensor) -> bool:
    camps = x[x > 0], x[x <= 0]
    if min(map(len, camps)) < max(1, 0.1 * len(x)):
        return False
    within = sum(float(camp.var(correction=0)) * len(camp) for camp in camps)
    return within <= 0.1 * float(x.var(correction=0)) * len(x)


def simulate(
    graph: System | AnyGraph | Sequence[AnyGraph] | Callable[[float], AnyGraph],
    x0: Any = None,
    *,
    model: Model = "nonlinear",
    time: float = 50.0,
    times: Sequence[float] | np.ndarray | Tensor | None = None,
    method: str = "dopri5",
    step_size: float = 0.1,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    seed: int = 0,
    **parameters: Unpack[Parameters],
) -> Simulation:
    r"""Opinions of n agents on o options over time, in float64.

    ``nonlinear``: the model of :class:`System`, whose parameters are given by keyword.
    ``degroot``: :math:`x_i(t + 1) = \sum_k a_{ik} x_k(t)` with rows of absolute sum one; time counts steps.
    ``consensus``: :math:`\dot x_i = -d_i x_i + \sum_k a_{ik} x_k` with :math:`d_i = \sum_k |a_{ik}|`. Negative weights
    in the linear models are antagonism: a balanced signed graph splits into two opposite camps.

    Args:
        graph: the communication graph, of any kind that :func:`as_matrix` takes; for the nonlinear model also a
            :class:`System`. Influence that changes in time: a list or tuple of graphs, the k-th from time k to k + 1
            and then from the first again; or a function from time to a graph.
        x0: initial opinions, [n, o] or [n]; None draws them uniformly from [-1, 1].
        model: ``nonlinear``, ``degroot`` or ``consensus``.
        time: end of the simulation.
        times: at which states are wanted, ascending from 0 on; 201 evenly spread ones (or every step of ``degroot``)
            where None.
        method, step_size, rtol, atol: of the integration, see :func:`dissensus.solve.solve`.
        seed: of the random initial opinions.
        **parameters: see :class:`System`; the linear models take ``normalize`` alone, and as many options as x0 has.

    Differentiable in x0 and, where the influence is not a function of time, in the parameters that are torch tensors.
    """
    one_of("model", model, MODELS)
    if model != "nonlinear" and (wrong := sorted(set(parameters) - {"normalize", "options"})):
        raise InputError(
            f"the {model} model takes normalize and the number of options alone: leave out {', '.join(wrong)}"
        )
    grid = _times(times, time, model)
    x = None if x0 is None else torch.as_tensor(x0, dtype=torch.float64).cpu()
    if x is not None and x.dim() == 2 and parameters.get("options") is None and not isinstance(graph, System):
        parameters["options"] = x.shape[1]
    influence = _Influence(graph, model, parameters)
    first = influence.at(0.0)
    state = _random(first.shape, seed) if x is None else as_state(x, first.shape)
    if model == "degroot":
        states = _iterate(influence, state, grid)
    else:
        options = {"method": method, "step_size": step_size, "rtol": rtol, "atol": atol}
        states = _integrate(influence, state, grid, options)
    return Simulation(grid, states, model, first if influence.constant and isinstance(first, System) else None)


def _times(times: Sequence[float] | np.ndarray | Tensor | None, time: float, model: str) -> Tensor:
    if times is None:
        if not (math.isfinite(time) and time > 0):
            raise InputError(f"the time is {time}: it must be positive and finite")
        if model == "degroot" and time < 1:
            raise InputError(f"the time is {time}: the degroot model counts steps, so give at least 1")
        count = math.floor(time) + 1 if model == "degroot" else 201
        return torch.linspace(0.0, math.floor(time) if model == "degroot" else time, count, dtype=torch.float64)
    grid = torch.as_tensor(times, dtype=torch.float64)
    if grid.dim() != 1 or len(grid) == 0 or not bool((grid >= 0).all() and (grid.diff() >= 0).all()):
        raise InputError("times must be an ascending list of numbers from 0 on, not empty")
    if not bool(torch.isfinite(grid).all()):
        raise InputError("times has NaN or infinite entries: remove them")
    if model == "degroot" and not bool((grid == grid.round()).all()):
        raise InputError("times of the degroot model count steps: give whole numbers")
    return grid


def _random(shape: tuple[int, int], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=torch.float64) * 2.0 - 1.0


class _Linear:
    """One matrix of a linear model."""

    def __init__(self, graph: AnyGraph, model: str, options: Any = None, normalize: bool = False) -> None:
        matrix = as_matrix(graph, normalize=normalize)
        if options is not None and not isinstance(options, int):
            raise InputError(f"the {model} model has no option graph: give the number of options, or leave it out")
        self.shape = matrix.shape[0], options or 1
        coo = matrix.tocoo()
        row, col = (torch.from_numpy(index.astype(np.int64)) for index in (coo.row, coo.col))
        self.pattern, self.values = Pattern(row, col, matrix.shape), torch.from_numpy(coo.data.copy())
        self.total = row_sums(self.pattern, self.values.abs()).unsqueeze(1)
        # An agent that listens to nobody keeps its opinion.
        self.alone = (self.total == 0).double()
        error = (self.total + self.alone - 1.0).abs()
        if model == "degroot" and float(error.max()) > 1e-6:
            worst = int(error.argmax())
            raise InputError(
                f"row {worst} of the degroot matrix has the absolute sum {float(self.total[worst]):g}, not 1: pass "
                "normalize=True"
            )

    def step(self, x: Tensor) -> Tensor:
        return spmm(self.pattern, self.values, x) + self.alone * x

    def field(self) -> Field:
        limit = 1.0 / max(float(self.total.max()), 1e-300)
        return AutogradField(lambda t, x: spmm(self.pattern, self.values, x) - self.total * x, euler_limit=limit)


class _Influence:
    """Who listens to whom at which time."""

    def __init__(self, graph: Any, model: str, parameters: Parameters) -> None:
        self.graph, self.model, self.parameters = graph, model, parameters
        self.periodic = isinstance(graph, list | tuple)
        # A PyG Data is callable, too.
        self.constant = not self.periodic and (hasattr(graph, "edge_index") or not callable(graph))
        if self.periodic and not graph:
            raise InputError("the list of graphs is empty: give at least one")
        if not self.constant and model == "nonlinear" and parameters.get("attention") is None:
            raise InputError("give attention=: with influence that changes in time there is no single critical one")
        if isinstance(graph, System) and model != "nonlinear":
            raise InputError(f"a System is nonlinear: give its graph for the {model} model")
        self.pieces = [self._make(part) for part in graph] if self.periodic else []
        if self.constant:
            self.pieces = [self._make(graph)]
        if len({piece.shape for piece in self.pieces}) > 1:
            raise InputError("the graphs have different numbers of agents: make them equal")

    def _make(self, graph: AnyGraph) -> System | _Linear:
        if self.model == "nonlinear":
            return system(graph, **self.parameters)
        return _Linear(graph, self.model, **self.parameters)  # type: ignore[misc]

    def at(self, t: float) -> System | _Linear:
        """The influence at time t."""
        if self.pieces:
            return self.pieces[math.floor(t) % len(self.pieces)]
        return self._make(self.graph(t))


class _Varying(Field):
    """The field of an influence that is a function of time."""

    def __init__(self, influence: _Influence) -> None:
        self.influence = influence

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        return self.influence.at(t).field()(t, x, out)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        value, pullback = self.influence.at(t).field().vjp(t, x, out)
        return value, lambda g, grads, out: pullback(g, (), out)


def _iterate(influence: _Influence, x: Tensor, times: Tensor) -> Tensor:
    wanted, states = [round(t) for t in times.tolist()], {0: x}
    for t in range(wanted[-1]):
        agents = influence.at(float(t))
        assert isinstance(agents, _Linear)
        x = agents.step(x)
        states[t + 1] = x
    return torch.stack([states[t] for t in wanted])


def _integrate(influence: _Influence, x: Tensor, times: Tensor, options: dict[str, Any]) -> Tensor:
    end = float(times[-1])
    if end == 0.0:
        return torch.stack([x] * len(times))
    if not influence.periodic:
        field = influence.at(0.0).field() if influence.constant else _Varying(influence)
        return solve(field, x, end, save_at=times.tolist(), **options).saved
    # The influence jumps at whole numbers: integrated piece by piece, no step reaches over a jump.
    saved = [x[None].expand(int((times == 0).sum()), *x.shape)]
    for start in range(math.ceil(end)):
        inside = times[(times > start) & (times <= start + 1)] - start
        duration = min(1.0, end - start)
        solution = solve(influence.at(float(start)).field(), x, duration, save_at=inside.tolist(), **options)
        saved.append(solution.saved)
        x = solution.state
    return torch.cat(saved)
