"""Pseudo-arclength continuation: follow the equilibria of a flow over one parameter, through folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

from dissensus.dynamics._flow import Array, Flow, Value
from dissensus.errors import SolverError

Along = Literal["attention", "input"]
Kind = Literal["", "fold", "crossing", "oscillation"]

# Newton's method stops at this largest entry of f.
_TOLERANCE = 1e-11
# Bordered systems up to this size are solved directly, larger ones by Krylov iteration.
_DIRECT_UP_TO = 192
# Eigenvalues are asked for at every point, where Arnoldi's iteration pays earlier than for a single matrix.
_DENSE_EIGENVALUES_UP_TO = 48
# The tangent may turn by this cosine between two points.
_TURN = 0.97
_SMALLEST_STEP, _MOST_POINTS = 1e-7, 5000


@dataclass(frozen=True)
class Node:
    """One equilibrium on a branch.

    Attributes:
        p: the parameter.
        x: the state, [n, o].
        tangent: of the branch, (dx, dp).
        eigenvalue: of the Jacobian, the one of largest real part.
        vector: its eigenvector, [n o].
        kind: what happens here: a ``fold`` of the branch; a real eigenvalue ``crossing`` zero without one, where other
            branches leave; a complex pair crossing, an ``oscillation``; or nothing.
    """

    p: float
    x: Array
    tangent: tuple[Array, float]
    eigenvalue: complex
    vector: Array
    kind: Kind = ""


class Continuation:
    """Follows branches of ``f(x; u, s) = 0`` over u or s, the other held at ``fixed``.

    Distances along a branch are measured by the root mean square of x, by ``z = <weights, x>``, both relative to
    1/damping, and by the parameter relative to ``scale``; ``step`` is the longest step in this measure.
    """

    def __init__(
        self, flow: Flow, along: Along, weights: Array, scale: float, *, fixed: float = 1.0, step: float = 0.04
    ) -> None:
        self.flow, self.along, self.fixed, self.weights, self.step = flow, along, fixed, weights, step
        self.x_scale = 1.0 / float(flow.damping.mean()) ** 2
        self.p_scale = scale**2

    def evaluate(self, x: Array, p: float) -> tuple[Value, Array]:
        """The value and the derivative by the parameter."""
        if self.along == "attention":
            value = self.flow.evaluate(x, p, self.fixed)
            return value, value.by_attention
        return self.flow.evaluate(x, self.fixed, p), self.flow.input

    def follow(self, start: Node, bounds: tuple[float, float]) -> list[Node]:
        """The branch from ``start`` along its tangent until it leaves the bounds, points of interest included."""
        nodes, h = [start], 0.25 * self.step
        while len(nodes) < _MOST_POINTS:
            last = nodes[-1]
            new, effort = self._advance(last, h)
            if new is None or self._dot(last.tangent, new.tangent) < _TURN:
                h *= 0.5
                if h < _SMALLEST_STEP:
                    raise SolverError(
                        f"the branch could not be followed beyond {self.along} {last.p:g}, as Newton's method fails: "
                        "use a smooth saturation such as tanh, or end the range before"
                    )
                continue
            outside = not bounds[0] <= new.p <= bounds[1]
            if outside:
                new = self._clip(last, new, min(max(new.p, bounds[0]), bounds[1]))
            special = self._special(last, new, h)
            if special is not None:
                nodes.append(special)
            nodes.append(new)
            if outside:
                return nodes
            h = min(self.step, h * (1.4 if effort <= 3 else 0.7))
        raise SolverError(f"{_MOST_POINTS} points of a branch reached only {self.along} {last.p:g}: shorten the range")

    def at(self, x: Array, p: float, *, forward: bool = True) -> Node | None:
        """The equilibrium near x at the parameter p, its tangent towards larger (smaller) parameters; None if lost."""
        border = np.zeros_like(x), 1.0 if forward else -1.0
        found = self._correct(x, p, border)
        return None if found is None else self._node(found[0], found[1], border)

    def aside(self, node: Node, direction: Array, distance: float) -> Node | None:
        """An equilibrium ``distance`` from a node along ``direction``, on a branch that leaves there; None if lost."""
        direction = direction / np.sqrt(self._dot((direction, 0.0), (direction, 0.0)))
        border = self._dual((direction, 0.0))
        found = self._correct(node.x + distance * direction, node.p, border)
        return None if found is None else self._node(found[0], found[1], border)

    # --- The measure along a branch ---

    def _dot(self, a: tuple[Array, float], b: tuple[Array, float]) -> float:
        dual = self._dual(a)
        return float((dual[0] * b[0]).sum()) + dual[1] * b[1]

    def _dual(self, a: tuple[Array, float]) -> tuple[Array, float]:
        x, p = a
        z = float((self.weights * x).sum())
        return (x / x.size + z * self.weights) / self.x_scale, p / self.p_scale

    # --- Predictor and corrector ---

    def _advance(self, node: Node, h: float) -> tuple[Node | None, int]:
        border = self._dual(node.tangent)
        found = self._correct(node.x + h * node.tangent[0], node.p + h * node.tangent[1], border)
        return (None, 0) if found is None else (self._node(found[0], found[1], border), found[2])

    def _correct(self, x: Array, p: float, border: tuple[Array, float]) -> tuple[Array, float, int] | None:
        """Newton's method on f(x, p) = 0 in the plane through (x, p) that ``border`` is normal to."""
        for iteration in range(12):
            value, by_p = self.evaluate(x, p)
            if np.abs(value.f).max() <= _TOLERANCE:
                return x, p, iteration
            step = self._solve(value, by_p, border, value.f, 0.0)
            if step is None or not np.isfinite(step[1]):
                return None
            x, p = x - step[0], p - step[1]
        return None

    def _solve(
        self, value: Value, by_p: Array, border: tuple[Array, float], right: Array, right_p: float
    ) -> tuple[Array, float] | None:
        """``[J, f_p; border] [dx, dp] = [right, right_p]``, which is regular at folds as well."""
        flow, size, shape = self.flow, self.flow.size, self.flow.damping.shape
        target = np.append(right.ravel(), right_p)
        if size <= _DIRECT_UP_TO:
            matrix = np.empty((size + 1, size + 1))
            matrix[:size, :size] = flow.jacobian(value.gain)
            matrix[:size, size], matrix[size, :size], matrix[size, size] = by_p.ravel(), border[0].ravel(), border[1]
            try:
                solution = np.linalg.solve(matrix, target)
            except np.linalg.LinAlgError:
                return None
            return solution[:size].reshape(shape), float(solution[size])

        def product(y: Array) -> Array:
            x, p = y[:size].reshape(shape), y[size]
            top = flow.jacobian_product(value.gain, x) + p * by_p
            return np.append(top.ravel(), (border[0] * x).sum() + border[1] * p)

        scaling = np.append(1.0 / flow.damping.ravel(), 1.0)
        operators = [
            scipy.sparse.linalg.LinearOperator((size + 1, size + 1), matvec=apply, dtype=np.float64)
            for apply in (product, lambda y: scaling * y.ravel())
        ]
        solution, info = scipy.sparse.linalg.gmres(
            operators[0], target, M=operators[1], rtol=1e-8, atol=1e-14, restart=min(size + 1, 120), maxiter=5
        )
        return None if info else (solution[:size].reshape(shape), float(solution[size]))

    def _node(self, x: Array, p: float, border: tuple[Array, float]) -> Node | None:
        tangent = self._tangent(x, p, border)
        return None if tangent is None else Node(p, x, tangent, *self._leading(x, p))

    def _tangent(self, x: Array, p: float, border: tuple[Array, float]) -> tuple[Array, float] | None:
        """The unit tangent of the branch, on the side that ``border`` points to."""
        tangent = self._solve(*self.evaluate(x, p), border, np.zeros_like(x), 1.0)
        if tangent is None:
            return None
        length = np.sqrt(self._dot(tangent, tangent))
        return tangent[0] / length, tangent[1] / length

    def _leading(self, x: Array, p: float) -> tuple[complex, Array]:
        values, vectors = self.flow.leading(self.evaluate(x, p)[0].gain, dense_up_to=_DENSE_EIGENVALUES_UP_TO)
        return complex(values[0]), vectors[:, 0]

    # --- Points of interest ---

    def _clip(self, last: Node, new: Node, bound: float) -> Node:
        share = (bound - last.p) / (new.p - last.p)
        clipped = self.at(last.x + share * (new.x - last.x), bound, forward=new.p > last.p)
        return new if clipped is None else clipped

    def _special(self, last: Node, new: Node, h: float) -> Node | None:
        """The fold or the crossing between two neighbours, located by root finding along the branch."""
        border = self._dual(last.tangent)

        def point(share: float) -> tuple[Array, float]:
            found = self._correct(last.x + share * h * last.tangent[0], last.p + share * h * last.tangent[1], border)
            if found is None:
                raise SolverError(
                    f"a point of interest near {self.along} {last.p:g} was lost: end the range before, or lower "
                    "step (in Python)"
                )
            return found[0], found[1]

        def turn(share: float) -> float:
            tangent = self._tangent(*point(share), border)
            return 0.0 if tangent is None else tangent[1]

        def growth(share: float) -> float:
            return self._leading(*point(share))[0].real

        if last.tangent[1] * new.tangent[1] < 0.0:
            kind: Kind = "fold"
        elif last.eigenvalue.real * new.eigenvalue.real < 0.0:
            oscillates = min(abs(last.eigenvalue.imag), abs(new.eigenvalue.imag)) > 1e-8
            kind = "oscillation" if oscillates else "crossing"
        else:
            return None
        function = turn if kind == "fold" else growth
        if function(0.0) * function(1.0) > 0.0:
            return None  # there and back within one step
        x, p = point(float(scipy.optimize.brentq(function, 0.0, 1.0, xtol=1e-10)))
        return Node(p, x, last.tangent, *self._leading(x, p), kind)
