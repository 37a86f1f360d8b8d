"""Solvers and gradient methods for :func:`dissensus.solve.solve`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dissensus.errors import InputError, one_of
from dissensus.solve import _tableau
from dissensus.solve._tableau import Tableau

FIXED = ("midpoint", "heun2", "heun3", "explicit_adams", "implicit_adams")
ADAPTIVE = ("bosh3", "fehlberg2", "adaptive_heun", "dopri8")
METHODS = ("euler", "rk4", "dopri5", *FIXED, *ADAPTIVE)


@dataclass(frozen=True)
class Euler:
    """Euler's method.

    Args:
        step_size: size of every step; the last one is shortened to end at the final time.
        max_steps: maximum number of steps; needing more is an error.
    """

    step_size: float = 1.0
    max_steps: int = 10_000
    tableau: ClassVar[Tableau] = _tableau.EULER
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.max_steps, step_size=self.step_size)


@dataclass(frozen=True)
class RK4:
    """The fourth-order Runge-Kutta method (Kutta's 3/8 rule). The arguments are those of :class:`Euler`."""

    step_size: float = 1.0
    max_steps: int = 10_000
    tableau: ClassVar[Tableau] = _tableau.THREE_EIGHTHS
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.max_steps, step_size=self.step_size)


@dataclass(frozen=True)
class Dopri5:
    """The Dormand-Prince method of order 5 with adaptive steps.

    Args:
        rtol: relative tolerance for the error of a step.
        atol: absolute tolerance for the error of a step.
        max_steps: maximum number of steps; needing more is an error.
    """

    rtol: float = 1e-3
    atol: float = 1e-3
    max_steps: int = 10_000
    tableau: ClassVar[Tableau] = _tableau.DOPRI5
    fixed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self.max_steps, tolerances=(self.rtol, self.atol))


@dataclass(frozen=True)
class Torchdiffeq:
    """A method of torchdiffeq; see :func:`solver_named`."""

    method: str
    step_size: float = 1.0
    rtol: float = 1e-3
    atol: float = 1e-3
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        _check(self.max_steps, step_size=self.step_size, tolerances=(self.rtol, self.atol))

    @property
    def fixed(self) -> bool:
        """Whether it takes steps of ``step_size`` instead of adaptive ones."""
        return self.method not in (*ADAPTIVE, "dopri5")


Solver = Euler | RK4 | Dopri5 | Torchdiffeq


@dataclass(frozen=True)
class Discrete:
    """The exact derivative of the steps taken, without an autograd graph.

    Args:
        memory: bytes for checkpoints, which are states at the start of steps and, if they fit, the intermediate values
            that the derivatives of the stages need. The backward pass recomputes everything else. Up to 8 states, and
            8 more during the backward pass, are stored even if they need more memory. The gradient is the same to the
            last bit for every value of ``memory``.
    """

    memory: int = 2**29


@dataclass(frozen=True)
class Autograd:
    """Plain backpropagation through the steps taken: the same gradient as :class:`Discrete`, with more memory."""


@dataclass(frozen=True)
class Adjoint:
    """The continuous adjoint, integrated backward in time.

    It stores only the final state (and those at ``save_at``), but the gradient has a discretisation error.

    Args:
        solver: solver of the backward pass; by default that of the forward pass.
    """

    solver: Solver | None = None


Gradient = Discrete | Autograd | Adjoint


def solver_named(
    method: str = "dopri5", step_size: float = 1.0, rtol: float = 1e-3, atol: float = 1e-3, max_steps: int = 10_000
) -> Solver:
    """Create a solver by name. Options that the solver does not use are only checked.

    Args:
        method: ``euler``, ``rk4`` or ``dopri5``; or a method of torchdiffeq: ``midpoint``, ``heun2``, ``heun3``,
            ``explicit_adams`` and ``implicit_adams`` take steps of ``step_size``; ``bosh3``, ``fehlberg2``,
            ``adaptive_heun`` and ``dopri8`` are adaptive.
        step_size, rtol, atol, max_steps: see :class:`Euler` and :class:`Dopri5`.
    """
    one_of("method", method, METHODS)
    _check(max_steps, step_size=step_size, tolerances=(rtol, atol))
    if method == "euler":
        return Euler(step_size, max_steps)
    if method == "rk4":
        return RK4(step_size, max_steps)
    if method == "dopri5":
        return Dopri5(rtol, atol, max_steps)
    return Torchdiffeq(method, step_size, rtol, atol, max_steps)


def _check(max_steps: int, step_size: float = 1.0, tolerances: tuple[float, float] = (1.0, 1.0)) -> None:
    if not (math.isfinite(step_size) and step_size > 0):
        raise InputError(f"step_size is {step_size}: it must be positive and finite")
    rtol, atol = tolerances
    if not (rtol >= 0 and atol >= 0 and rtol + atol > 0):
        raise InputError(f"rtol is {rtol} and atol is {atol}: neither may be negative, and one must be positive")
    if max_steps < 1:
        raise InputError(f"max_steps is {max_steps}: it must be at least 1")
