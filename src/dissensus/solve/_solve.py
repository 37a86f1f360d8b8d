"""``solve``: integrate a field; gradients by the exact discrete adjoint, by autograd, or by the continuous adjoint."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from dissensus._memory import empty_like
from dissensus.errors import InputError, one_of
from dissensus.solve._field import AutogradField, Field, Pullback
from dissensus.solve._integrate import Callback, Integrator, Method, Stats, advance, counted, equal_mesh, step_vjp
from dissensus.solve._sums import rms
from dissensus.solve._tableau import TABLEAUS
from dissensus.solve._tape import Tape
from dissensus.solve._torchdiffeq import METHODS as OTHER_METHODS
from dissensus.solve._torchdiffeq import integrate as integrate_elsewhere

Gradient = Literal["discrete", "autograd", "adjoint"]
METHODS = (*TABLEAUS, *OTHER_METHODS)
GRADIENTS = ("discrete", "autograd", "adjoint")


class StepSizeWarning(UserWarning):
    """A step so large that the damping alone changes the sign of the state."""


@dataclass(frozen=True)
class Adjoint:
    """How the continuous adjoint is integrated back in time; None takes what the forward pass used."""

    method: str | None = None
    step_size: float | None = None
    rtol: float | None = None
    atol: float | None = None

    def tolerances(self, rtol: float, atol: float) -> tuple[float, float]:
        """The adjoint's rtol and atol, given those of the forward pass."""
        return rtol if self.rtol is None else self.rtol, atol if self.atol is None else self.atol


@dataclass(frozen=True)
class Solution:
    """The result of an integration.

    Attributes:
        state: x(t1).
        times: 0 and the end of every accepted step.
        stats: evaluations and steps; the backward pass adds its own when it runs.
        saved: the states at ``save_at``, [len(save_at), *x0.shape]; empty without.
        mesh: of ``dopri5``, the ends of few steps that would have kept the tolerance, all with about the same error, in
            hindsight: where to step in the next problem of the kind. Empty for the other methods.
    """

    state: Tensor
    times: tuple[float, ...]
    stats: Stats
    saved: Tensor = dataclass_field(repr=False)
    mesh: tuple[float, ...] = ()


@torch.compiler.disable
def solve(
    field: Field | Any,
    x0: Tensor,
    t1: float,
    method: str = "dopri5",
    *,
    step_size: float = 1.0,
    rtol: float = 1e-3,
    atol: float = 1e-3,
    mesh: Sequence[float] = (),
    gradient: Gradient = "discrete",
    adjoint: Adjoint | None = None,
    memory: int = 2**29,
    save_at: Sequence[float] = (),
    callback: Callback | None = None,
    max_steps: int = 10_000,
) -> Solution:
    """Solve ``dx/dt = f(t, x)``, ``x(0) = x0``, up to time ``t1``.

    Args:
        field: a :class:`Field`, or any differentiable function ``f(t, x)`` (of a module, the parameters get gradients).
        x0: the initial state, of any shape.
        t1: the end of time, positive.
        method: ``euler``, ``rk4`` (3/8 rule) and ``dopri5`` run on our own integrator; the others are torchdiffeq's.
        step_size: of the fixed-step methods; a last step is shortened to end at ``t1``.
        rtol: relative tolerance of the adaptive methods.
        atol: absolute tolerance of the adaptive methods.
        mesh: times at which the steps of ``dopri5`` end if their errors allow it: the ``mesh`` of the solution of a
            like problem. Without, it finds its steps as it goes, which mostly takes more of them.
        gradient: ``discrete``, the exact derivative of the steps taken, without an autograd graph; ``autograd``, the
            same by plain backpropagation through the solver (torchdiffeq's methods know only this one of the two);
            ``adjoint``, the adjoint equation integrated back in time: memory of one state, and an error of its own.
        adjoint: method, step and tolerances of the continuous adjoint.
        memory: bytes for what ``discrete`` may keep: the states at the start of the steps and, while there is room,
            what the derivative of their stages needs. The rest is computed again in the backward pass, from 8 states
            or more, with 8 further ones at a time, however many steps there are. The gradient is the same, bit for bit.
        save_at: times at which the state is wanted as well, in [0, t1]; a step ends at each. Differentiable.
        callback: called with (time, state) after every accepted step.
        max_steps: more raise an error.

    Returns:
        A :class:`Solution`.
    """
    adjoint = adjoint or Adjoint()
    check_options(t1, method, step_size, rtol, atol, gradient, adjoint, max_steps)
    if not all(math.isfinite(t) and t > 0 for t in mesh):
        raise InputError(f"mesh = {list(mesh)}: the ends of steps are positive and finite")
    if not isinstance(x0, Tensor) or not x0.is_floating_point():
        raise InputError("x0 must be a tensor of floating-point numbers: convert it with x0.float()")
    if not isinstance(field, Field):
        module_parameters = field.parameters() if isinstance(field, torch.nn.Module) else ()
        field = AutogradField(field, tuple(module_parameters))
    if method == "euler" and step_size > field.euler_limit * (1 + 1e-9):
        warnings.warn(
            f"Euler's step of {step_size:g} is larger than {field.euler_limit:g}, the time in which opinions fade, so "
            f"that each step overshoots and flips signs: use step_size <= {field.euler_limit:g}, or method='dopri5'",
            StepSizeWarning,
            stacklevel=3,  # one is the wrapper that keeps this from being compiled
        )
    times = torch.as_tensor(save_at, dtype=torch.float64, device="cpu").reshape(-1)
    stops, where = torch.unique(torch.cat([times, times.new_tensor([t1])]), return_inverse=True)
    if not bool(((stops >= 0) & (stops <= t1)).all()):
        raise InputError(f"save_at reaches outside [0, {t1:g}]: {list(map(float, times))}")
    plan = _Plan(
        field=field,
        method=Method(TABLEAUS.get(method, TABLEAUS["dopri5"]), float(step_size), rtol, atol, max_steps),
        name=method,
        stops=tuple(stops.tolist()),
        memory=memory,
        callback=callback,
        adjoint=adjoint,
        mesh=mesh,
    )
    x0 = x0.contiguous()
    states = plan.run(x0, gradient)
    index = where[:-1].tolist()
    saved = torch.stack([states[i] for i in index]) if index else x0.new_empty((0, *x0.shape))
    order = plan.method.tableau.order
    better = equal_mesh(plan.times, plan.errors, order) if plan.errors else ()
    return Solution(states[-1], tuple(plan.times), plan.stats, saved, better)


