"""Fixed points and equilibria: Picard or Anderson iteration, with gradients by implicit differentiation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Literal

import torch
from torch import Tensor

from dissensus.errors import InputError, SolverError, one_of
from dissensus.solve._field import Field
from dissensus.solve._integrate import Stats

Iteration = Literal["anderson", "picard"]
ITERATIONS = ("anderson", "picard")

# Anderson iteration restarts if g(x) - x grows by more than this factor.
_GROWTH = 2.0


@dataclass(frozen=True)
class FixedPoint:
    """An approximate solution of ``g(x) = x``.

    Attributes:
        state: x.
        residual: ``max |g(x) - x| / max(1, max |x|)`` at this state.
        iterations: number of evaluations of g.
        converged: whether the residual is within the tolerance.
    """

    state: Tensor
    residual: float
    iterations: int
    converged: bool


@torch.no_grad()
def fixed_point(
    step: Callable[[Tensor], Tensor],
    x0: Tensor,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    method: Iteration = "anderson",
    memory: int = 6,
    strict: bool = True,
) -> FixedPoint:
    """Find a fixed point of ``step``. Not differentiable; for gradients use :func:`equilibrium`.

    Args:
        step: g, which maps a state to a new tensor of the same shape.
        x0: start of the iteration, of any shape.
        tol: tolerance for the residual, see :class:`FixedPoint`.
        max_iter: maximum number of evaluations of g.
        method: ``picard``, x <- g(x); or ``anderson``, which takes the combination of the last ``memory`` steps with
            the smallest residual in a linear model, and restarts when the residual grows.
        memory: number of previous steps that Anderson iteration keeps.
        strict: raise :class:`~dissensus.errors.SolverError` if the tolerance is not reached; otherwise return a result
            with ``converged=False``.
    """
    one_of("method", method, ITERATIONS)
    if not (tol > 0 and max_iter >= 1 and memory >= 1):
        raise InputError(f"tol is {tol}, max_iter is {max_iter} and memory is {memory}: all must be positive")
    mix = _Anderson(memory if method == "anderson" else 0)
    x, residual = x0, math.inf
    for iteration in range(1, max_iter + 1):
        g = step(x)
        f = g - x
        size = _max_norm(f)
        residual = size / max(1.0, _max_norm(x))
        if residual <= tol:
            return FixedPoint(x.clone() if x is x0 else x, residual, iteration, True)
        if not math.isfinite(residual):
            break
        x = mix.next(g, f, size)
    if strict:
        raise SolverError(
            f"no fixed point after {iteration} iterations: the residual is {residual:.1e}, not {tol:g}. Raise max_iter "
            "or tol, use float64, or make the map more contracting (reduce step_size; in opinion dynamics, keep the "
            "attention at or below the critical one)"
        )
    return FixedPoint(x, residual, iteration, False)


def _max_norm(x: Tensor) -> float:
    return float(torch.linalg.vector_norm(x, math.inf)) if x.numel() else 0.0


class _Anderson:
    """``x_{k+1} = g_k - sum_i c_i (g_{i+1} - g_i)`` with c minimising ``|f_k - sum_i c_i (f_{i+1} - f_i)|``, f = g - x.

    With ``memory=0`` this is Picard iteration.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._reset()

    def _reset(self) -> None:
        self.count, self.best = 0, math.inf
        self.best_g: Tensor | None = None
        self.last: tuple[Tensor, Tensor] | None = None
        self.dg = self.df = torch.empty(0)  # the differences, [memory, numel] once there are two states

    def next(self, g: Tensor, f: Tensor, size: float) -> Tensor:
        """The next state, from g = g(x) and f = g - x at the last state; ``size`` is the largest entry of f."""
        if self.memory == 0:
            return g
        if self.best_g is not None and size > _GROWTH * self.best:
            # Restart with a plain step from the best state so far, which a non-expansive map cannot make worse.
            restart = self.best_g
            self._reset()
            return restart
        if size <= self.best:
            self.best, self.best_g = size, g
        if self.last is None:
            self.last = g, f
            return g
        if self.count == 0:
            self.dg, self.df = (g.new_empty(self.memory, g.numel()) for _ in range(2))
        slot = self.count % self.memory
        torch.sub(g.reshape(-1), self.last[0].reshape(-1), out=self.dg[slot])
        torch.sub(f.reshape(-1), self.last[1].reshape(-1), out=self.df[slot])
        self.last = g, f
        self.count += 1
        kept = min(self.count, self.memory)
        return g - (self._coefficients(self.df[:kept], f.reshape(-1)) @ self.dg[:kept]).view_as(g)

    def _coefficients(self, df: Tensor, f: Tensor) -> Tensor:
        # Normal equations in double precision, for vectors scaled to unit length. The ridge is about the rounding error
        # of their inner products.
        gram, right = (df @ df.T).double(), (df @ f).double()
        scale = gram.diagonal().sqrt().clamp_min(torch.finfo(torch.float64).tiny)
        gram = gram / scale.outer(scale)
        gram.diagonal().add_(10.0 * torch.finfo(df.dtype).eps)
        return (torch.linalg.solve(gram, right / scale) / scale).to(df.dtype)


