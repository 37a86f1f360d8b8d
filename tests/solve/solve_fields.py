"""Fields with known solutions and fields that count."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from dissensus.solve import Field, Pullback


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
