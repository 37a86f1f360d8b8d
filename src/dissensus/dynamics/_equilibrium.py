"""Where opinions settle, and whether they stay there."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import scipy.integrate
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor

from dissensus.dynamics._convert import AnyGraph
from dissensus.dynamics._flow import Array, Flow
from dissensus.dynamics._system import Parameters, System, as_state, system
from dissensus.errors import InputError, SolverError
from dissensus.solve import Field

# Newton's method takes over from the flow where no opinion changes faster than this, relative to its size.
_SLOW = 1e-3
# An eigenvalue up to this, relative to the damping, counts as zero.
NEUTRAL = 1e-6
# Jacobians up to this size are solved as dense matrices.
DENSE_UP_TO = 1000
# Factors of larger random graphs fill up.
ELIMINATED_UP_TO = 5000


@dataclass(frozen=True)
class OpinionEquilibrium:
    """A state at which opinions rest.

    Attributes:
        state: [n, o], differentiable in the parameters that are torch tensors.
        residual: the largest entry of the right-hand side there.
        converged: the residual is at or below the tolerance.
        eigenvalue: of the Jacobian, the one of largest real part; its stability.
    """

    state: Tensor
    residual: float
    converged: bool
    eigenvalue: complex

    @property
    def stable(self) -> bool:
        """Every small deviation dies out, or does not grow to first order."""
        return self.eigenvalue.real <= NEUTRAL


def equilibrium(
    graph: System | AnyGraph,
    x0: Any = None,
    *,
    tol: float = 1e-9,
    max_time: float = 10_000.0,
    strict: bool = True,
    **parameters: Unpack[Parameters],
) -> OpinionEquilibrium:
    """The opinions at which nonlinear opinion dynamics comes to rest from a start.

    The flow is followed by an adaptive integrator until opinions change slowly, then Newton's method finishes, if it
    ends nearby and at a stable state. Differentiable, by the implicit function theorem, in those parameters (and the
    communication matrix, if dense) that are torch tensors.

    Args:
        graph: a :class:`System`, or a graph with parameters.
        x0: where the flow starts, [n, o] or [n]; None is the neutral opinion.
        tol: largest entry of the right-hand side.
        max_time: how long the flow is followed, in units of 1/damping.
        strict: raise :class:`~dissensus.errors.SolverError` where opinions do not settle; otherwise the result says
            ``converged=False``.
        **parameters: see :class:`System`.

    An unstable equilibrium is returned, with a warning, only where the start is one or the flow tends to it exactly.
    """
    if not (tol > 0 and max_time > 0):
        raise InputError(f"tol = {tol}, max_time = {max_time}: both must be positive")
    made = system(graph, **parameters)
    flow = made.flow()
    start = np.zeros(made.shape) if x0 is None else as_state(x0, made.shape).detach().numpy()
    found = settle(flow, start.reshape(flow.damping.shape), 1.0, tol=tol, max_time=max_time)
    if strict and not found.converged:
        raise SolverError(
            f"the opinions have not settled at time {max_time:g}/damping, where one changes at the rate "
            f"{found.residual:.1e}: they oscillate (see simulate), or settle slowly (raise max_time or tol)"
        )
    if found.converged and not found.stable:
        warnings.warn("this equilibrium is unstable: move x0 a little to leave it", RuntimeWarning, stacklevel=2)
    field = made.field()
    state = _Implicit.apply(field, flow, found.state, *field.parameters)
    return OpinionEquilibrium(state.reshape(made.shape), found.residual, found.converged, found.eigenvalue)


def settle(
    flow: Flow, x: Array, u: float, s: float = 1.0, *, tol: float = 1e-9, max_time: float = 10_000.0
) -> OpinionEquilibrium:
    """Where ``x' = f(x; u, s)`` tends to from x, [n, o]."""
    shape, rate = x.shape, float(flow.damping.max())

    def right(_: float, y: Array) -> Array:
        return flow.rates(y.reshape(shape), u, s).ravel()

    passed, span = 0.0, 10.0 / rate
    while True:
        value = flow.evaluate(x, u, s)
        residual, scale = float(np.abs(value.f).max()), max(1.0, float(np.abs(x).max()))
        if not np.isfinite(residual):
            return OpinionEquilibrium(torch.from_numpy(x), residual, False, complex(np.nan))
        if residual <= _SLOW * rate * scale:
            y = newton(flow, x, u, s, tol=tol)
            if y is not None and np.abs(y - x).max() <= 0.1 * scale:
                eigenvalue = complex(flow.leading(flow.evaluate(y, u, s))[0][0]) / rate
                # A slow state near a saddle is left again; only one that rests there exactly stays.
                if eigenvalue.real <= NEUTRAL or residual <= 1e-3 * tol:
                    residual = float(np.abs(flow.evaluate(y, u, s).f).max())
                    return OpinionEquilibrium(torch.from_numpy(y), residual, True, eigenvalue * rate)
            elif residual <= tol:
                return OpinionEquilibrium(torch.from_numpy(x), residual, True, complex(flow.leading(value)[0][0]))
        if passed >= max_time / rate:
            return OpinionEquilibrium(
                torch.from_numpy(x), residual, residual <= tol, complex(flow.leading(value)[0][0])
            )
        # DOP853: long, exact steps of a smooth flow.
        step = scipy.integrate.solve_ivp(right, (0.0, span), x.ravel(), "DOP853", rtol=1e-6, atol=1e-9)
        x, passed, span = step.y[:, -1].reshape(shape), passed + span, 2.0 * span


