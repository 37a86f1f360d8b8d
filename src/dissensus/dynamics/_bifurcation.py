"""Bifurcation diagrams over the attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np
from scipy.sparse.csgraph import connected_components

from dissensus.dynamics._convert import AnyGraph
from dissensus.dynamics._diagram import Bifurcation
from dissensus.dynamics._explore import Explorer
from dissensus.dynamics._flow import Critical, Flow
from dissensus.dynamics._system import Parameters, System, system
from dissensus.errors import InputError


def bifurcation(
    graph: System | AnyGraph,
    *,
    u_max: float | None = None,
    step: float = 0.04,
    max_branches: int | None = None,
    **parameters: Unpack[Parameters],
) -> Bifurcation:
    """The equilibria of nonlinear opinion dynamics over the attention u from 0 to ``u_max``, with their stability.

    Without input the neutral branch loses stability at u* and others leave along the critical direction, in a
    pitchfork; with input it unfolds: a branch connected to u = 0, and on the other side one that begins at a fold.
    Branches are followed by pseudo-arclength continuation with all eigenvalues watched: folds, branch points and Hopf
    points are located by root finding, and at every branch point all branches are followed that leave, kernels of more
    than one dimension (rings, complete graphs) included. The stable equilibria at ``u_max``, which are sought from
    saturated and random states, add branches that are connected to none of these. Under an odd S without input, -x is
    added for every branch x without being computed again.

    A branch that could not be followed to its end is kept as far as it came, with a warning. (softsign has a kink in
    its second derivative at 0: its branches leave in proportion to u - u*, not to its square root.)

    Args:
        graph: a :class:`System`, or a graph with parameters. An ``attention`` given here is relative: agent i pays the
            attention ``u attention_i``.
        u_max: end of the range; None is twice the critical attention.
        step: longest step along a branch, relative to 1/damping for opinions and to u* for attention.
        max_branches: number of branches after which no more are followed from branch points, which are then called
            ``crossing``; None is 64 for up to 50 opinions, and fewer for larger systems, at least 3.
        **parameters: see :class:`System`.

    Raises:
        InputError: S(0) is not 0 or its slope there is not 1, or the critical direction is not unique because agents do
            not all hear one another or options are not coupled.
    """
    parameters = parameters if isinstance(graph, System) else {"attention": 1.0, **parameters}
    made = system(graph, **parameters)
    flow, critical = checked(made)
    u_max = 2.0 * critical.attention if u_max is None else u_max
    numbers = all(isinstance(value, int | float | np.number) for value in (u_max, step))
    if not (numbers and np.isfinite(u_max) and u_max > 0 and step > 0):
        raise InputError(f"u_max = {u_max!r} and step = {step!r}: both must be positive numbers, and u_max finite")
    u_max = float(u_max)
    most = min(64, max(3, 3200 // flow.size)) if max_branches is None else max_branches
    below = None
    if critical.simple and abs(critical.eigenvalue.imag) == 0:
        reduced = flow.reduced(critical)
        below = Explorer(reduced, reduced.critical(), u_max, step, 3).diagram((1, 1))
    return replace(Explorer(flow, critical, u_max, step, most).diagram(made.shape), reduced=below)


def checked(made: System) -> tuple[Flow, Critical]:
    """The flow of a system whose neutral opinion is an equilibrium, and its critical direction."""
    flow = made.flow()
    value, slope = (float(d[0]) for d in flow.derivatives(np.zeros(1), 1))
    if abs(value) > 1e-9 or abs(slope - 1.0) > 1e-6 or made.saturation == "linear":
        raise InputError(
            f"saturation {made.saturation!r} is linear, or S(0) = 0 and S'(0) = 1 do not hold: use tanh or arctan, or "
            "a smooth function that has them"
        )
    critical = flow.critical()
    if critical.simple:
        return flow, critical
    if len(flow.options) > 1 and not flow.options.any():
        raise InputError("the critical direction is not unique: couple the options, or study one at a time")
    if connected_components(flow.communication, directed=False)[0] > 1:
        raise InputError("the critical direction is not unique: take the largest connected component")
    if connected_components(flow.communication, connection="strong")[0] > 1:
        raise InputError(
            "the critical direction is not unique: take agents that all hear one another, if only through others (a "
            "strongly connected component)"
        )
    return flow, critical
