"""Integration by explicit Runge-Kutta methods, with fixed or adaptive steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dissensus.kernels import linear_combination
from dissensus.solve._control import LARGEST_GROWTH, StepSizeController, scaled_error_norm, step_limit, too_many_steps
from dissensus.solve._field import Field, Semilinear
from dissensus.solve._solvers import RK4, Dopri5, Euler
from dissensus.solve._step import Evaluation, Step, Workspace, combine, evaluate_stage, semilinear_form, take_step
from dissensus.solve._tableau import DOPRI5, Tableau, Weights
from dissensus.solve._tape import AcceptedStep, Tape

# Called with the time and the state after every accepted step.
Callback = Callable[[float, Tensor], None]
# norm(error, x, new): the size of a step's error relative to the tolerance; the step is accepted if it is at most 1.
Norm = Callable[[Tensor, Tensor, Tensor], float]


@dataclass
class Stats:
    """The cost of an integration.

    Attributes:
        evaluations: number of field evaluations in the forward pass.
        accepted: number of accepted steps.
        rejected: number of rejected steps.
        backward_evaluations: number of pullbacks plus field evaluations in the backward pass; zero until it has run.
    """

    evaluations: int = 0
    accepted: int = 0
    rejected: int = 0
    backward_evaluations: int = 0


@dataclass
class Path:
    """The steps that an integration has taken.

    Attributes:
        stats: their cost.
        tape: records the steps for the discrete adjoint, or None.
        callback: called after every step, or None.
        times: 0 and the ends of the steps.
        errors: the errors of the steps of an adaptive method, relative to the tolerance.
    """

    stats: Stats
    tape: Tape | None = None
    callback: Callback | None = None
    times: list[float] = field(default_factory=lambda: [0.0])
    errors: list[float] = field(default_factory=list)

    @property
    def keeps_pullbacks(self) -> bool:
        return self.tape is not None and self.tape.keeps_pullbacks

    def add(self, t: float, h: float, end: float, x: Tensor, step: Step) -> None:
        """Add an accepted step of size h from the state x at time t."""
        self.stats.accepted += 1
        self.times.append(end)
        if self.tape is not None:
            self.tape.add(AcceptedStep(t, h), x, step.pullbacks)
        if self.callback is not None:
            self.callback(end, step.new)


def integrate(
    field: Field,
    solver: Euler | RK4 | Dopri5,
    x: Tensor,
    stops: Sequence[float],
    path: Path,
    *,
    mesh: Sequence[float] = (),
    norm: Norm | None = None,
) -> list[Tensor]:
    """Integrate from the state x at time 0 and return the states at the ascending times ``stops``.

    A step ends at each of the stops.

    Args:
        path: records the steps.
        mesh: see :class:`StepSizeController`.
        norm: error norm of an adaptive method; by default :func:`scaled_error_norm`.
    """
    form = semilinear_form(field, x)
    if isinstance(solver, Dopri5):
        return _adaptive(field, form, solver, x, stops, path, mesh, norm)
    return _fixed(form, solver.tableau, solver.step_size, solver.max_steps, x, stops, path)


def _fixed(
    form: Semilinear, tableau: Tableau, size: float, max_steps: int, x: Tensor, stops: Sequence[float], path: Path
) -> list[Tensor]:
    workspace = Workspace.like(x, tableau)
    start, states = 0.0, []
    for stop in stops:
        t = start
        for end in fixed_ends(start, stop, size, max_steps, len(path.times) - 1):
            step = take_step(form, tableau, t, end - t, x, keep=path.keeps_pullbacks, workspace=workspace)
            path.stats.evaluations += tableau.stages
            path.add(t, end - t, end, x, step)
            x, t = step.new, end
        states.append(x)
        start = stop
    return states


def fixed_ends(start: float, stop: float, size: float, max_steps: int, taken: int = 0) -> list[float]:
    """The ends of steps of equal size from ``start`` to ``stop``; the last one is shortened.

    ``taken`` is the number of steps before ``start``, which count towards ``max_steps``.
    """
    # At least one step, however near the stop is, because a step ends at every stop.
    count = max(math.ceil((stop - start) / size - 1e-9), int(stop > start))
    if taken + count > max_steps:
        raise too_many_steps(taken + count, size, max_steps, stop)
    return [start + i * size for i in range(1, count)] + [stop] * (count > 0)


def _adaptive(
    field: Field,
    form: Semilinear,
    solver: Dopri5,
    x: Tensor,
    stops: Sequence[float],
    path: Path,
    mesh: Sequence[float],
    norm: Norm | None,
) -> list[Tensor]:
    tableau, stats = DOPRI5, path.stats
    if stops[-1] <= 0.0:
        return [x for _ in stops]
    error_norm = norm or (lambda error, x, new: scaled_error_norm(error, x, new, solver.atol, solver.rtol))
    workspace = Workspace.like(x, tableau)
    stats.evaluations += 1
    first = evaluate_stage(form, 0.0, x, torch.empty_like(x), path.keeps_pullbacks)
    first_size = 0.0 if mesh else _initial_step(field, form, x, first.value, solver, stats)
    controller = StepSizeController(tableau.order, first_size, mesh)
    t, states = 0.0, []
    for stop in stops:
        while t < stop:
            if len(path.times) > solver.max_steps:
                raise step_limit(t, solver.max_steps, stop)
            h, last = controller.propose(t, stop)
            end = stop if last else t + h
            keep = path.keeps_pullbacks
            step = take_step(form, tableau, t, h, x, first=first, keep=keep, workspace=workspace)
            # The value at the new state completes the error estimate and is also the first stage of the next step.
            final = evaluate_stage(form, end, step.new, step.stages[-1], keep)
            stats.evaluations += tableau.stages
            weights = Weights.of(tableau, h, form.gain, form.decay).error
            ratio = error_norm(combine(weights, step.terms, step.stages, workspace.state), x, step.new)
            if ratio > 1.0 or math.isnan(ratio):
                stats.rejected += 1
                controller.rejected(h, ratio)
                continue
            controller.accepted(h, ratio, last)
            path.errors.append(ratio)
            path.add(t, h, end, x, step)
            # Without pullbacks the next step writes its stages to the same buffer, so copy this value out of it.
            first = final if keep else Evaluation(first.value.copy_(final.value), None)
            t, x = end, step.new
        states.append(x)
    return states


def _initial_step(field: Field, form: Semilinear, x: Tensor, value: Tensor, solver: Dopri5, stats: Stats) -> float:
    # Ten times the first step of Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.4. The error of
    # their first step is so small that the second would be ten times as long, so this often saves a step.
    def norm(v: Tensor) -> float:
        return scaled_error_norm(v, x, x, solver.atol, solver.rtol)

    # f(0, x) = gain g + B - decay x
    parts = (x, value) if form.drive is None else (x, value, form.drive)
    f0 = linear_combination((-form.decay, form.gain, 1.0)[: len(parts)], parts, out=torch.empty_like(x))
    d0, d1 = norm(x.clone()), norm(f0.clone())
    if not (math.isfinite(d0) and math.isfinite(d1)):
        return 0.0  # the controller raises the error for an underflow
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    stats.evaluations += 1
    d2 = norm(field(h0, torch.add(x, f0, alpha=h0)).sub_(f0)) / h0
    top = max(d1, d2)
    h1 = max(1e-6, 1e-3 * h0) if top <= 1e-15 else (0.01 / top) ** (1.0 / DOPRI5.order)
    return LARGEST_GROWTH * min(100.0 * h0, h1)
