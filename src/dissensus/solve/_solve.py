"""The function ``solve``, with gradients by the discrete adjoint, by autograd, or by the continuous adjoint."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

import torch
from torch import Tensor

from dissensus.errors import InputError, StepSizeWarning
from dissensus.runtime import exporting
from dissensus.solve._control import equal_mesh, scaled_error_norm
from dissensus.solve._field import AutogradField, Field, Pullback
from dissensus.solve._integrate import Callback, Path, Stats, fixed_ends, integrate
from dissensus.solve._solvers import RK4, Adjoint, Autograd, Discrete, Dopri5, Euler, Gradient, Solver, Torchdiffeq
from dissensus.solve._step import Workspace, semilinear_form, step_vjp, take_step
from dissensus.solve._tableau import Tableau
from dissensus.solve._tape import AcceptedStep, Tape
from dissensus.solve._torchdiffeq import counted
from dissensus.solve._torchdiffeq import integrate as integrate_by_torchdiffeq


@dataclass(frozen=True)
class Solution:
    """The result of an integration.

    Attributes:
        state: x(t).
        times: 0 and the end of every accepted step.
        stats: numbers of evaluations and steps; the backward pass adds its own when it runs.
        saved: the states at ``save_at``, ``[len(save_at), *x0.shape]``; empty if ``save_at`` is.
        mesh: for :class:`Dopri5`, the ends of the fewest steps that, in hindsight, would have met the tolerance with
            about equal errors. Pass it as ``mesh`` when solving a similar problem. Empty for other solvers.
    """

    state: Tensor
    times: tuple[float, ...]
    stats: Stats
    saved: Tensor = dataclass_field(repr=False)
    mesh: tuple[float, ...] = ()


@torch.compiler.disable
def solve(
    field: Field | Callable[[float, Tensor], Tensor],
    x0: Tensor,
    t: float,
    solver: Solver | None = None,
    gradient: Gradient | None = None,
    *,
    save_at: Sequence[float] = (),
    mesh: Sequence[float] = (),
    callback: Callback | None = None,
) -> Solution:
    """Solve ``dx/dt = f(t, x)``, ``x(0) = x0``, up to time ``t``.

    Args:
        field: a :class:`Field`, or any differentiable function ``f(t, x)``. If it is a module, its parameters get
            gradients.
        x0: the initial state, of any shape.
        t: the final time, positive.
        solver: :class:`Euler`, :class:`RK4`, :class:`Dopri5` (the default), or a method of torchdiffeq from
            :func:`solver_named`.
        gradient: :class:`Discrete` (the default), :class:`Autograd` or :class:`Adjoint`. For methods of torchdiffeq,
            :class:`Discrete` means the same as :class:`Autograd`.
        save_at: further times in [0, t] at which to return the state. A step ends at each of them, and the states are
            differentiable.
        mesh: times at which :class:`Dopri5` should end its steps as long as their errors allow it, usually the ``mesh``
            of the solution of a similar problem. Without a mesh it typically takes more steps.
        callback: called with (time, state) after every accepted step.

    Returns:
        A :class:`Solution`.
    """
    solver, gradient = Dopri5() if solver is None else solver, Discrete() if gradient is None else gradient
    if not isinstance(solver, Solver):
        raise InputError(f"solver is {solver!r}: give a solver object, such as Euler(0.5) or solver_named('midpoint')")
    if not isinstance(gradient, Gradient):
        raise InputError(f"gradient is {gradient!r}: give Discrete(), Autograd() or Adjoint()")
    if not (math.isfinite(t) and t > 0):
        raise InputError(f"the time is {t}: it must be positive and finite")
    if not all(math.isfinite(end) and end > 0 for end in mesh):
        raise InputError(f"mesh is {list(mesh)}: all times must be positive and finite")
    if not isinstance(x0, Tensor) or not x0.is_floating_point():
        raise InputError("x0 must be a tensor of floating-point numbers: convert it with x0.float()")
    if not isinstance(field, Field):
        module_parameters = field.parameters() if isinstance(field, torch.nn.Module) else ()
        field = AutogradField(field, tuple(module_parameters))
    if isinstance(solver, Euler) and solver.step_size > field.euler_limit * (1 + 1e-9):
        warnings.warn(
            f"Euler's step of {solver.step_size:g} is larger than {field.euler_limit:g}, the decay time of the field's "
            f"linear part, so steps overshoot and flip signs: use step_size <= {field.euler_limit:g}, or the method "
            "dopri5",
            StepSizeWarning,
            stacklevel=3,  # skips the wrapper that disables compilation
        )
    if exporting():
        return _traced(field, x0, t, solver)
    times = torch.as_tensor(save_at, dtype=torch.float64, device="cpu").reshape(-1)
    stops, where = torch.unique(torch.cat([times, times.new_tensor([t])]), return_inverse=True)
    if not bool(((stops >= 0) & (stops <= t)).all()):
        raise InputError(f"save_at is {list(map(float, times))}: give times in [0, {t:g}]")
    problem = _Problem(field, solver, tuple(stops.tolist()), tuple(mesh))
    path = Path(Stats(), callback=callback)
    x0 = x0.contiguous()
    states = _states(problem, path, x0, gradient)
    index = where[:-1].tolist()
    saved = torch.stack([states[i] for i in index]) if index else x0.new_empty((0, *x0.shape))
    better = equal_mesh(path.times, path.errors, Dopri5.tableau.order) if path.errors else ()
    return Solution(states[-1], tuple(path.times), path.stats, saved, better)


def _traced(field: Field, x0: Tensor, t: float, solver: Solver) -> Solution:
    """The solution by steps that ``torch.export`` can trace: their number is known in advance. Without gradients."""
    if not isinstance(solver, Euler | RK4):
        raise InputError(
            f"torch.export cannot trace {solver}, because its steps depend on the state: use the method 'euler' or "
            "'rk4' (load_state_dict moves the parameters of a trained model to a model with another solver)"
        )
    tableau, x, start = solver.tableau, x0.detach(), 0.0
    ends = fixed_ends(start, t, solver.step_size, solver.max_steps)
    for end in ends:
        x, start = _plain_step(field, tableau, start, end - start, x), end
    return Solution(x, (0.0, *ends), Stats(len(ends) * tableau.stages, len(ends)), x.new_empty((0, *x.shape)))


def _plain_step(value: Callable[[float, Tensor], Tensor], tableau: Tableau, t: float, h: float, x: Tensor) -> Tensor:
    """A step of size h from the state x at time t, by operations that autograd and ``torch.export`` can trace."""
    k: list[Tensor] = []
    for a, c in zip(tableau.a, tableau.c, strict=True):
        inputs = x + h * sum((w * v for w, v in zip(a, k, strict=True)), torch.zeros_like(x)) if a else x
        k.append(value(t + c * h, inputs))
    return x + h * sum((w * v for w, v in zip(tableau.b, k, strict=True)), torch.zeros_like(x))


@dataclass(frozen=True)
class _Problem:
    """An integration problem without its initial state."""

    field: Field
    solver: Any
    stops: tuple[float, ...]
    mesh: tuple[float, ...]

    def run(self, path: Path, x0: Tensor) -> list[Tensor]:
        states = integrate(self.field, self.solver, x0, self.stops, path, mesh=self.mesh)
        # The caller may change the states in place, so never return the input itself.
        return [x0.clone() if state is x0 else state for state in states]

    def tape(self, x0: Tensor, memory: int) -> Tape:
        size = x0.numel() * x0.element_size()
        stages = self.solver.tableau.stages
        return Tape(memory, size, semilinear_form(self.field, x0).pullback_states * stages * size)


def _states(problem: _Problem, path: Path, x0: Tensor, gradient: Gradient) -> Sequence[Tensor]:
    """The states at the problem's stops, differentiable if anything requires a gradient."""
    field = problem.field
    needed = torch.is_grad_enabled() and (x0.requires_grad or any(p.requires_grad for p in field.parameters))
    backward = gradient.solver if needed and isinstance(gradient, Adjoint) else None
    if isinstance(problem.solver, Torchdiffeq) or isinstance(backward, Torchdiffeq):
        states, path.times = integrate_by_torchdiffeq(
            field, x0, problem.stops, problem.solver, path.stats, path.callback, gradient if needed else None
        )
        return states
    if not needed:
        with torch.no_grad():
            return problem.run(path, x0)
    if isinstance(gradient, Autograd):
        return _through_autograd(problem, path, x0)
    if isinstance(gradient, Adjoint):
        return _Continuous.apply(problem, path, backward or problem.solver, x0, *field.parameters)
    return _Discrete.apply(problem, path, gradient.memory, x0, *field.parameters)


