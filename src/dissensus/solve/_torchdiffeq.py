"""Every method that is not ours, through torchdiffeq."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dissensus.solve._field import Field
from dissensus.solve._integrate import Callback, Method, Stats, counted, step_limit, too_many_steps, underflow

if TYPE_CHECKING:
    from dissensus.solve._solve import Adjoint

FIXED = ("midpoint", "heun2", "heun3", "explicit_adams", "implicit_adams")
ADAPTIVE = ("bosh3", "fehlberg2", "adaptive_heun", "dopri8")
METHODS = (*FIXED, *ADAPTIVE)


class _Function(torch.nn.Module):
    """The field as torchdiffeq calls it: counted and differentiable."""

    def __init__(self, field: Field, stats: Stats, callback: Callback | None) -> None:
        super().__init__()
        self.field, self.stats, self.callback, self.times = field, stats, callback, [0.0]
        self.backward = False  # whether it is now the adjoint equation that evaluates

    def forward(self, t: Tensor, x: Tensor) -> Tensor:
        return counted(self.field, float(t.detach()), x, self.stats, backward=self.backward)

    def passed(self, t: Tensor | float, x: Tensor, h: Tensor | None = None) -> None:
        # torchdiffeq names the start of a step; the end of one step is the start of the next.
        time = float(t.detach()) if isinstance(t, Tensor) else t
        if time > self.times[-1]:
            self.times.append(time)
            self.stats.accepted += 1
            if self.callback is not None:
                self.callback(time, x.detach())

    def rejected(self, t: Tensor, x: Tensor, h: Tensor) -> None:
        self.stats.rejected += 1


class _FixedFunction(_Function):
    callback_step = _Function.passed


class _AdaptiveFunction(_Function):
    callback_accept_step = _Function.passed
    callback_reject_step = _Function.rejected


def integrate(
    field: Field,
    x0: Tensor,
    stops: Sequence[float],
    name: str,
    method: Method,
    stats: Stats,
    callback: Callback | None,
    gradient: str,
    adjoint: Adjoint,
) -> tuple[list[Tensor], list[float]]:
    """The states at ``stops`` and the accepted times, by torchdiffeq's method of that name."""
    from torchdiffeq import odeint, odeint_adjoint

    fixed = has_fixed_steps(name)
    function = (_FixedFunction if fixed else _AdaptiveFunction)(field, stats, callback)
    options: dict[str, Any] = {"method": name, "rtol": method.rtol, "atol": method.atol}
    if gradient == "adjoint":
        options |= _adjoint_options(adjoint, adjoint.method or name, method)
        options["adjoint_params"] = tuple(p for p in field.parameters if p.requires_grad)
    run = odeint_adjoint if gradient == "adjoint" else odeint
    states = {0.0: x0}
    # One call for each stop, and a step that ends there: torchdiffeq would only interpolate.
    for start, stop in pairwise(sorted({0.0, *stops})):
        count = len(function.times) - 1 + math.ceil((stop - start) / method.step_size - 1e-9)
        if fixed and count > method.max_steps:
            raise too_many_steps(count, method, stop)
        t = torch.tensor([start, stop], dtype=torch.float64, device=x0.device)
        options["options"] = (
            {"step_size": method.step_size} if fixed else {"step_t": t, "max_num_steps": method.max_steps}
        )
        if gradient == "adjoint" and not has_fixed_steps(options["adjoint_method"]):
            options["adjoint_options"] = {"step_t": t}
        try:
            states[stop] = run(function, states[start], t, **options)[-1]
        except AssertionError as error:
            raise _explained(error, function.times[-1], method, stop) from error
        function.passed(stop, states[stop])
    function.backward = True
    return [x0.clone() if stop == 0.0 else states[stop] for stop in stops], function.times


def has_fixed_steps(name: str) -> bool:
    """Whether a method takes steps of ``step_size``, rather than of its own choice."""
    return name in (*FIXED, "euler", "rk4")


def _adjoint_options(adjoint: Adjoint, name: str, method: Method) -> dict[str, Any]:
    rtol, atol = adjoint.tolerances(method.rtol, method.atol)
    options = {"step_size": adjoint.step_size or method.step_size} if has_fixed_steps(name) else {}
    return {"adjoint_method": name, "adjoint_rtol": rtol, "adjoint_atol": atol, "adjoint_options": options}


def _explained(error: AssertionError, t: float, method: Method, stop: float) -> Exception:
    text = str(error)
    if text.startswith("max_num_steps"):
        return step_limit(t, method, stop)
    return underflow(t, 0.0) if text.startswith(("underflow", "non-finite")) else error
