"""Opinions over time: nonlinear opinion dynamics and the linear classics, one run or an ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from dissensus.dynamics._convert import AnyGraph, is_one_graph
from dissensus.dynamics._linear import MODELS, STEPWISE, Linear, OpinionModel
from dissensus.dynamics._simulation import Simulation
from dissensus.dynamics._system import Feedback, Parameters, System, as_state, check_names, system
from dissensus.errors import InputError, SolverError, one_of
from dissensus.solve import Field, Pullback, solve, solver_named

# Without ``times``, at most this many numbers are kept of an ensemble.
_KEPT = 2**25
# Opinions that change by more than this share in the time 1/damping are followed on: for 25/damping, then twice as
# long, and so on, at most so many times.
_MOVING, _ROUNDS = 1e-4, 8


def simulate(
    graph: System | AnyGraph | Sequence[AnyGraph] | Callable[[float], AnyGraph],
    x0: Any = None,
    *,
    model: OpinionModel = "nonlinear",
    time: float = 50.0,
    times: Sequence[float] | np.ndarray | Tensor | None = None,
    method: str = "dopri5",
    step_size: float = 0.1,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    noise: float = 0.0,
    susceptibility: Any = None,
    seed: int = 0,
    **parameters: Unpack[Parameters],
) -> Simulation:
    r"""Opinions of n agents on o options over time, in float64: one run, or an ensemble side by side.

    ``nonlinear``: the model of :class:`System`, whose parameters are given by keyword.
    ``degroot``: :math:`x_i(t + 1) = \sum_k a_{ik} x_k(t)` with rows of absolute sum one; time counts steps.
    ``friedkin-johnsen``: :math:`x(t + 1) = \Lambda A x(t) + (I - \Lambda) x(0)`, with the susceptibilities
    :math:`\Lambda`.
    ``consensus``, and ``altafini`` for signed graphs: :math:`\dot x_i = -d_i x_i + \sum_k a_{ik} x_k` with
    :math:`d_i = \sum_k |a_{ik}|`. Negative weights are antagonism: a balanced signed graph splits into two opposite
    camps. (Delays, bounded confidence and voter models are left out; NDlib has the latter two.)

    Args:
        graph: the communication graph, of any kind that :func:`as_matrix` takes; for the nonlinear model also a
            :class:`System`. Influence that changes in time: a list or tuple of graphs, the k-th from time k to k + 1
            and then from the first again; or a function from time to a graph.
        x0: initial opinions, [n, o] or [n], or [batch, n, o] for an ensemble; None draws them uniformly from [-1, 1].
        model: ``nonlinear``, ``degroot``, ``friedkin-johnsen``, ``consensus`` or ``altafini``.
        time: end of the simulation.
        times: at which states are wanted, ascending from 0 on; 201 evenly spread ones (or every step of the models in
            steps) where None, fewer for ensembles that would take more than 256 MB.
        method, step_size, rtol, atol: of the integration, see :func:`dissensus.solve.solve`. An ensemble is integrated
            with common steps, for which the error is a mean over all runs.
        noise: standard deviation of white noise per square root of time, added to every opinion: then steps of
            ``step_size`` are taken by the Euler-Maruyama method, without gradients.
        susceptibility: of ``friedkin-johnsen``, a number or one per agent, between 0 and 1.
        seed: of random initial opinions and noise.
        **parameters: see :class:`System`; the linear models take ``normalize`` and the number of options.

    Differentiable in x0 and, where the influence is not a function of time, in the parameters that are torch tensors.
    """
    one_of("model", model, MODELS)
    check_names(parameters)
    if model != "nonlinear" and (wrong := sorted(set(parameters) - {"normalize", "options"})):
        raise InputError(
            f"the {model} model takes normalize and the number of options alone: leave out {', '.join(wrong)}"
        )
    if (model == "friedkin-johnsen") != (susceptibility is not None):
        raise InputError("susceptibility belongs to the friedkin-johnsen model: give both, or neither")
    if noise and model in STEPWISE:
        raise InputError(f"the {model} model has discrete steps and no noise: leave noise out")
    if not (math.isfinite(noise) and noise >= 0):
        raise InputError(f"the noise is {noise}: it must be finite and not negative")
    if np.ndim(x0) > 1 and np.shape(x0)[-1] > 1 and parameters.get("options") is None and not isinstance(graph, System):
        parameters["options"] = np.shape(x0)[-1]
    influence = _Influence(graph, model, parameters)
    first = influence.at(0.0)
    runs = first.batch
    x = as_state(_random((*((runs,) if runs else ()), *first.shape), seed) if x0 is None else x0, first.shape)
    ensemble = x.dim() == 3 or runs is not None
    x = x if x.dim() == 3 else x.expand(runs or 1, -1, -1)
    if runs not in (None, len(x)):
        raise InputError(f"x0 has {len(x)} runs and the parameters another number of them: give as many")
    grid = _times(times, time, model, _KEPT // x.numel())
    feedback = first.attention if isinstance(first, System) and isinstance(first.attention, Feedback) else None
    packed = first.pack(x)
    if feedback is not None:
        packed = torch.cat([packed, packed.new_full((len(packed), len(x)), feedback.low)], 1)
    how = _How(method, step_size, rtol, atol, noise, seed)
    if model in STEPWISE:
        states = _iterate(influence, packed, grid, susceptibility)
    else:
        states = _integrate(influence, packed, len(x), grid, how)
    attention = None
    if feedback is not None:
        states, attention = states[..., : -len(x)], states[..., -len(x) :].transpose(1, 2)
    states = first.unpack(states)

    def follow(last: Tensor, scale: Tensor) -> Tensor:
        return _limit(influence, last, scale, x, float(grid[-1]), attention, susceptibility)

    constant = influence.constant and not noise
    return Simulation(
        grid,
        states if ensemble else states[:, 0],
        model,
        attention if attention is None or ensemble else attention[:, 0],
        first if influence.constant and isinstance(first, System) else None,
        _follow=follow if constant else None,
    )


def _times(times: Sequence[float] | np.ndarray | Tensor | None, time: float, model: str, most: int) -> Tensor:
    if times is None:
        if not (isinstance(time, int | float | np.number) and math.isfinite(time) and time > 0):
            raise InputError(f"the time is {time!r}: it must be a positive and finite number")
        if model in STEPWISE:
            if time < 1:
                raise InputError(f"the time is {time}: the {model} model counts steps, so give at least 1")
            steps = torch.arange(math.floor(time) + 1, dtype=torch.float64)
            return steps[:: math.ceil(len(steps) / max(2, most))] if len(steps) > most else steps
        return torch.linspace(0.0, time, min(201, max(2, most)), dtype=torch.float64)
    try:
        grid = torch.as_tensor(times, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"times is {times!r}: give an ascending list of numbers from 0 on") from None
    if grid.dim() != 1 or len(grid) == 0 or not bool((grid >= 0).all() and (grid.diff() >= 0).all()):
        raise InputError("times must be an ascending list of numbers from 0 on, not empty")
    if not bool(torch.isfinite(grid).all()):
        raise InputError("times has NaN or infinite entries: remove them")
    if model in STEPWISE and not bool((grid == grid.round()).all()):
        raise InputError(f"times of the {model} model count steps: give whole numbers")
    return grid


def _random(shape: tuple[int, ...], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=torch.float64) * 2.0 - 1.0


class _Influence:
    """Who listens to whom at which time."""

    def __init__(self, graph: Any, model: str, parameters: Parameters) -> None:
        self.graph, self.model, self.parameters = graph, model, parameters
        self.periodic = isinstance(graph, list | tuple) and not is_one_graph(graph)
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

    def _make(self, graph: AnyGraph) -> System | Linear:
        if self.model == "nonlinear":
            return system(graph, **self.parameters)
        return Linear(graph, self.model, **self.parameters)  # type: ignore[misc]

    def at(self, t: float) -> System | Linear:
        """The influence at time t."""
        if self.pieces:
            return self.pieces[math.floor(t) % len(self.pieces)]
        return self._make(self.graph(t))


class _Varying(Field):
    """The field of an influence that is a function of time."""

    def __init__(self, influence: _Influence, batch: int) -> None:
        self.influence, self.batch = influence, batch

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        return self.influence.at(t).field(self.batch)(t, x, out)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        value, pullback = self.influence.at(t).field(self.batch).vjp(t, x, out)
        return value, lambda g, grads, out: pullback(g, (), out)


def _iterate(influence: _Influence, x: Tensor, times: Tensor, susceptibility: Any) -> Tensor:
    share: Any = 1.0 if susceptibility is None else torch.as_tensor(susceptibility, dtype=torch.float64).reshape(-1, 1)
    if susceptibility is not None and (bool((share < 0).any() or (share > 1).any()) or len(share) not in (1, len(x))):
        raise InputError(f"susceptibility: give a number from 0 to 1, or one for each of the {len(x)} agents")
    wanted, start = [round(t) for t in times.tolist()], x
    states = {0: x}
    for t in range(wanted[-1]):
        agents = influence.at(float(t))
        assert isinstance(agents, Linear)
        x = agents.step(x) if susceptibility is None else share * agents.step(x) + (1.0 - share) * start
        if t + 1 in wanted:
            states[t + 1] = x
    return torch.stack([states[t] for t in wanted])


@dataclass(frozen=True)
class _How:
    """How to integrate."""

    method: str = "dopri5"
    step_size: float = 0.1
    rtol: float = 1e-6
    atol: float = 1e-9
    noise: float = 0.0
    seed: int = 0


def _advance(
    field: Field, x: Tensor, end: float, times: Sequence[float], how: _How, watch: Any = None
) -> tuple[Tensor, Tensor]:
    """States at ``times`` and at the end, from x at time 0; the only place that integrates."""
    solver = solver_named(how.method, how.step_size, how.rtol, how.atol)
    done = solve(field, x, end, solver, save_at=times, callback=watch)
    return done.saved, done.state


def _integrate(influence: _Influence, x: Tensor, batch: int, times: Tensor, how: _How) -> Tensor:
    end = float(times[-1])
    if end == 0.0:
        return torch.stack([x] * len(times))
    if how.noise:
        return _wander(influence, x, batch, times, how)
    if not influence.periodic:
        field = influence.at(0.0).field(batch) if influence.constant else _Varying(influence, batch)
        return _advance(field, x, end, times.tolist(), how)[0]
    # The influence jumps at whole numbers: integrated piece by piece, no step reaches over a jump.
    saved = [x[None].expand(int((times == 0).sum()), *x.shape)]
    for start in range(math.ceil(end)):
        inside = times[(times > start) & (times <= start + 1)] - start
        field = influence.at(float(start)).field(batch)
        part, x = _advance(field, x, min(1.0, end - start), inside.tolist(), how)
        saved.append(part)
    return torch.cat(saved)


@torch.no_grad()
def _wander(influence: _Influence, x: Tensor, batch: int, times: Tensor, how: _How) -> Tensor:
    """Euler-Maruyama: ``x(t + h) = x + h f(t, x) + noise sqrt(h) N(0, 1)``."""
    generator = torch.Generator().manual_seed(how.seed)
    agents = influence.at(0.0)
    opinions = batch * agents.inner[1]
    field, t, saved = agents.field(batch), 0.0, []
    for stop in times.tolist():
        count = math.ceil((stop - t) / how.step_size - 1e-9)
        h = (stop - t) / max(count, 1)
        for k in range(count):
            if not influence.constant:
                field = influence.at(t + k * h).field(batch)
            x = x + h * field(t + k * h, x)
            kick = torch.randn(len(x), opinions, generator=generator, dtype=x.dtype)
            x[:, :opinions] += how.noise * math.sqrt(h) * kick
        t = stop
        saved.append(x)
    return torch.stack(saved)


@torch.no_grad()
def _limit(
    influence: _Influence,
    x: Tensor,
    scale: Tensor,
    start: Tensor,
    end: float,
    attention: Tensor | None,
    susceptibility: Any,
) -> Tensor:
    """Where opinions tend to from the states x at the end, [batch, n, o]; NaN in runs that keep changing.

    Args:
        scale: the largest opinion of each run, [batch].
        start: initial opinions, [batch, n, o].
    """
    agents = influence.at(0.0)
    if influence.model in STEPWISE:
        late = torch.tensor([end + 2000.0, end + 2001.0])
        before, after = agents.unpack(_iterate(influence, agents.pack(start), late, susceptibility))
        moving = (after - before).abs().amax((1, 2)) > 0.01 * scale
        return after.masked_fill(moving[:, None, None], math.nan)
    if isinstance(agents, System):
        if agents.fades():
            return torch.zeros_like(x)
        if callable(agents.attention) or callable(agents.input):
            return x
        rate = float(torch.as_tensor(agents.damping).min())
    else:
        rate = max(float(agents.total.mean()), 1e-300)
    own = None if attention is None else attention[-1].T  # dynamics of its own, [n, batch]
    separable = own is None and agents.batch is None
    settles = isinstance(agents, Linear) or agents.settles()
    limit, runs, span = x.clone(), torch.arange(len(x)), 25.0 / rate
    packed = agents.pack(x) if own is None else torch.cat([agents.pack(x), own], 1)
    before = _speed(agents, rate * scale, packed)
    going = before.isfinite() & (before > _MOVING)
    for _ in range(_ROUNDS):
        if not going.any():
            break
        if separable and not going.all():
            runs, before = runs[going], before[going]
            packed = agents.pack(limit[runs])
        try:
            packed, peaks = _span(agents, rate * scale[runs], packed, span)
        except SolverError:  # opinions without bounds
            limit[runs] = math.nan
            break
        # A cycle keeps its speed, at which it would long have left the range of opinions on a straight way; what fades,
        # or leaves a saddle, does not.
        fastest = peaks.amax(0)
        returns = (fastest * rate * span > 4.0) & (not settles)
        steady = returns & ((peaks / before - 1.0).abs().amax(0) < 0.1)
        slower = fastest < 0.5 * before
        before, span = fastest, 2.0 * span
        limit[runs] = agents.unpack(packed[:, : len(runs) * agents.inner[1]])
        limit[runs[steady]] = math.nan
        going = ~steady & (fastest > _MOVING)
    else:
        limit[runs[going & returns & ~slower]] = math.nan
    return limit


def _speed(agents: System | Linear, scale: Tensor, packed: Tensor) -> Tensor:
    """The largest rate of change of each run, relative to its scale, [runs]."""
    rates = agents.field(len(scale))(0.0, packed)[:, : len(scale) * agents.inner[1]]
    return agents.unpack(rates).abs().amax((1, 2)) / scale.clamp_min(1e-300)


def _span(agents: System | Linear, scale: Tensor, packed: Tensor, span: float) -> tuple[Tensor, Tensor]:
    """The state after a span of time, and the largest speeds in its third and its last quarter, [2, runs]."""
    peaks = torch.zeros(2, len(scale), dtype=packed.dtype)

    def watch(t: float, state: Tensor) -> None:
        if t > 0.5 * span:
            peak = peaks[int(t > 0.75 * span)]
            torch.maximum(peak, _speed(agents, scale, state), out=peak)

    return _advance(agents.field(len(scale)), packed, span, (), _How(), watch)[1], peaks
