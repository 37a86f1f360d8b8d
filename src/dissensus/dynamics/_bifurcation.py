"""Bifurcation diagrams over the attention, and hysteresis over the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components

from dissensus.dynamics._continuation import Continuation, Node
from dissensus.dynamics._convert import AnyGraph
from dissensus.dynamics._flow import Array, Critical, Flow
from dissensus.dynamics._system import Parameters, System, system
from dissensus.errors import InputError, SolverError
from dissensus.solve import fixed_point

# A leading eigenvalue up to this, relative to the damping, counts as zero: the point itself of a fold or a crossing.
_NEUTRAL = 1e-6
# States that differ by less, relative to 1/damping, are one equilibrium.
_SAME_STATE = 1e-4


@dataclass(frozen=True)
class Branch:
    """One curve of equilibria, in the order in which it was followed.

    Attributes:
        name: ``neutral`` (x = 0), ``upper`` and ``lower`` (the prongs of a pitchfork), ``connected`` (from zero
            attention, under input), ``disconnected`` (all others), or ``all`` (hysteresis).
        parameter: the attention u, or the input strength, [points].
        z: weighted average opinion, [points].
        states: equilibria, [points, n, o].
        eigenvalues: of the Jacobian, the one of largest real part, [points], complex.
        stable: it is not positive, [points]; a branch point itself, where it is zero, counts as stable.
    """

    name: str
    parameter: Array = field(repr=False)
    z: Array = field(repr=False)
    states: Array = field(repr=False)
    eigenvalues: Array = field(repr=False)
    stable: Array = field(repr=False)


@dataclass(frozen=True)
class Point:
    """A point of interest on a branch.

    Attributes:
        kind: ``pitchfork`` (two branches leave, to one side), ``transcritical`` (to both sides), ``fold`` (the branch
            turns back), ``hopf`` (an oscillation grows), or ``crossing`` (a branch leaves that was not followed).
        parameter: the attention u, or the input strength.
        z: weighted average opinion.
        state: [n, o]
    """

    kind: str
    parameter: float
    z: float
    state: Array = field(repr=False)


@dataclass(frozen=True)
class Bifurcation:
    """Equilibria over the attention.

    Attributes:
        critical: u* of the system without input, as :func:`critical_attention` has it (see there on diagonals).
        weights: w of the ordinate ``z = <w, x>``, [n, o]: the leading left eigenvector, of absolute sum one.
        direction: the leading right eigenvector v, [n, o], with ``<w, v> = 1``.
        branches: the curves.
        points: pitchforks, folds and the like, in the order of the branches.
        reduced: the same diagram of the one-dimensional equation ``y' = -d y + S(u m y) + <w, b>``, whose y stands for
            z; m = alpha + 3 for right-stochastic matrices. None in a reduced diagram, and where an oscillation leads.
    """

    critical: float
    weights: Array = field(repr=False)
    direction: Array = field(repr=False)
    branches: tuple[Branch, ...]
    points: tuple[Point, ...]
    reduced: Bifurcation | None = field(default=None, repr=False)

    @property
    def folds(self) -> tuple[Point, ...]:
        """The points at which a branch turns back."""
        return tuple(point for point in self.points if point.kind == "fold")

    def __getitem__(self, name: str) -> Branch:
        """The first branch of that name."""
        for branch in self.branches:
            if branch.name == name:
                return branch
        raise KeyError(f"no branch {name!r}; there are: {', '.join(branch.name for branch in self.branches)}")


def bifurcation(
    graph: System | AnyGraph, *, u_max: float | None = None, step: float = 0.04, **parameters: Unpack[Parameters]
) -> Bifurcation:
    """The equilibria of nonlinear opinion dynamics over the attention u from 0 to ``u_max``, with their stability.

    Without input it is a pitchfork: the neutral branch, and at u* two that leave along the critical direction. With
    input it unfolds: a branch connected to u = 0, and on the other side one that begins at a fold. Branches are
    followed by pseudo-arclength continuation, folds and crossings located by root finding. Besides the branch from
    u = 0 and those that leave where it first loses stability, the ones reached from both saturated states at ``u_max``
    are found.

    Args:
        graph: a :class:`System`, or a graph with parameters. An ``attention`` given here is relative: agent i pays the
            attention ``u attention_i``.
        u_max: end of the range; None is twice the critical attention.
        step: longest step along a branch, relative to 1/damping for opinions and to u* for attention.
        **parameters: see :class:`System`.

    Raises:
        InputError: S is not odd, or the critical direction is not unique (uncoupled options, separate components,
            antagonism that is the same for all).
    """
    parameters = parameters if isinstance(graph, System) else {"attention": 1.0, **parameters}
    flow, critical = _checked(system(graph, **parameters))
    u_max = 2.0 * critical.attention if u_max is None else float(u_max)
    if not (np.isfinite(u_max) and u_max > 0 and step > 0):
        raise InputError(f"u_max = {u_max} and step = {step}: both must be positive, and u_max finite")
    reduced = flow.reduced(critical)
    below = _diagram(reduced, reduced.critical(), u_max, step) if abs(critical.eigenvalue.imag) == 0 else None
    return replace(_diagram(flow, critical, u_max, step), reduced=below)


def _checked(made: System) -> tuple[Flow, Critical]:
    """The flow of a system with an odd saturation, and its critical direction, which must be unique."""
    flow = made.flow()
    if not flow.saturation.odd:
        raise InputError(
            f"saturation {made.saturation!r} is not odd with slope one at zero: use tanh, arctan or softsign"
        )
    critical = flow.critical()
    if not critical.simple:
        raise InputError(f"the critical direction is not unique: {_cure(flow)}")
    return flow, critical


def _cure(flow: Flow) -> str:
    """What makes the critical direction unique."""
    if len(flow.options) > 1 and not flow.options.any():
        return "couple the options, or study one at a time"
    if connected_components(flow.communication, directed=False)[0] > 1:
        return "take the largest connected component"
    if connected_components(flow.communication, connection="strong")[0] > 1:
        return "take agents that all hear one another, if only through others (a strongly connected component)"
    return "make the weights unequal, as they are symmetric"


def _diagram(flow: Flow, critical: Critical, u_max: float, step: float) -> Bifurcation:
    curve = Continuation(flow, "attention", critical.weights, critical.attention, step=step)
    bounds = (0.0, u_max)
    start = curve.at(flow.input / flow.damping, 0.0)
    if start is None:  # at u = 0 the equilibrium b/d is exact and its Jacobian is -D
        raise SolverError("the equilibrium without attention was lost: check the parameters' sizes")
    first = curve.follow(start, bounds)
    found = [("connected" if flow.input.any() else "neutral", first)]
    points = _points(first, critical)
    for index, node in enumerate(node for node in first if node.kind):
        if node.kind == "crossing":
            prongs, kind = _switch(curve, node, bounds)
            points[index] = replace(points[index], kind=kind)
            found += prongs
            break
    for x in _saturated(flow, critical, u_max):
        size = _SAME_STATE / flow.damping.mean()
        known = [node.x for _, nodes in found for node in nodes if node.p == u_max]
        end = None if any(np.abs(x - other).max() <= size for other in known) else curve.at(x, u_max, forward=False)
        if end is not None and not any(np.abs(end.x - other).max() <= size for other in known):
            found.append(("disconnected", curve.follow(end, bounds)))
    for _, nodes in found[1:]:
        points += _points(nodes, critical)
    branches = tuple(_branch(name, nodes, flow, critical) for name, nodes in found)
    return Bifurcation(critical.attention, critical.weights, critical.direction, branches, tuple(points))


def _switch(curve: Continuation, node: Node, bounds: tuple[float, float]) -> tuple[list[tuple[str, list[Node]]], str]:
    """The two branches that leave a crossing along its critical vector, and whether they make a pitchfork."""
    direction = node.vector.real.reshape(node.x.shape)
    if (curve.weights * direction).sum() < 0:
        direction = -direction
    distance = 0.5 * curve.step
    named, sides = [], []
    for name, sign in (("upper", 1.0), ("lower", -1.0)):
        start = curve.aside(node, sign * direction, distance)
        if start is not None:
            # The crossing itself is a point of the branch, already listed.
            named.append((name, [replace(node, kind=""), *curve.follow(start, bounds)]))
            sides.append(start.p - node.p)
    if len(named) < 2:
        return named, "crossing"
    return named, "pitchfork" if sides[0] * sides[1] >= 0 else "transcritical"


def _saturated(flow: Flow, critical: Critical, u: float) -> list[Array]:
    """Equilibria that plain iteration reaches from the two fully saturated states."""
    found = []
    for sign in (1.0, -1.0):
        start = (sign * np.sign(critical.direction) + flow.input) / flow.damping
        # Roughly: where it is, Newton's method finds it exactly.
        result = _settle(flow, start, u, 1.0, tol=1e-6, max_iter=3000)
        if result is not None:
            found.append(result)
    return found


def _settle(flow: Flow, x: Array, u: float, s: float, *, tol: float = 1e-9, max_iter: int = 20_000) -> Array | None:
    """The equilibrium that ``x <- (S(..) + s B)/d`` tends to, as the flow itself would; None without convergence."""

    def step(state: torch.Tensor) -> torch.Tensor:
        y = state.numpy()
        return torch.from_numpy(y + flow.evaluate(y, u, s).f / flow.damping)

    result = fixed_point(step, torch.from_numpy(x), tol=tol, max_iter=max_iter, method="picard", strict=False)
    return result.state.numpy() if result.converged else None


def _points(nodes: Sequence[Node], critical: Critical) -> list[Point]:
    names = {"oscillation": "hopf"}
    return [
        Point(names.get(node.kind, node.kind), float(node.p), float((critical.weights * node.x).sum()), node.x)
        for node in nodes
        if node.kind
    ]


def _branch(name: str, nodes: Sequence[Node], flow: Flow, critical: Critical) -> Branch:
    states = np.stack([node.x for node in nodes])
    eigenvalues = np.array([node.eigenvalue for node in nodes])
    return Branch(
        name,
        np.array([node.p for node in nodes]),
        np.tensordot(states, critical.weights, axes=2),
        states,
        eigenvalues,
        eigenvalues.real <= _NEUTRAL * flow.damping.max(),
    )


@dataclass(frozen=True)
class Hysteresis:
    """Equilibria over the strength s of the input, at one attention.

    Attributes:
        attention: u.
        branch: the curve from the weakest to the strongest input, with its unstable middle part.
        folds: where it turns; without folds there is no hysteresis.
        strength: the inputs of the sweeps, ascending, [steps].
        up: z as the strength is raised step by step, the system settling each time, [steps].
        down: z as it is lowered again, [steps].
    """

    attention: float
    branch: Branch
    folds: tuple[Point, ...]
    strength: Array
    up: Array
    down: Array

    @property
    def width(self) -> float:
        """From the strength at which the lowest state ends to that at which the highest does; zero without folds."""
        return self.folds[0].parameter - self.folds[-1].parameter if self.folds else 0.0


def hysteresis(
    graph: System | AnyGraph,
    *,
    u: float | None = None,
    s_max: float | None = None,
    steps: int = 81,
    step: float = 0.04,
    **parameters: Unpack[Parameters],
) -> Hysteresis:
    """Opinions under an input ``s b`` whose strength s is raised from ``-s_max`` to ``s_max`` and lowered again.

    Above the critical attention the state jumps at a fold, at different strengths on the way up and on the way down.

    Args:
        graph: see :func:`bifurcation`; its ``input`` is the pattern b, one for every agent where none is given.
        u: the attention; None is 1.5 times the critical one.
        s_max: largest strength; None is that at which the weighted average of the input is 1.
        steps: number of strengths in a sweep.
        step: see :func:`bifurcation`.
        **parameters: see :class:`System`.

    Raises:
        InputError: S is not odd, or the critical direction is not unique, as for :func:`bifurcation`.
    """
    parameters = parameters if isinstance(graph, System) else {"attention": 1.0, "input": 1.0, **parameters}
    flow, critical = _checked(system(graph, **parameters))
    average = abs(float((critical.weights * flow.input).sum()))
    if average <= 1e-9 and s_max is None:
        raise InputError("the weighted average of the input is zero: give s_max, or another input")
    u = 1.5 * critical.attention if u is None else float(u)
    s_max = 1.0 / average if s_max is None else float(s_max)
    if not (u > 0 and s_max > 0 and steps >= 2):
        raise InputError(f"u = {u}, s_max = {s_max}, steps = {steps}: u and s_max must be positive, steps at least 2")
    strength = np.linspace(-s_max, s_max, steps)
    low = -(np.sign(critical.direction) + s_max * flow.input) / flow.damping
    up = _sweep(flow, low, u, strength)
    down = _sweep(flow, up[-1], u, strength[::-1])[::-1]
    curve = Continuation(flow, "input", critical.weights, s_max, fixed=u, step=step)
    start = curve.at(up[0], -s_max)
    if start is None:
        raise SolverError(f"the equilibrium at the strength {-s_max:g} was lost: choose another s_max")
    nodes = curve.follow(start, (-s_max, s_max))
    folds = tuple(point for point in _points(nodes, critical) if point.kind == "fold")
    z = [np.tensordot(states, critical.weights, axes=2) for states in (up, down)]
    return Hysteresis(u, _branch("all", nodes, flow, critical), folds, strength, z[0], z[1])


def _sweep(flow: Flow, x: Array, u: float, strengths: Array) -> Array:
    states = []
    for s in strengths:
        settled = _settle(flow, x, u, float(s))
        if settled is None:
            raise SolverError(f"the opinions do not settle at u = {u:g}, s = {s:g}: they oscillate or diverge; lower u")
        states.append(x := settled)
    return np.stack(states)
