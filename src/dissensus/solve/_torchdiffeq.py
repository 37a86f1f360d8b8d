"""Methods of torchdiffeq."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dissensus.solve._control import step_limit, too_many_steps, underflow
from dissensus.solve._field import AutogradField, Field
from dissensus.solve._integrate import Callback, Stats
from dissensus.solve._solvers import Adjoint, Dopri5, Euler, Gradient, Solver, Torchdiffeq


class _Function(torch.nn.Module):
    """The field as a differentiable module that counts its evaluations."""

    def __init__(self, field: Field, stats: Stats, callback: Callback | None) -> None:
        super().__init__()
        self.field, self.stats, self.callback, self.times = field, stats, callback, [0.0]
        self.backward = False  # whether the adjoint equation is being integrated

    def forward(self, t: Tensor, x: Tensor) -> Tensor:
        return counted(self.field, float(t.detach()), x, self.stats, backward=self.backward)

    def record_accepted(self, t: Tensor | float, x: Tensor, h: Tensor | None = None) -> None:
        # torchdiffeq reports the start of each step; the end of one step is the start of the next.
        time = float(t.detach()) if isinstance(t, Tensor) else t
        if time > self.times[-1]:
            self.times.append(time)
            self.stats.accepted += 1
            if self.callback is not None:
                self.callback(time, x.detach())

    def record_rejected(self, t: Tensor, x: Tensor, h: Tensor) -> None:
        self.stats.rejected += 1


class _FixedFunction(_Function):
    callback_step = _Function.record_accepted


class _AdaptiveFunction(_Function):
    callback_accept_step = _Function.record_accepted
    callback_reject_step = _Function.record_rejected


def integrate(
    field: Field,
    x0: Tensor,
    stops: Sequence[float],
    solver: Solver,
    stats: Stats,
    callback: Callback | None,
    gradient: Gradient | None,
) -> tuple[list[Tensor], list[float]]:
    """The states at ``stops`` and the ends of the accepted steps, by a method of torchdiffeq.

    ``gradient`` is None if no gradient is needed.
    """
    from torchdiffeq import odeint, odeint_adjoint

    forward = _options(solver)
    function = (_FixedFunction if forward.fixed else _AdaptiveFunction)(field, stats, callback)
    options: dict[str, Any] = {"method": forward.method, "rtol": forward.rtol, "atol": forward.atol}
    backward = _options(gradient.solver or solver) if isinstance(gradient, Adjoint) else None
    if backward is not None:
        options |= {
            "adjoint_method": backward.method,
            "adjoint_rtol": backward.rtol,
            "adjoint_atol": backward.atol,
            "adjoint_options": {"step_size": backward.step_size} if backward.fixed else {},
            "adjoint_params": tuple(p for p in field.parameters if p.requires_grad),
        }
    run = odeint if backward is None else odeint_adjoint
    states = {0.0: x0}
    # One call per stop, so that a step ends there: torchdiffeq would interpolate instead.
    for start, stop in pairwise(sorted({0.0, *stops})):
        count = len(function.times) - 1 + math.ceil((stop - start) / forward.step_size - 1e-9)
        if forward.fixed and count > solver.max_steps:
            raise too_many_steps(count, forward.step_size, solver.max_steps, stop)
        t = torch.tensor([start, stop], dtype=torch.float64, device=x0.device)
        options["options"] = (
            {"step_size": forward.step_size} if forward.fixed else {"step_t": t, "max_num_steps": solver.max_steps}
        )
        if backward is not None and not backward.fixed:
            options["adjoint_options"] = {"step_t": t}
        try:
            states[stop] = run(function, states[start], t, **options)[-1]
        except AssertionError as error:
            raise _translated(error, function.times[-1], solver.max_steps, stop) from error
        function.record_accepted(stop, states[stop])
    function.backward = True
    return [x0.clone() if stop == 0.0 else states[stop] for stop in stops], function.times


class _Options(NamedTuple):
    """The arguments of torchdiffeq for a solver."""

    method: str
    fixed: bool
    step_size: float = 1.0
    rtol: float = 1e-3
    atol: float = 1e-3


def _options(solver: Solver) -> _Options:
    fixed = solver.fixed
    if isinstance(solver, Torchdiffeq):
        return _Options(solver.method, fixed, solver.step_size, solver.rtol, solver.atol)
    if isinstance(solver, Dopri5):
        return _Options("dopri5", fixed, rtol=solver.rtol, atol=solver.atol)
    return _Options("euler" if isinstance(solver, Euler) else "rk4", fixed, solver.step_size)


def counted(field: Field, t: float, x: Tensor, stats: Stats, *, backward: bool = False) -> Tensor:
    """``f(t, x)``, differentiable by autograd. Counts the evaluation and, later, its derivative."""
    if backward:
        stats.backward_evaluations += 1
    else:
        stats.evaluations += 1
    value = field.differentiable(t, x)
    if value.requires_grad:
        # A field with a hand-written derivative is evaluated again for its pullback.
        value.register_hook(partial(_count_backward, stats, 1 if isinstance(field, AutogradField) else 2))
    return value


def _count_backward(stats: Stats, count: int, grad: Tensor) -> None:
    stats.backward_evaluations += count


def _translated(error: AssertionError, t: float, max_steps: int, stop: float) -> Exception:
    """Our error for one of torchdiffeq at time t, with the cure; other errors stay as they are."""
    text = str(error)
    if text.startswith("max_num_steps"):
        return step_limit(t, max_steps, stop)
    return underflow(t, 0.0) if text.startswith(("underflow", "non-finite")) else error