class _Discrete(torch.autograd.Function):
    """The exact derivative of the steps taken; as usual, step sizes count as constants."""

    @staticmethod
    def forward(ctx: Any, problem: _Problem, path: Path, memory: int, x0: Tensor, *parameters: Tensor) -> Any:
        path.tape = ctx.tape = problem.tape(x0, memory)
        ctx.problem, ctx.path = problem, path
        ctx.save_for_backward(x0, *parameters)  # only so that autograd detects in-place changes
        *states, last = problem.run(path, x0)
        # Copies, because a state that is both saved and returned would keep itself alive.
        return *(state.clone() for state in states), last

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        problem, path = ctx.problem, ctx.path
        x0, *parameters = ctx.saved_tensors
        grads = [torch.zeros_like(p, memory_format=torch.contiguous_format) for p in parameters]
        form, tableau, stats = semilinear_form(problem.field, x0), problem.solver.tableau, path.stats

        def advance(steps: list[AcceptedStep], x: Tensor) -> Tensor:
            """The state after these steps from x, bit for bit the same as when they were first taken."""
            workspace = Workspace.like(x, tableau)
            for step in steps:
                stats.backward_evaluations += tableau.stages
                x = take_step(form, tableau, step.t, step.h, x, workspace=workspace).new
            return x

        pending = dict(zip(problem.stops, cotangents, strict=True))
        total: Tensor | None = None
        steps = ctx.tape.backwards(advance)
        for end, (step, x, pullbacks) in zip(reversed(path.times[1:]), steps, strict=True):
            if end in pending:
                total = _sum(total, pending.pop(end))
            assert total is not None  # the last step ends at the last stop
            if not pullbacks:
                stats.backward_evaluations += tableau.stages
                pullbacks = take_step(form, tableau, step.t, step.h, x, keep=True).pullbacks
            stats.backward_evaluations += tableau.stages
            total = step_vjp(form, tableau, step.h, pullbacks, total, grads)
        for cotangent in pending.values():  # a stop at time zero
            total = _sum(total, cotangent)
        return None, None, None, total, *grads


