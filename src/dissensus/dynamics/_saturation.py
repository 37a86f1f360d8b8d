"""Saturating functions, each with its slope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dissensus.errors import one_of


@dataclass(frozen=True)
class Saturation:
    """``S(z) = outer K(inner z) + shift``: a kernel K between affine maps, which the field folds into its constants.

    Attributes:
        kernel: K, in place where it can; returns the kernel's value.
        pull: ``(g, k, z, out) -> g K'``, from the cotangent g, the kernel's value k and its argument z; written to
            ``out`` unless it is g itself.
        keeps_argument: whether ``pull`` needs z.
        inner, outer, shift: the affine maps.
        odd: S is odd with S(0) = 0, S'(0) = 1 and S'''(0) != 0, as nonlinear opinion dynamics asks.
    """

    kernel: Callable[[Tensor], Tensor]
    pull: Callable[[Tensor, Tensor, Tensor | None, Tensor], Tensor]
    keeps_argument: bool = False
    inner: float = 1.0
    outer: float = 1.0
    shift: float = 0.0
    odd: bool = False

    def __call__(self, z: Tensor) -> Tensor:
        """S(z), differentiable."""
        return self.outer * self.kernel(z * self.inner) + self.shift


def _pull_gelu(g: Tensor, k: Tensor, z: Tensor | None, out: Tensor) -> Tensor:
    return torch.ops.aten.gelu_backward.grad_input(g, z, grad_input=out)


def _pull_arctan(g: Tensor, k: Tensor, z: Tensor | None, out: Tensor) -> Tensor:
    # g / (1 + z^2)
    assert z is not None
    return torch.div(g, torch.mul(z, z, out=out).add_(1.0), out=out)


def _softsign(z: Tensor) -> Tensor:
    return z / (1.0 + z.abs())


def _pull_softsign(g: Tensor, k: Tensor, z: Tensor | None, out: Tensor) -> Tensor:
    # g (1 - |k|)^2
    return torch.abs(k, out=out).neg_().add_(1.0).square_().mul_(g)


def _pull_relu(g: Tensor, k: Tensor, z: Tensor | None, out: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward.grad_input(g, k, 0.0, grad_input=out)


def _pull_sigmoid(g: Tensor, k: Tensor, z: Tensor | None, out: Tensor) -> Tensor:
    return torch.ops.aten.sigmoid_backward.grad_input(g, k, grad_input=out)


def _pull_tanh(g: Tensor, k: Tensor, z: Tensor | None, out: Tensor) -> Tensor:
    return torch.ops.aten.tanh_backward.grad_input(g, k, grad_input=out)


_TANH = Saturation(torch.tanh, _pull_tanh, odd=True)
# tanh(z) = 2 sigmoid(2z) - 1: several times faster on a CPU, and in float32 as accurate as the state itself.
_TANH_BY_SIGMOID = Saturation(torch.sigmoid, _pull_sigmoid, inner=2.0, outer=2.0, shift=-1.0, odd=True)

_SATURATIONS = {
    "tanh": _TANH,
    "softsign": Saturation(_softsign, _pull_softsign, odd=True),
    "arctan": Saturation(torch.atan, _pull_arctan, keeps_argument=True, odd=True),
    "sigmoid": Saturation(torch.sigmoid, _pull_sigmoid),
    "relu": Saturation(torch.relu, _pull_relu),
    "gelu": Saturation(torch.nn.functional.gelu, _pull_gelu, keeps_argument=True),
    "linear": Saturation(lambda z: z, lambda g, k, z, out: g),
}

SATURATIONS = tuple(_SATURATIONS)


def saturation(name: str, dtype: torch.dtype = torch.float64, device: torch.device | None = None) -> Saturation:
    """The saturation of that name: tanh, softsign, arctan (these satisfy S(0) = 0, S'(0) = 1, S'''(0) != 0), and, for
    comparison, sigmoid, relu, gelu and linear.

    In float32 on a CPU, tanh comes in its sigmoid form.
    """
    one_of("saturation", name, SATURATIONS)
    if name == "tanh" and dtype == torch.float32 and (device is None or device.type == "cpu"):
        return _TANH_BY_SIGMOID
    return _SATURATIONS[name]