def check_options(
    t1: float,
    method: str,
    step_size: float,
    rtol: float,
    atol: float,
    gradient: str,
    adjoint: Adjoint,
    max_steps: int = 1,
) -> None:
    """Refuse options that :func:`solve` cannot use, so that a model can do so when it is made."""
    one_of("method", method, METHODS)
    one_of("gradient", gradient, GRADIENTS)
    if adjoint.method is not None:
        one_of("adjoint method", adjoint.method, METHODS)
    if not (math.isfinite(t1) and t1 > 0):
        raise InputError(f"the time is {t1}: it must be positive and finite")
    for size in (step_size, step_size if adjoint.step_size is None else adjoint.step_size):
        if not (math.isfinite(size) and size > 0):
            raise InputError(f"step_size is {size}: it must be positive and finite")
    for r, a in ((rtol, atol), adjoint.tolerances(rtol, atol)):
        if not (r >= 0 and a >= 0 and r + a > 0):
            raise InputError(f"rtol = {r} and atol = {a}: neither may be negative, nor both zero")
    if max_steps < 1:
        raise InputError(f"max_steps is {max_steps}: at least 1")


@dataclass
class _Plan:
    """Everything about one integration but its initial state."""

    field: Field
    method: Method
    name: str
    stops: tuple[float, ...]
    memory: int
    callback: Callback | None
    adjoint: Adjoint
    mesh: Sequence[float]
    stats: Stats = dataclass_field(default_factory=Stats)
    times: list[float] = dataclass_field(default_factory=list)
    errors: list[float] = dataclass_field(default_factory=list)

    def run(self, x0: Tensor, gradient: Gradient) -> Sequence[Tensor]:
        differentiable = torch.is_grad_enabled() and (
            x0.requires_grad or any(p.requires_grad for p in self.field.parameters)
        )
        names = (self.name, self.adjoint.method if differentiable and gradient == "adjoint" else None)
        if any(name in OTHER_METHODS for name in names):
            return self._elsewhere(x0, gradient if differentiable else "discrete")
        if not differentiable:
            with torch.no_grad():
                return self.integrate(x0)
        if gradient == "autograd":
            return _through_autograd(self, x0)
        function = _Discrete if gradient == "discrete" else _Continuous
        return function.apply(self, x0, *self.field.parameters)

    def tape(self, x0: Tensor, memory: int) -> Tape:
        size = x0.numel() * x0.element_size()
        return Tape(memory, size, self.field.split.core.pullback_states * self.method.tableau.stages * size)

    def integrate(self, x0: Tensor, tape: Tape | None = None) -> list[Tensor]:
        integrator = Integrator(self.field, self.method, self.stats, tape=tape, callback=self.callback, mesh=self.mesh)
        states = integrator.run(x0, self.stops)
        self.times, self.errors = integrator.times, integrator.errors
        # The caller owns the states: never hand out the input itself.
        return [x0.clone() if state is x0 else state for state in states]

    def _elsewhere(self, x0: Tensor, gradient: Gradient) -> Sequence[Tensor]:
        states, self.times = integrate_elsewhere(
            self.field, x0, self.stops, self.name, self.method, self.stats, self.callback, gradient, self.adjoint
        )
        return states