def _sum(one: Tensor | None, other: Tensor) -> Tensor:
    return other if one is None else one + other


class _Continuous(torch.autograd.Function):
    """The adjoint equation ``da/dt = -(df/dx)' a``, integrated backward with the state and the parameter gradients."""

    @staticmethod
    def forward(ctx: Any, problem: _Problem, path: Path, solver: Any, x0: Tensor, *parameters: Tensor) -> Any:
        ctx.problem, ctx.path, ctx.solver = problem, path, solver
        states = problem.run(path, x0)
        ctx.save_for_backward(*states)
        return tuple(states)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        field, stops = ctx.problem.field, ctx.problem.stops
        adjoint = torch.zeros_like(ctx.saved_tensors[-1])
        grads = [torch.zeros_like(p) for p in field.parameters]
        starts = [0.0, *stops]
        for i in reversed(range(len(stops))):
            adjoint = adjoint + cotangents[i]
            duration = stops[i] - starts[i]
            if duration > 0:
                backward, stats = _Backward(field, stops[i], adjoint.shape), Stats()
                packed = backward.pack(ctx.saved_tensors[i], adjoint, grads)
                norm = backward.norm(ctx.solver) if isinstance(ctx.solver, Dopri5) else None
                end = integrate(backward, ctx.solver, packed, [duration], Path(stats), norm=norm)[-1]
                _, adjoint, grads = backward.unpack(end)
                ctx.path.stats.backward_evaluations += 2 * stats.evaluations
        return None, None, None, adjoint, *grads


class _Backward(Field):
    """State, adjoint and parameter gradients as one vector, as a function of the time before ``end``."""

    def __init__(self, field: Field, end: float, shape: torch.Size) -> None:
        self.field, self.end, self.shape, self.size = field, end, shape, shape.numel()

    def pack(self, x: Tensor, adjoint: Tensor, grads: Sequence[Tensor]) -> Tensor:
        return torch.cat([part.reshape(-1) for part in (x, adjoint, *grads)])

    def unpack(self, packed: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        shapes = [self.shape, self.shape, *(p.shape for p in self.field.parameters)]
        parts = packed.split([shape.numel() for shape in shapes])
        x, adjoint, *grads = (part.view(shape) for part, shape in zip(parts, shapes, strict=True))
        return x, adjoint, grads

    def norm(self, solver: Dopri5) -> Callable[[Tensor, Tensor, Tensor], float]:
        """The largest error norm of the three blocks: the parameters must not average out an error of the state."""
        size = self.size
        blocks = (slice(size), slice(size, 2 * size), slice(2 * size, None))

        def largest(error: Tensor, x: Tensor, new: Tensor) -> float:
            return max(scaled_error_norm(error[b], x[b], new[b], solver.atol, solver.rtol) for b in blocks)

        return largest

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        out = torch.empty_like(x) if out is None else out
        state, adjoint, _ = self.unpack(x)
        d_state, d_adjoint, d_grads = self.unpack(out)
        for d_grad in d_grads:
            d_grad.zero_()
        value, pullback = self.field.vjp(self.end - t, state)
        torch.neg(value, out=d_state)
        pullback(adjoint, d_grads, d_adjoint)
        return out

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        raise TypeError("the adjoint equation cannot be differentiated again")


def _through_autograd(problem: _Problem, path: Path, x0: Tensor) -> list[Tensor]:
    """The states at the stops: find the steps without gradients, then repeat them with differentiable operations."""
    path.tape = problem.tape(x0, 0)
    with torch.no_grad():
        problem.run(path, x0)
    tableau, states, x = problem.solver.tableau, {0.0: x0}, x0

    def value(t: float, x: Tensor) -> Tensor:
        return counted(problem.field, t, x, path.stats)

    for step, end in zip(path.tape.steps, path.times[1:], strict=True):
        x = _plain_step(value, tableau, step.t, step.h, x)
        states[end] = x
    return [states[stop] for stop in problem.stops]