@dataclass(frozen=True)
class Equilibrium:
    """An approximate solution of ``f(x) = 0``, differentiable in the field's parameters.

    Attributes:
        state: x.
        residual: ``max |h f(x)| / max(1, max |x|)`` at this state, where h is the step size.
        iterations: number of evaluations of the field.
        converged: whether the residual is within the tolerance.
        stats: numbers of evaluations; the backward pass adds its pullbacks when it runs.
    """

    state: Tensor
    residual: float
    iterations: int
    converged: bool
    stats: Stats = dataclass_field(repr=False)


@torch.compiler.disable
def equilibrium(
    field: Field,
    x0: Tensor,
    *,
    step_size: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    method: Iteration = "anderson",
    memory: int = 6,
    strict: bool = True,
) -> Equilibrium:
    """Find an equilibrium of an autonomous field, as a fixed point of ``x + h f(x)``.

    For opinion dynamics with damping d and h = 1/d this is Picard iteration for ``x = (S(..) + B)/d``.

    Gradients come from the implicit function theorem, ``dx/dp = -(df/dx)^{-1} df/dp``: the backward pass solves the
    adjoint equation ``a = v + (I + h J')a`` by the same iteration to the same tolerance, relative to v. Memory does not
    depend on the number of iterations. The start x0 gets no gradient, because the equilibrium does not depend on it.

    Args:
        field: f, which is evaluated at time 0.
        x0: start of the iteration.
        step_size: h; by default the field's ``euler_limit``, which is 1/d for opinion dynamics.
        tol: tolerance for ``max |h f(x)| / max(1, max |x|)``. This and the next four arguments also apply to the
            adjoint equation.
        max_iter: maximum number of evaluations of the field.
        method: ``picard``, x <- x + h f(x); or ``anderson``, which combines the last ``memory`` steps.
        memory: number of previous steps that Anderson iteration keeps.
        strict: raise :class:`~dissensus.errors.SolverError` if the iteration does not converge; otherwise return a
            result with ``converged=False``.
    """
    if step_size is None:
        step_size = field.euler_limit if math.isfinite(field.euler_limit) else 1.0
    if not (math.isfinite(step_size) and step_size > 0):
        raise InputError(f"step_size is {step_size}: it must be positive and finite")
    options = {"tol": tol, "max_iter": max_iter, "method": method, "memory": memory, "strict": strict}
    problem = _Problem(field, step_size, options)
    state = _Implicit.apply(problem, x0.detach().contiguous(), *field.parameters)
    found = problem.found
    assert found is not None
    return Equilibrium(state, found.residual, found.iterations, found.converged, problem.stats)


@dataclass
class _Problem:
    """The search for an equilibrium x by steps of size h, and its derivative."""

    field: Field
    h: float
    options: dict[str, Any]
    stats: Stats = dataclass_field(default_factory=Stats)
    found: FixedPoint | None = None

    def forward(self, x0: Tensor) -> Tensor:
        found = fixed_point(lambda x: torch.add(x, self.field(0.0, x), alpha=self.h), x0, **self.options)
        self.found, self.stats.evaluations = found, found.iterations
        return found.state

    def backward(self, x: Tensor, v: Tensor) -> list[Tensor]:
        """The gradients of the parameters from the cotangent v of the equilibrium x."""
        size = _max_norm(v)
        totals = [torch.zeros_like(p) for p in self.field.parameters]
        if size == 0.0:
            return totals
        pullback = self.field.vjp(0.0, x)[1]
        v = v / size  # largest entry 1, so that the tolerance is relative
        adjoint = fixed_point(lambda a: pullback(a, (), None).mul_(self.h).add_(a).add_(v), v, **self.options)
        pullback(adjoint.state * (self.h * size), totals, None)
        self.stats.backward_evaluations += adjoint.iterations + 1
        return totals


class _Implicit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, problem: _Problem, x0: Tensor, *parameters: Tensor) -> Tensor:
        ctx.problem = problem
        state = problem.forward(x0)
        ctx.save_for_backward(state)
        return state

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (state,) = ctx.saved_tensors
        return None, None, *ctx.problem.backward(state, grads[0].contiguous())
