"""Every method that is not ours, through torchdiffeq."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dissensus.solve._field import AutogradField, Field, evaluate
from dissensus.solve._integrate import Callback, Method, Stats

if TYPE_CHECKING:
    from dissensus.solve._solve import Adjoint

FIXED = ("midpoint", "heun2", "heun3", "explicit_adams", "implicit_adams")
ADAPTIVE = ("bosh3", "fehlberg2", "adaptive_heun", "dopri8")
METHODS = (*FIXED, *ADAPTIVE)


class _Function(torch.nn.Module):
    """The field as torchdiffeq calls it: counted, differentiable, and reporting its accepted steps."""

    def __init__(self, field: Field, stats: Stats, callback: Callback | None) -> None:
        super().__init__()
        self.field, self.stats, self.callback, self.times = field, stats, callback, [0.0]

    def forward(self, t: Tensor, x: Tensor) -> Tensor:
        self.stats.evaluations += 1
        if isinstance(self.field, AutogradField):
            return self.field.function(float(t), x)
        return evaluate(self.field, float(t), x)

    def callback_accept_step(self, t: Tensor, x: Tensor, h: Tensor) -> None:
        # Called with the start of the step; the end of one step is the start of the next.
        self._passed(float(t), x)

    def callback_step(self, t: Tensor, x: Tensor, h: Tensor) -> None:
        self.stats.accepted += 1  # tried, until the rejected ones are taken off

    def callback_reject_step(self, t: Tensor, x: Tensor, h: Tensor) -> None:
        self.stats.rejected += 1
        self.stats.accepted -= 1

    def _passed(self, t: float, x: Tensor) -> None:
        if t > self.times[-1]:
            self.times.append(t)
            if self.callback is not None:
                self.callback(t, x.detach())


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

    function = _Function(field, stats, callback)
    grid = sorted({0.0, *stops})
    options: dict[str, Any] = {"step_size": method.step_size} if name in FIXED else {"max_num_steps": method.max_steps}
    common: dict[str, Any] = {"method": name, "rtol": method.rtol, "atol": method.atol, "options": options}
    t = torch.tensor(grid, dtype=torch.float64, device=x0.device)
    if gradient == "adjoint":
        back = adjoint.method or name
        fixed = back in FIXED or back in ("euler", "rk4")
        states = odeint_adjoint(
            function,
            x0,
            t,
            **common,
            adjoint_params=tuple(p for p in field.parameters if p.requires_grad),
            adjoint_method=back,
            adjoint_rtol=method.rtol if adjoint.rtol is None else adjoint.rtol,
            adjoint_atol=method.atol if adjoint.atol is None else adjoint.atol,
            adjoint_options={"step_size": adjoint.step_size or method.step_size} if fixed else {},
        )
    else:
        states = odeint(function, x0, t, **common)
    function._passed(grid[-1], states[-1])
    return [states[grid.index(stop)] for stop in stops], function.times