class _Discrete(torch.autograd.Function):
    """The exact derivative of the steps taken (their sizes held fixed, as everywhere)."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, x0: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.plan, ctx.tape = plan, plan.tape(x0, plan.memory)
        ctx.save_for_backward(x0, *parameters)  # only so that autograd notices changes in place
        *states, last = plan.integrate(x0, ctx.tape)
        # Copies: a state that is both kept and given away would hold itself alive.
        return *(state.clone() for state in states), last

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        _, *parameters = ctx.saved_tensors
        grads = [torch.zeros_like(p, memory_format=torch.contiguous_format) for p in parameters]
        pending = dict(zip(plan.stops, cotangents, strict=True))
        total: Tensor | None = None
        parts = plan.field, plan.method.tableau, plan.stats
        taken = ctx.tape.backwards(partial(advance, *parts))
        for end, (step, x, pullbacks) in zip(reversed(plan.times[1:]), taken, strict=True):
            if end in pending:
                total = _sum(total, pending.pop(end))
            assert total is not None  # the last step ends at the last stop
            total = step_vjp(*parts, step, x, pullbacks, total, grads)
        for cotangent in pending.values():  # a stop at time zero
            total = _sum(total, cotangent)
        return None, total, *grads


def _sum(one: Tensor | None, other: Tensor) -> Tensor:
    return other if one is None else one + other


class _Continuous(torch.autograd.Function):
    """The adjoint equation ``da/dt = -a' df/dx``, integrated back with the state and the parameters' gradients."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, x0: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        ctx.plan = plan
        states = plan.integrate(x0)
        ctx.save_for_backward(*states)
        return tuple(states)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        options = plan.adjoint
        rtol, atol = options.tolerances(plan.method.rtol, plan.method.atol)
        method = replace(
            plan.method,
            tableau=TABLEAUS[options.method or plan.name],
            step_size=options.step_size or plan.method.step_size,
            rtol=rtol,
            atol=atol,
        )
        adjoint = torch.zeros_like(ctx.saved_tensors[-1])
        grads = [torch.zeros_like(p) for p in plan.field.parameters]
        starts = [0.0, *plan.stops]
        for i in reversed(range(len(plan.stops))):
            adjoint = adjoint + cotangents[i]
            duration = plan.stops[i] - starts[i]
            if duration > 0:
                backward = _Backward(plan.field, plan.stops[i], adjoint.shape)
                stats = Stats()
                integrator = Integrator(backward, method, stats, norm=backward.norm)
                packed = backward.pack(ctx.saved_tensors[i], adjoint, grads)
                _, adjoint, grads = backward.unpack(integrator.run(packed, [duration])[-1])
                plan.stats.backward_evaluations += 2 * stats.evaluations
        return None, adjoint, *grads


class _Backward(Field):
    """State, adjoint and parameter gradients as one vector, in the time that runs back from ``end``."""

    def __init__(self, field: Field, end: float, shape: torch.Size) -> None:
        self.field, self.end, self.shape, self.size = field, end, shape, shape.numel()

    def pack(self, x: Tensor, adjoint: Tensor, grads: Sequence[Tensor]) -> Tensor:
        return torch.cat([part.reshape(-1) for part in (x, adjoint, *grads)])

    def unpack(self, packed: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        shapes = [self.shape, self.shape, *(p.shape for p in self.field.parameters)]
        parts = packed.split([shape.numel() for shape in shapes])
        x, adjoint, *grads = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
        return x, adjoint, grads

    def norm(self, error: Tensor) -> float:
        # The largest over the three blocks: many parameters must not hide an error of the state.
        size = self.size
        return max(rms(error[:size]), rms(error[size : 2 * size]), rms(error[2 * size :]))

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        out = empty_like(x) if out is None else out
        state, adjoint, _ = self.unpack(x)
        by_state, by_adjoint, by_parameter = self.unpack(out)
        for total in by_parameter:
            total.zero_()
        value, pullback = self.field.vjp(self.end - t, state)
        torch.neg(value, out=by_state)
        pullback(adjoint, by_parameter, by_adjoint)
        return out

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        raise TypeError("the adjoint equation is not differentiated again")


def _through_autograd(plan: _Plan, x0: Tensor) -> list[Tensor]:
    """Plain backpropagation: the steps that the integrator takes, repeated with differentiable operations."""
    tape = plan.tape(x0, 0)
    with torch.no_grad():
        plan.integrate(x0, tape)
    tableau, states, x = plan.method.tableau, {0.0: x0}, x0
    for step, end in zip(tape.steps, plan.times[1:], strict=True):
        k: list[Tensor] = []
        for a, c in zip(tableau.a, tableau.c, strict=True):
            inputs = x + step.h * sum((w * v for w, v in zip(a, k, strict=True)), torch.zeros_like(x)) if a else x
            k.append(counted(plan.field, step.t + c * step.h, inputs, plan.stats))
        x = x + step.h * sum((w * v for w, v in zip(tableau.b, k, strict=True)), torch.zeros_like(x))
        states[end] = x
    return [states[stop] for stop in plan.stops]
