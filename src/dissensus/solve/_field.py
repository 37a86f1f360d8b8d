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
from dissensus.solve._sums import Sum

# pullback(g, grads, out): takes the cotangent g of a field's value, adds to the gradients of its parameters in place
# (none are computed where ``grads`` is empty), and returns the cotangent of the state, written to ``out`` unless that
# is None. Those of the core of a split that takes sums take a :class:`Sum` as well.
Pullback = Callable[[Any, Sequence[Tensor], Tensor | None], Tensor]


class Field(ABC):
    """The right-hand side ``f(t, x)`` of ``dx/dt = f(t, x)``, with a derivative that needs no autograd graph.

    A subclass writes :meth:`__call__` and :meth:`vjp` by hand; :class:`AutogradField` makes a field of any function.

    Attributes:
        parameters: the tensors that gradients are asked for, beside the state.
        euler_limit: the largest step with which Euler's method keeps its sign; a larger one warns.
        pullback_states: about how much memory a pullback holds, in states; what the solver keeps depends on it.
    """

    parameters: tuple[Tensor, ...] = ()
    euler_limit: float = math.inf
    pullback_states: float = 3.0

    @abstractmethod
    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The value f(t, x), of x's shape, written to ``out`` where given. Not differentiable; see :func:`evaluate`."""

    @abstractmethod
    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        """The value f(t, x), written to ``out`` where given, and its pullback.

        ``pullback(g, grads, out)`` returns ``g' df/dx`` and adds ``g' df/dp`` to ``grads[i]`` for the i-th of
        ``parameters`` (those that require a gradient; the others may be left alone). Without ``grads`` the cotangent
        of the state is all that it computes.
        """

    @property
    def split(self) -> Split:
        """The field as a core and what is affine in the state; a subclass that knows its own saves the solver work."""
        return Split(self)


@dataclass(frozen=True)
class Split:
    """``f(t, x) = gain g(t, x) + drive - decay x``.

    The stages of a Runge-Kutta method are linear in the values of g, the drive and the state, so a solver evaluates g
    alone and never writes out the rest.

    Attributes:
        core: g, a field with the parameters of f; its pullback leaves the gradients of drive and decay alone.
        gain: a number.
        decay: a number.
        drive: of the state's shape; None for none.
        index: the place of the drive among the parameters; None where it needs no gradient.
        keeps_value: whether the pullbacks of g hold on to its value, which must then stay as it is.
        takes_sums: whether g is a :class:`Core` that takes a :class:`Sum` to be made after its value, and whose
            pullbacks take one in place of a tensor.
    """

    core: Field
    gain: float = 1.0
    decay: float = 0.0
    drive: Tensor | None = None
    index: int | None = None
    keeps_value: bool = False
    takes_sums: bool = False


class Core(Field):
    """The part of a field that its :attr:`Field.split` leaves to be evaluated, from two functions of the state alone.

    Args:
        of: the whole field, whose parameters it has.
        value: ``value(x, out)``, as :meth:`Field.__call__`; ``value(x, out, then)`` where its split takes sums.
        vjp: ``vjp(x, out)``, as :meth:`Field.vjp`; likewise.
        pullback_states: see :class:`Field`.
    """

    def __init__(
        self,
        of: Field,
        value: Callable[..., Tensor],
        vjp: Callable[..., tuple[Tensor, Pullback]],
        pullback_states: float,
    ) -> None:
        self.parameters, self.pullback_states = of.parameters, pullback_states
        self._value, self._vjp = value, vjp

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None, *then: Sum) -> Tensor:
        return self._value(x, out, *then)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None, *then: Sum) -> tuple[Tensor, Pullback]:
        return self._vjp(x, out, *then)


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


def evaluate(field: Field, t: float, x: Tensor) -> Tensor:
    """``f(t, x)``, differentiable by autograd in x and in the field's parameters (once, where the field is by hand)."""
    if isinstance(field, AutogradField):
        return field.differentiable(t, x)
    return _Evaluate.apply(field, t, x, *field.parameters)
