"""Integration of vector fields. A field, a solver and a gradient method are combined freely by :func:`solve`."""

from dissensus.solve._field import AutogradField, Field, Pullback, Semilinear
from dissensus.solve._fixed_point import Equilibrium, equilibrium
from dissensus.solve._solve import Solution, solve
from dissensus.solve._solvers import RK4, Adjoint, Autograd, Discrete, Dopri5, Euler, solver_named

__all__ = [
    "RK4",
    "Adjoint",
    "Autograd",
    "AutogradField",
    "Discrete",
    "Dopri5",
    "Equilibrium",
    "Euler",
    "Field",
    "Pullback",
    "Semilinear",
    "Solution",
    "equilibrium",
    "solve",
    "solver_named",
]
