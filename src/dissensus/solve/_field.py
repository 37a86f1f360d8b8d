"""Vector fields with their vector-Jacobian products."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dissensus.errors import InputError

# pullback(g, grads, out) takes the cotangent g of a field's value, adds to the parameter gradients ``grads`` in place
# (and computes none if ``grads`` is empty), and returns the cotangent of the state, written to ``out`` unless that is
# None. It can be called repeatedly and does not change its inputs.
Pullback = Callable[[Tensor, Sequence[Tensor], Tensor | None], Tensor]


class Field(ABC):
    """The right-hand side ``f(t, x)`` of ``dx/dt = f(t, x)``, with a derivative that needs no autograd graph.

    A solver only uses :meth:`__call__`, :meth:`vjp` and, for speed, :attr:`semilinear`. Subclasses implement the first
    two; :class:`AutogradField` turns any differentiable function into a field.

    Attributes:
        parameters: the tensors for which gradients are computed, besides the state.
        euler_limit: the largest Euler step that keeps the sign of a decaying state; larger steps raise a warning.
        pullback_states: estimated memory of a pullback, in states, from which the solver decides how many to keep.
    """

    parameters: tuple[Tensor, ...] = ()
    euler_limit: float = math.inf
    pullback_states: float = 3.0

    @abstractmethod
    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The value f(t, x), written to ``out`` if given; for autograd use :meth:`differentiable`."""

    @abstractmethod
    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        """The value f(t, x), written to ``out`` if given, and its pullback.

        ``pullback(g, grads, out)`` returns ``g' df/dx`` and adds ``g' df/dp`` to ``grads[i]``, where p is the i-th of
        ``parameters``; it may skip parameters that do not require a gradient. If ``grads`` is empty, it only computes
        the cotangent of the state. It may keep references to x and to the value, which the solver does not change while
        the pullback exists.
        """

    def differentiable(self, t: float, x: Tensor) -> Tensor:
        """The value f(t, x), differentiable once by autograd in x and in the parameters."""
        return _Evaluate.apply(self, t, x, *self.parameters)

    @property
    def semilinear(self) -> Semilinear:
        """The field as a nonlinear part plus an affine part. Subclasses that override this save the solver work."""
        return Semilinear(self, self.vjp, pullback_states=self.pullback_states)


@dataclass(frozen=True)
class Semilinear:
    """``f(t, x) = gain g(t, x) + drive - decay x``.

    The stages of a Runge-Kutta method are linear in the values of g, the drive and the state, so the solver evaluates
    only g and never forms the other terms.

    Attributes:
        value: g, with the arguments of :meth:`Field.__call__`.
        vjp: g with its pullback, with the arguments of :meth:`Field.vjp`. It adds the gradients of all parameters of f
            except the drive.
        gain: the scalar factor of g.
        decay: the scalar factor of the state.
        drive: a tensor of the state's shape, or None.
        index: index of the drive among the parameters, or None if it needs no gradient.
        pullback_states: see :class:`Field`.
    """

    value: Callable[[float, Tensor, Tensor | None], Tensor]
    vjp: Callable[[float, Tensor, Tensor | None], tuple[Tensor, Pullback]]
    gain: float = 1.0
    decay: float = 0.0
    drive: Tensor | None = None
    index: int | None = None
    pullback_states: float = 3.0


class AutogradField(Field):
    """A field defined by any differentiable function of time and state.

    Args:
        function: ``f(t, x)``, which returns a tensor of x's shape.
        parameters: the tensors for which the function needs gradients.
        euler_limit: see :class:`Field`.
        pullback_states: estimated memory of the function's autograd graph, in states.
    """

    def __init__(
        self,
        function: Callable[[float, Tensor], Tensor],
        parameters: Sequence[Tensor] = (),
        euler_limit: float = math.inf,
        pullback_states: float = 3.0,
    ) -> None:
        self.function = function
        self.parameters = tuple(parameters)
        self.euler_limit, self.pullback_states = euler_limit, pullback_states

    def differentiable(self, t: float, x: Tensor) -> Tensor:
        """f(t, x) with its autograd graph."""
        value = self.function(t, x)
        if value.shape != x.shape:
            raise InputError(
                f"the field maps a state of shape {list(x.shape)} to one of {list(value.shape)}: the shapes must agree"
            )
        return value

    @torch.no_grad()
    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        value = self.differentiable(t, x)
        return value if out is None else out.copy_(value)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            learned = [i for i, p in enumerate(self.parameters) if p.requires_grad]
            value = self.differentiable(t, x)

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            target = torch.empty_like(x, requires_grad=False) if out is None else out
            if not value.requires_grad:
                return target.zero_()
            wanted = learned if grads else []
            inputs = [x, *(self.parameters[i] for i in wanted)]
            grad_x, *grad_parameters = torch.autograd.grad(value, inputs, g, allow_unused=True, retain_graph=True)
            for i, grad in zip(wanted, grad_parameters, strict=True):
                if grad is not None:
                    grads[i].add_(grad)
            return target.zero_() if grad_x is None else target.copy_(grad_x)

        detached = value.detach()
        return detached if out is None else out.copy_(detached), pullback


class _Evaluate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, field: Field, t: float, x: Tensor, *parameters: Tensor) -> Tensor:
        ctx.field, ctx.t = field, t
        ctx.save_for_backward(x)
        return field(t, x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        totals = [torch.zeros_like(p) for p in ctx.field.parameters]
        grad_x = ctx.field.vjp(ctx.t, x)[1](grads[0].contiguous(), totals, None)
        return None, None, grad_x, *totals
