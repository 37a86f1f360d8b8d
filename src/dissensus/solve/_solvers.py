"""The parts that :func:`dissensus.solve.solve` is put together from: solvers, and ways to get a gradient."""

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
        step_size: of every step; the last one before a given time is shortened to end there.
        max_steps: more raise an error.
    """

    step_size: float = 1.0
    max_steps: int = 10_000
    tableau: ClassVar[Tableau] = _tableau.EULER
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.max_steps, step_size=self.step_size)


@dataclass(frozen=True)
class RK4:
    """The fourth-order Runge-Kutta method (Kutta's 3/8 rule). Arguments as for :class:`Euler`."""

    step_size: float = 1.0
    max_steps: int = 10_000
    tableau: ClassVar[Tableau] = _tableau.RK4
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.max_steps, step_size=self.step_size)


@dataclass(frozen=True)
class Dopri5:
    """Dormand and Prince's method of order 5 with step-size control.

    Args:
        rtol: relative tolerance of a step's error.
        atol: absolute tolerance of a step's error.
        max_steps: more raise an error.
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
    """A method of torchdiffeq, see :func:`solver_named`."""

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
        """Whether it takes steps of ``step_size``, rather than of its own choice."""
        return self.method not in (*ADAPTIVE, "dopri5")


Solver = Euler | RK4 | Dopri5 | Torchdiffeq


@dataclass(frozen=True)
class Discrete:
    """The exact derivative of the steps taken, without an autograd graph.

    Args:
        memory: bytes for the states at the start of the steps and, while there is room, for what the derivatives of
            their stages need. The rest is computed again in the backward pass, from at least 8 states and with 8
            further ones at a time, however many steps there are. The gradient is the same, bit for bit.
    """

    memory: int = 2**29


@dataclass(frozen=True)
class Autograd:
    """Plain backpropagation through the steps taken: the same gradient as :class:`Discrete`, with more memory."""


@dataclass(frozen=True)
class Adjoint:
    """The continuous adjoint, integrated back in time: memory of one state, and an error of its own.

    Args:
        solver: of the backward pass; None takes the solver of the forward pass.
    """

    solver: Solver | None = None


Gradient = Discrete | Autograd | Adjoint


def solver_named(
    method: str = "dopri5", step_size: float = 1.0, rtol: float = 1e-3, atol: float = 1e-3, max_steps: int = 10_000
) -> Solver:
    """The solver with this name, from the options of all of them, each of which must be sound.

    Args:
        method: ``euler``, ``rk4`` or ``dopri5``; or one of torchdiffeq's: ``midpoint``, ``heun2``, ``heun3``,
            ``explicit_adams`` or ``implicit_adams`` with steps of ``step_size``, and ``bosh3``, ``fehlberg2``,
            ``adaptive_heun`` or ``dopri8`` with tolerances.
        step_size, rtol, atol, max_steps: as for :class:`Euler` and :class:`Dopri5`.
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
        raise InputError(f"rtol = {rtol} and atol = {atol}: neither may be negative, nor both zero")
    if max_steps < 1:
        raise InputError(f"max_steps is {max_steps}: at least 1")
