"""What is integrated: a vector field with its vector-Jacobian product."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dissensus.errors import InputError

# pullback(g, grads, out): takes the cotangent g of a field's value, adds to the gradients of its parameters in place
# (none are computed where ``grads`` is empty), and returns the cotangent of the state, written to ``out`` unless that
# is None. It may be called again, and changes none of its inputs.
Pullback = Callable[[Tensor, Sequence[Tensor], Tensor | None], Tensor]


class Field(ABC):
    """The right-hand side ``f(t, x)`` of ``dx/dt = f(t, x)``, with a derivative that needs no autograd graph.

    All that a field and a solver exchange are tensors, through :meth:`__call__`, :meth:`vjp` and, for speed,
    :attr:`split`. A subclass writes the first two by hand; :class:`AutogradField` makes a field of any function.

    Attributes:
        parameters: the tensors that gradients are asked for, beside the state.
        euler_limit: the largest step with which Euler's method keeps the sign of a decaying state; a larger one warns.
        pullback_states: about how much memory a pullback holds, in states; what the solver keeps depends on it.
    """

    parameters: tuple[Tensor, ...] = ()
    euler_limit: float = math.inf
    pullback_states: float = 3.0

    @abstractmethod
    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The value f(t, x), of x's shape, written to ``out`` where given; for autograd see :meth:`differentiable`."""

    @abstractmethod
    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        """The value f(t, x), written to ``out`` where given, and its pullback.

        ``pullback(g, grads, out)`` returns ``g' df/dx`` and adds ``g' df/dp`` to ``grads[i]`` for the i-th of
        ``parameters`` (those that require a gradient; the others may be left alone). Without ``grads`` the cotangent
        of the state is all that it computes. It may keep references to x and to the value, which the solver does not
        change while the pullback exists.
        """

    def differentiable(self, t: float, x: Tensor) -> Tensor:
        """The value f(t, x), differentiable by autograd in x and in the parameters; once, as :meth:`vjp` is by hand."""
        return _Evaluate.apply(self, t, x, *self.parameters)

    @property
    def split(self) -> Split:
        """The field as a nonlinear part and what is affine in the state; a subclass that knows its own saves the solver
        work."""
        return Split(self, self.vjp, pullback_states=self.pullback_states)


@dataclass(frozen=True)
class Split:
    """``f(t, x) = gain g(t, x) + drive - decay x``.

    The stages of a Runge-Kutta method are linear in the values of g, the drive and the state, so a solver evaluates g
    alone and never writes out the rest.

    Attributes:
        value: g, called as :meth:`Field.__call__`.
        vjp: g with its pullback, called as :meth:`Field.vjp`; the gradients are those of the parameters of f, without
            those of the drive.
        gain: a number.
        decay: a number.
        drive: of the state's shape; None for none.
        index: the place of the drive among the parameters; None where it needs no gradient.
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
    """A field from any differentiable function of time and state.

    Args:
        function: ``f(t, x)``, of x's shape.
        parameters: the tensors it depends on that need a gradient.
        euler_limit: see :class:`Field`.
        pullback_states: the size of the function's autograd graph, in states.
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
            by_x, *by_parameter = torch.autograd.grad(value, inputs, g, allow_unused=True, retain_graph=True)
            for i, grad in zip(wanted, by_parameter, strict=True):
                if grad is not None:
                    grads[i].add_(grad)
            return target.zero_() if by_x is None else target.copy_(by_x)

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
        by_x = ctx.field.vjp(ctx.t, x)[1](grads[0].contiguous(), totals, None)
        return None, None, by_x, *totals
