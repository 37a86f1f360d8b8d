"""Hysteresis: equilibria over the strength of the input, and what opinions do as it is raised and lowered."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from dissensus.dynamics._bifurcation import checked
from dissensus.dynamics._continuation import Continuation
from dissensus.dynamics._convert import AnyGraph
from dissensus.dynamics._diagram import Branch, Point
from dissensus.dynamics._equilibrium import settle
from dissensus.dynamics._explore import branch
from dissensus.dynamics._flow import Array, Flow
from dissensus.dynamics._system import Parameters, System, system
from dissensus.errors import InputError, SolverError
from dissensus.report import Diagram, draw_opinions


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
        """The range of strengths in which the state depends on the way there; zero where it never does.

        Exact for a branch with two folds; of one with more, to the spacing of the sweeps.
        """
        if len(self.folds) == 2:
            return abs(self.folds[0].parameter - self.folds[1].parameter)
        apart = self.strength[np.abs(self.up - self.down) > 1e-6]
        return float(apart[-1] - apart[0]) if len(apart) else 0.0

    def plot(self, path: str | Path | None = None, title: str = "") -> Any:
        """The branch, and the sweeps on their way; see :meth:`Bifurcation.plot`."""
        curve = self.branch.parameter, self.branch.z, self.branch.stable
        ways = [("up", self.strength, self.up), ("down", self.strength[::-1], self.down[::-1])]
        points = [(point.kind, point.parameter, point.z) for point in self.folds]
        label = "input strength s"
        drawn = Diagram(title or f"u = {self.attention:.3g}", [curve], None, points=points, paths=ways, label=label)
        return draw_opinions([] if path is None else [Path(path)], [drawn])


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
        s_max: largest strength; None is that at which the input is as strong as saturated opinions (on an average
            weighted as z is), which with d = 1 and an input of one for everyone is 1.
        steps: number of strengths in a sweep.
        step: see :func:`bifurcation`.
        **parameters: see :class:`System`.

    Raises:
        InputError: as for :func:`bifurcation`.
    """
    parameters = parameters if isinstance(graph, System) else {"attention": 1.0, "input": 1.0, **parameters}
    made = system(graph, **parameters)
    flow, critical = checked(made)
    u = 1.5 * critical.attention if u is None else float(u)
    if s_max is None:
        heard, most = (
            float(np.abs(critical.weights * v).sum()) for v in (flow.input, flow.damping * flow.saturated(u))
        )
        if heard <= 1e-9 * most:
            raise InputError("the input is zero where it counts: give s_max, or another input")
        s_max = most / heard
    if not (u > 0 and s_max > 0 and steps >= 2):
        raise InputError(f"u = {u}, s_max = {s_max}, steps = {steps}: u and s_max must be positive, steps at least 2")
    strength = np.linspace(-s_max, s_max, steps)
    low = -np.sign(critical.direction) * flow.saturated(u) - s_max * flow.input / flow.damping
    up = _sweep(flow, low, u, strength)
    down = _sweep(flow, up[-1], u, strength[::-1])[::-1]
    curve = Continuation(flow, "input", critical.weights, s_max, fixed=u, step=step)
    start = curve.at(up[0], -s_max)
    if start is None:
        raise SolverError(f"no equilibrium was found at the strength {-s_max:g}: choose another s_max")
    nodes, problem = curve.follow(start, (-s_max, s_max))
    if problem:
        warnings.warn(f"the branch is incomplete: {problem}", RuntimeWarning, stacklevel=2)
    folds = tuple(
        Point("fold", float(node.p), float((critical.weights * node.x).sum()), node.x.reshape(made.shape))
        for node in nodes
        if node.kind == "fold"
    )
    z = [np.tensordot(states, critical.weights, axes=2) for states in (up, down)]
    return Hysteresis(u, branch("all", nodes, flow, critical, made.shape), folds, strength, z[0], z[1])


def _sweep(flow: Flow, x: Array, u: float, strengths: Array) -> Array:
    states = []
    for s in strengths:
        settled = settle(flow, x, u, float(s))
        if not settled.converged:
            raise SolverError(
                f"the opinions do not settle at u = {u:g}, s = {s:g}: the flow oscillates there; choose another u"
            )
        states.append(x := settled.state.numpy())
    return np.stack(states)
