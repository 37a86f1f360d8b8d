"""All branches of a diagram: followed from branch point to branch point, and from stable states at its end."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dissensus.dynamics._basins import SAME_STATE, attractors, sign_patterns
from dissensus.dynamics._continuation import Continuation, Node
from dissensus.dynamics._diagram import Bifurcation, Branch, Point
from dissensus.dynamics._equilibrium import NEUTRAL
from dissensus.dynamics._flow import Array, Critical, Flow
from dissensus.errors import SolverError


class Explorer:
    """Follows branches, and from their branch points further ones, breadth first."""

    def __init__(self, flow: Flow, critical: Critical, u_max: float, step: float, most: int) -> None:
        self.flow, self.critical, self.u_max, self.most = flow, critical, u_max, most
        self.curve = Continuation(flow, "attention", critical.weights, critical.attention, step=step)
        self.mirrored = flow.odd and not flow.input.any()
        self.found: list[tuple[str, list[Node]]] = []
        self.points: list[Point] = []
        # Branch points to switch at: the node, the unstable dimensions before and after it, the place of it (and of its
        # mirror image) among the points.
        self.queue: list[tuple[Node, int, list[int], int]] = []

    def diagram(self, shape: tuple[int, int]) -> Bifurcation:
        """All that is found, with states of the given shape."""
        flow, curve = self.flow, self.curve
        start = curve.at(flow.input / flow.damping, 0.0)
        if start is None:  # at u = 0 the equilibrium b/d is exact and its Jacobian is -D
            raise SolverError("the equilibrium without attention was not found: use parameters of similar size")
        self._follow("connected" if flow.input.any() else "neutral", start)
        self._switch_all()
        for x in self._stable_states() if len(self.found) < self.most else ():
            end = curve.at(x, self.u_max, forward=False, basis=curve.symmetry(x))
            if end is not None and not self._reached(end.x) and len(self.found) < self.most:
                self._follow("disconnected", end)
        self._switch_all()
        branches = tuple(branch(name, nodes, flow, self.critical, shape) for name, nodes in self.found)
        points = tuple(replace(point, state=point.state.reshape(shape)) for point in self.points)
        c = self.critical
        return Bifurcation(c.attention, c.weights.reshape(shape), c.direction.reshape(shape), branches, points)

    def _stable_states(self) -> list[Array]:
        """Stable equilibria at the end of the range, from saturated states, and in small systems from many."""
        flow, sign = self.flow, np.sign(self.critical.direction)
        starts = [sign_patterns(flow)]
        if not len(starts[0]):
            random = np.random.default_rng(0).choice([-1.0, 1.0], (8, *sign.shape))
            starts = [np.concatenate([[sign, -sign], random])]
        states: list[Array] = []
        if self.mirrored:  # the mirror image of a branch is added to it
            starts = [starts[0][starts[0].reshape(len(starts[0]), -1)[:, 0] > 0]]
        attractors(flow, starts[0] * flow.saturated(self.u_max) + flow.input / flow.damping, self.u_max, states)
        return states

    def _reached(self, x: Array) -> bool:
        """Whether a branch passes this state at the end of the range."""
        size = SAME_STATE * self.flow.scale(self.critical.attention)
        return any(
            np.abs(node.x - x).max() <= size
            for _, nodes in self.found
            for node in (nodes[0], nodes[-1])
            if node.p == self.u_max
        )

    def _follow(self, name: str, start: Node, origin: Node | None = None) -> None:
        """Follow one branch; its mirror image is listed with it, under ``lower`` for ``upper``."""
        nodes, problem = self.curve.follow(start, (0.0, self.u_max))
        if problem:
            warnings.warn(f"a {name} branch is incomplete: {problem}", RuntimeWarning, stacklevel=5)
        if origin is not None:
            # The branch point itself is a point of the branch, already listed.
            nodes = [replace(origin, kind="", kernel=None), *nodes]
        self.found.append((name, nodes))
        image = None
        if self.mirrored and any(node.x.any() for node in nodes):
            image = [replace(node, x=-node.x, tangent=(-node.tangent[0], node.tangent[1])) for node in nodes]
            self.found.append(("lower" if name == "upper" else name, image))
        for k, node in enumerate(nodes):
            if not node.kind or node.kind == "end" or self._listed(node):
                continue
            places = [len(self.points)]
            self.points.append(self._point(node))
            if image is not None:
                places.append(len(self.points))
                self.points.append(self._point(image[k]))
            change = sum(int((nodes[k + d].spectrum.real > 0).sum()) * d for d in (-1, 1) if 0 <= k + d < len(nodes))
            change *= 1 if nodes[min(k + 1, len(nodes) - 1)].p >= nodes[k - 1].p else -1
            if node.kind == "branch":
                self.queue.append((node, change, places, 0 if len(self.found) <= 1 else 1))
            elif node.kind == "hopf":
                self._criticality_of_hopf(node, places)

    def _listed(self, node: Node) -> bool:
        size = SAME_STATE * self.flow.scale(self.critical.attention)
        shape = node.x.shape
        return any(
            abs(point.parameter - node.p) <= 1e-6 * self.critical.attention
            and np.abs(point.state.reshape(shape) - node.x).max() <= size
            for point in self.points
        )

    def _point(self, node: Node) -> Point:
        kind = {"branch": "crossing"}.get(node.kind, node.kind)
        dimension = 2 if kind == "hopf" else 1 if node.kernel is None else node.kernel.shape[1]
        return Point(kind, float(node.p), float((self.critical.weights * node.x).sum()), node.x, "", dimension)

    def _switch_all(self) -> None:
        while self.queue:
            node, change, places, level = self.queue.pop(0)
            if len(self.found) < self.most:
                self._switch(node, change, places, level)

    def _switch(self, node: Node, change: int, places: list[int], level: int) -> None:
        """Follow all branches that leave a branch point, and say of what kind it is."""
        assert node.kernel is not None
        sides = []
        known = self._directions(node)
        # Symmetric kernels tell branches apart at high order only: farther from the point.
        distance = self.curve.step * (0.5 if node.kernel.shape[1] == 1 else 2.0)
        first = level == 0 and not any(name in ("upper", "primary") for name, _ in self.found)
        for direction in self._candidates(node.kernel):
            start = self.curve.aside(node, direction.reshape(node.x.shape), distance)
            if start is None:
                continue
            along = _unit(node.kernel.T @ (start.x - node.x).ravel())
            side = float(np.sign(start.p - node.p)) if abs(start.p - node.p) > 1e-9 * self.critical.attention else 0.0
            sides.append(side)
            if any(along @ other > 0.999 for other in known):
                continue
            known.append(along)
            if self.mirrored and not node.x.any():
                known.append(-along)
            if len(self.found) >= self.most:
                continue
            simple = node.kernel.shape[1] == 1
            name = "secondary" if level else "upper" if first and simple else "primary"
            if name == "upper" and not self.mirrored and (self.critical.weights * (start.x - node.x)).sum() < 0:
                name = "lower"
            self._follow(name, start, node)
        if sides:
            kind = "transcritical" if min(sides) < 0 < max(sides) else "pitchfork"
            same = max(sides, key=abs) * change
            criticality = "" if kind == "transcritical" or same == 0 else "supercritical" if same > 0 else "subcritical"
            for place in places:
                self.points[place] = replace(self.points[place], kind=kind, criticality=criticality)

    def _candidates(self, kernel: Array) -> list[Array]:
        """Directions in which to look for branches: both along one vector; in a kernel of more dimensions those that a
        symmetry of the graph may single out, and random ones."""
        if kernel.shape[1] == 1:
            v = kernel[:, 0] * (1.0 if (self.critical.weights.ravel() @ kernel[:, 0]) >= 0 else -1.0)
            return [v, -v]
        random = np.random.default_rng(0).standard_normal((12 * kernel.shape[1], kernel.shape[1])) @ kernel.T
        # One agent against the rest, and two, on one side or on both: the branches of symmetric graphs.
        units = (kernel @ kernel.T)[:40]
        pairs = [units[i] + sign * units[k] for i in range(min(len(units), 8)) for k in range(i) for sign in (1, -1)]
        return _both_ways([*units, *pairs, *random])

    def _directions(self, node: Node) -> list[Array]:
        """The directions in the kernel of branches that were followed already and start or end here."""
        found = []
        assert node.kernel is not None
        # An end is as exact in x as the square root of what it is in p.
        near, size = 1e-5 * self.critical.attention, 1e-3 * self.flow.scale(self.critical.attention)
        for _, nodes in self.found:
            for end, neighbour in ((nodes[0], nodes[1]), (nodes[-1], nodes[-2])):
                if abs(end.p - node.p) <= near and np.abs(end.x - node.x).max() <= size:
                    found.append(_unit(node.kernel.T @ (neighbour.x - node.x).ravel()))
        return found

    def _criticality_of_hopf(self, node: Node, places: list[int]) -> None:
        coefficient = lyapunov_coefficient(self.flow, node.x, node.p)
        if coefficient is not None and abs(coefficient) > 1e-9:
            word = "supercritical" if coefficient < 0 else "subcritical"
            for place in places:
                self.points[place] = replace(self.points[place], criticality=word)


def _both_ways(vectors: Iterable[Array]) -> list[Array]:
    return [sign * _unit(v) for v in vectors if np.linalg.norm(v) > 1e-8 for sign in (1.0, -1.0)]


def _unit(v: Array) -> Array:
    return v / max(float(np.linalg.norm(v)), 1e-300)


def lyapunov_coefficient(flow: Flow, x: Array, u: float) -> float | None:
    r"""The first Lyapunov coefficient at a Hopf point, up to a positive factor: negative where a stable cycle is born.

    .. math::
        \operatorname{Re}\big(\langle p, C(q, q, \bar q)\rangle - 2 \langle p, B(q, J^{-1} B(q, \bar q))\rangle
        + \langle p, B(\bar q, (2 i \omega - J)^{-1} B(q, q))\rangle\big)

    with :math:`J q = i \omega q`, :math:`J^\top p = -i \omega p`, and B, C the second and third derivatives. None for
    systems too large to be written out.
    """
    if flow.size > 600:
        return None
    value = flow.evaluate(x, u)
    jacobian, own = flow.jacobian(value), (u * flow.attention).ravel()
    # The field is left(S(inner v)), with one sum before (argument, sum) or after (opinions) S.
    before = flow.form != "opinions"
    z = x if not before else flow.mix(x) * (u * flow.attention if flow.form == "argument" else 1.0)
    second, third = (d.ravel() for d in flow.derivatives(z, 3)[2:])

    def inner(v: Array) -> Array:
        return v if not before else (flow.matrix @ v) * (own if flow.form == "argument" else 1.0)

    def outer(v: Array) -> Array:
        return v if flow.form == "argument" else own * (v if before else flow.matrix @ v)

    values, vectors = np.linalg.eig(jacobian)
    k = int(np.argmin(np.abs(values.real) + 1e3 * (values.imag <= 1e-6)))
    omega, q = float(values[k].imag), vectors[:, k]
    left_values, left = np.linalg.eig(jacobian.T)
    p = left[:, int(np.argmin(np.abs(left_values + 1j * omega)))]
    p = p / np.conj(np.vdot(p, q))
    a, b = inner(q), inner(q.conj())
    both = outer(second * a * b)
    twice = outer(second * a * a)
    steady = np.linalg.solve(jacobian.astype(complex), both)
    double = np.linalg.solve(2j * omega * np.eye(len(q)) - jacobian, twice)
    total = outer(third * a * a * b) - 2.0 * outer(second * a * inner(steady)) + outer(second * b * inner(double))
    return float(np.vdot(p, total).real)


def branch(name: str, nodes: Sequence[Node], flow: Flow, critical: Critical, shape: tuple[int, int]) -> Branch:
    states = np.stack([node.x for node in nodes])
    eigenvalues = np.array([node.spectrum[0] for node in nodes])
    return Branch(
        name,
        np.array([node.p for node in nodes]),
        np.tensordot(states, critical.weights, axes=2),
        states.reshape(-1, *shape),
        eigenvalues,
        eigenvalues.real <= NEUTRAL * flow.damping.max(),
    )
