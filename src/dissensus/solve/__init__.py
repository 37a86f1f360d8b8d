"""Integration of vector fields: our own Euler, RK4, Dormand-Prince, torchdiffeq's others; three kinds of gradient."""

from dissensus.solve._field import AutogradField, Core, Field, Pullback, Split, evaluate
from dissensus.solve._fixed_point import ITERATIONS, Equilibrium, FixedPoint, equilibrium, fixed_point
from dissensus.solve._integrate import Stats
from dissensus.solve._solve import GRADIENTS, METHODS, Adjoint, Solution, StepSizeWarning, check_options, solve
from dissensus.solve._sums import Sum
from dissensus.solve._torchdiffeq import has_fixed_steps

__all__ = [
    "GRADIENTS",
    "ITERATIONS",
    "METHODS",
    "Adjoint",
    "AutogradField",
    "Core",
    "Equilibrium",
    "Field",
    "FixedPoint",
    "Pullback",
    "Solution",
    "Split",
    "Stats",
    "StepSizeWarning",
    "Sum",
    "check_options",
    "equilibrium",
    "evaluate",
    "fixed_point",
    "has_fixed_steps",
    "solve",
]
