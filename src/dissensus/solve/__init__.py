"""Integration of vector fields: our own Euler, RK4 and Dormand-Prince, torchdiffeq's others, and three kinds of gradient."""

from dissensus.solve._field import AutogradField, Field, Pullback, evaluate
from dissensus.solve._integrate import Stats
from dissensus.solve._solve import GRADIENTS, METHODS, Adjoint, Solution, StepSizeWarning, solve

__all__ = [
    "GRADIENTS",
    "METHODS",
    "Adjoint",
    "AutogradField",
    "Field",
    "Pullback",
    "Solution",
    "Stats",
    "StepSizeWarning",
    "evaluate",
    "solve",
]
