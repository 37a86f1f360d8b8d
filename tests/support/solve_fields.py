"""Fields with known solutions and fields that count."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dissensus import solve as room
from dissensus.solve import Field, Pullback, Solution

METHODS = ("euler", "rk4", "dopri5", "midpoint", "heun2", "heun3", "explicit_adams", "implicit_adams")
METHODS += ("bosh3", "fehlberg2", "adaptive_heun", "dopri8")


def solve(
    field: Any,
    x0: Tensor,
    t: float,
    method: str = "dopri5",
    *,
    gradient: str = "discrete",
    adjoint: dict[str, Any] | None = None,
    memory: int = 2**29,
    save_at: Sequence[float] = (),
    mesh: Sequence[float] = (),
    callback: Any = None,
    **options: Any,
) -> Solution:
    """``dissensus.solve.solve`` with the parts by name, so that a test can go through all of them."""
    solver = room.solver_named(method, **options)
    back = {"method": method, **options, **(adjoint or {})}
    parts = {
        "discrete": room.Discrete(memory),
        "autograd": room.Autograd(),
        "adjoint": room.Adjoint(room.solver_named(**back)),
    }
    return room.solve(field, x0, t, solver, parts[gradient], save_at=save_at, mesh=mesh, callback=callback)


def waves(t: float, x: Tensor) -> Tensor:
    """x' = cos(t) x, so x(t) = x(0) exp(sin t)."""
    return x * math.cos(t)


def pendulum(t: float, x: Tensor) -> Tensor:
    """A damped, driven pendulum: no formula, smooth, depends on time."""
    angle, speed = x.unbind(-1)
    return torch.stack([speed, -torch.sin(angle) - 0.1 * speed + 0.3 * math.cos(2.0 * t)], -1)


class Drift(torch.nn.Module):
    """x' = tanh(x W) + t b - x, a module with two parameters."""

    def __init__(self, channels: int = 2) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.weight = torch.nn.Parameter(torch.randn(channels, channels, generator=generator, dtype=torch.float64))
        self.bias = torch.nn.Parameter(torch.randn(channels, generator=generator, dtype=torch.float64))

    def forward(self, t: float, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.weight) + t * self.bias - x


class Counting(Field):
    """x' = -p x^2 by hand, which counts what is asked of it."""

    def __init__(self, p: Tensor, euler_limit: float = float("inf")) -> None:
        self.p, self.parameters, self.euler_limit = p, (p,), euler_limit
        self.calls = self.vjps = self.pullbacks = 0

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        self.calls += 1
        return torch.mul(-self.p.detach() * x, x.detach(), out=out)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        self.vjps += 1
        x = x.detach().clone()

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            self.pullbacks += 1
            grads[0].sub_((g * x * x).sum())
            return torch.mul(g * x, -2.0 * self.p.detach(), out=out)

        return torch.mul(-self.p.detach() * x, x, out=out), pullback

    def count(self) -> int:
        return self.calls + self.vjps + self.pullbacks