def newton(flow: Flow, x: Array, u: float, s: float = 1.0, *, tol: float = 1e-11) -> Array | None:
    """The equilibrium that Newton's method reaches from x; None where it fails."""
    for _ in range(30):
        value = flow.evaluate(x, u, s)
        if np.abs(value.f).max() <= tol:
            return x
        try:
            x = x - solve_jacobian(flow, value, value.f.ravel()).reshape(x.shape)
        except (np.linalg.LinAlgError, RuntimeError):  # singular, dense or sparse
            return None
        if not np.isfinite(x).all():
            return None
    return None


def solve_jacobian(flow: Flow, value: Any, right: Array, *, transposed: bool = False) -> Array:
    """``J y = right`` (or ``J' y = right``): dense for small systems, for large ones by GMRES or sparse elimination."""
    if flow.size <= DENSE_UP_TO:
        matrix = flow.jacobian(value)
        return np.linalg.solve(matrix.T if transposed else matrix, right)
    sparse = flow.sparse_jacobian(value).tocsr()
    sparse = sparse.T.tocsr() if transposed else sparse
    scaling = scipy.sparse.diags_array(1.0 / flow.damping.ravel())
    found, failed = scipy.sparse.linalg.gmres(sparse, right, M=scaling, rtol=1e-12, atol=1e-14, restart=80, maxiter=8)
    if not failed:
        return found
    if flow.size > ELIMINATED_UP_TO:
        raise RuntimeError("GMRES did not converge")
    return scipy.sparse.linalg.splu(sparse.tocsc()).solve(right)


class _Implicit(torch.autograd.Function):
    """The state x with f(x, p) = 0, and ``dx/dp = -J^{-1} df/dp``."""

    @staticmethod
    def forward(ctx: Any, field: Field, flow: Flow, state: Tensor, *parameters: Tensor) -> Tensor:
        ctx.field, ctx.flow = field, flow
        ctx.save_for_backward(state)
        return state.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (state,) = ctx.saved_tensors
        # a' = -g' J^{-1}, then a' df/dp
        value = ctx.flow.evaluate(state.numpy(), 1.0)
        adjoint = -solve_jacobian(ctx.flow, value, grads[0].numpy().ravel(), transposed=True)
        totals = [torch.zeros_like(p) for p in ctx.field.parameters]
        ctx.field.vjp(0.0, state)[1](torch.from_numpy(adjoint).view_as(state), totals, None)
        return None, None, None, *totals


@dataclass(frozen=True)
class Stability:
    """The linearised dynamics at a state.

    Attributes:
        eigenvalues: of the Jacobian, those of largest real part, descending, [count], complex.
        directions: their eigenvectors, [count, n, o], complex.
    """

    eigenvalues: Array
    directions: Array = field(repr=False)

    @property
    def stable(self) -> bool:
        """Every small deviation dies out: all real parts are negative."""
        return bool(self.eigenvalues[0].real < 0)


def stability(
    graph: System | AnyGraph, x: Any = None, *, count: int = 6, **parameters: Unpack[Parameters]
) -> Stability:
    """The leading eigenvalues of the Jacobian at a state.

    A small matrix is written out; of a large one the leading eigenvalues come from Arnoldi's iteration on products.

    Args:
        graph: a :class:`System`, or a graph with parameters.
        x: the state, [n, o] or [n], an equilibrium as a rule; None is the neutral opinion.
        count: number of eigenvalues.
        **parameters: see :class:`System`.
    """
    if count < 1:
        raise InputError(f"count is {count}: ask for at least one eigenvalue")
    made = system(graph, **parameters)
    state = np.zeros(made.shape) if x is None else as_state(x, made.shape).detach().numpy()
    flow = made.flow()
    values, vectors = flow.leading(flow.evaluate(state.reshape(flow.damping.shape), 1.0), count)
    return Stability(values, vectors.T.reshape(len(values), *made.shape))
