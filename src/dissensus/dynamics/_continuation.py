"""Pseudo-arclength continuation: follow the equilibria of a flow over one parameter, through folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
from scipy.linalg import lapack

from dissensus.dynamics._equilibrium import DENSE_UP_TO
from dissensus.dynamics._flow import ALL_UP_TO, Array, Flow, FlowValue
from dissensus.dynamics._symmetry import invariant_subspace
from dissensus.errors import SolverError

Along = Literal["attention", "input"]
Kind = Literal["", "fold", "branch", "hopf", "end"]

# Newton's method stops at this largest entry of f.
_TOLERANCE = 1e-11
# The tangent may turn by this cosine between two points.
_TURN = 0.97
_SMALLEST_STEP, _MOST_POINTS = 1e-7, 5000
# The derivative by the parameter may reach out of the range of J by this share at a branch point.
_IN_RANGE = 1e-4
# Eigenvalues up to this, relative to the damping, are zero but for rounding.
_NOISE = 1e-10
# An eigenvalue up to this, relative to the damping, does not tell a branch from its neighbours.
_UNRESOLVED = 1e-7
# The reciprocal condition number of a singular matrix.
_SINGULAR = 1e-10

Tangent = tuple[Array, float]


@dataclass(frozen=True)
class Node:
    """One equilibrium on a branch.

    Attributes:
        p: the parameter.
        x: the state, [n, o].
        tangent: of the branch, (dx, dp).
        spectrum: eigenvalues of the Jacobian by descending real part, of a large system to the first negative one.
        kind: what happens here: a ``fold`` of the branch; a ``branch`` point, where others leave; a ``hopf`` point,
            where an oscillation does; the ``end`` of a branch in a branch point; or nothing.
        kernel: null vectors of the Jacobian at a branch point, [n o, dimension].
        basis: of the space that the branch stays in by symmetry, see :func:`invariant_subspace`; None for all states.
    """

    p: float
    x: Array
    tangent: Tangent
    spectrum: Array
    kind: Kind = ""
    kernel: Array | None = None
    basis: Array | None = None


class Continuation:
    """Follows branches of ``f(x; u, s) = 0`` over u or s, the other held at ``fixed``.

    Distances along a branch are measured by the root mean square of x, by ``z = <weights, x>``, both relative to
    saturated opinions, and by the parameter relative to ``scale``; ``step`` is the longest step in this measure.
    """

    def __init__(
        self, flow: Flow, along: Along, weights: Array, scale: float, *, fixed: float = 1.0, step: float = 0.04
    ) -> None:
        self.flow, self.along, self.fixed, self.weights, self.step = flow, along, fixed, weights, step
        self.x_scale = flow.scale(scale if along == "attention" else fixed) ** 2
        self.p_scale = scale**2

    def evaluate(self, x: Array, p: float) -> tuple[FlowValue, Array]:
        """The value and the derivative by the parameter."""
        if self.along == "attention":
            value = self.flow.evaluate(x, p, self.fixed)
            return value, value.by_attention
        return self.flow.evaluate(x, self.fixed, p), self.flow.input

    def follow(self, start: Node, bounds: tuple[float, float]) -> tuple[list[Node], str]:
        """The branch from ``start`` along its tangent until it leaves the bounds or ends in a branch point.

        Returns:
            The nodes, points of interest included; and why it stopped early, empty where it did not.
        """
        nodes, h = [start], 0.25 * self.step
        while len(nodes) < _MOST_POINTS:
            last = nodes[-1]
            new, effort = self._advance(last, h)
            if new is None or self._dot(last.tangent, new.tangent) < _TURN:
                h *= 0.5
                if h < _SMALLEST_STEP:
                    return nodes, f"Newton's method failed beyond {self.along} {last.p:g}"
                continue
            outside = not bounds[0] <= new.p <= bounds[1]
            if outside:
                new = self._clip(last, new, min(max(new.p, bounds[0]), bounds[1]))
            try:
                special = self._specials(last, new)
            except SolverError:
                # A point of interest was lost between the two: shorter steps come closer to it before they look.
                h *= 0.5
                if h < 1e-3 * self.step:
                    nodes.append(new)
                    return nodes, f"a point of interest near {self.along} {last.p:g} could not be located"
                continue
            nodes += special
            if special and special[-1].kind == "end":
                return nodes, ""
            nodes.append(new)
            if outside or self._closed(start, new, h):
                return nodes, ""
            h = min(self.step, h * (1.4 if effort <= 3 else 0.7))
        return nodes, f"{_MOST_POINTS} points reached only {self.along} {last.p:g}"

    def _closed(self, start: Node, new: Node, h: float) -> bool:
        """Whether the branch has come back to where it started."""
        way = new.x - start.x, new.p - start.p
        behind = self._dot(way, start.tangent) <= 0.0
        return behind and self._dot(way, way) <= h**2 and self._dot(start.tangent, new.tangent) > _TURN

    def at(self, x: Array, p: float, *, forward: bool = True, basis: Array | None = None) -> Node | None:
        """The equilibrium near x at the parameter p, its tangent towards larger (smaller) parameters; None if lost."""
        border = np.zeros_like(x), 1.0 if forward else -1.0
        found = self._correct(x, p, border, basis)
        return None if found is None else self._node(found[0], found[1], border, basis)

    def aside(self, node: Node, direction: Array, distance: float) -> Node | None:
        """An equilibrium ``distance`` from a node along ``direction``, on a branch that leaves there; None if lost.

        It has the symmetry of the node and the direction, and is None where others lie beside it all but for rounding.
        """
        basis = self.symmetry(node.x, direction)
        direction = direction / np.sqrt(self._dot((direction, 0.0), (direction, 0.0)))
        border = self._dual((direction, 0.0))
        found = self._correct(node.x + distance * direction, node.p, border, basis)
        start = None if found is None else self._node(found[0], found[1], border, basis)
        if start is None or self.flow.size > ALL_UP_TO:
            return start
        spectrum = start.spectrum
        if basis is not None:
            spectrum = np.linalg.eigvals(basis.T @ self.flow.jacobian(self.evaluate(start.x, start.p)[0]) @ basis)
        return start if np.abs(spectrum).min() > _UNRESOLVED * self.flow.damping.max() else None

    def symmetry(self, *states: Array) -> Array | None:
        """See :func:`invariant_subspace`; None for large systems."""
        return invariant_subspace(self.flow, *states) if self.flow.size <= ALL_UP_TO else None

    # --- The measure along a branch ---

    def _dot(self, a: Tangent, b: Tangent) -> float:
        dual = self._dual(a)
        return float((dual[0] * b[0]).sum()) + dual[1] * b[1]

    def _dual(self, a: Tangent) -> Tangent:
        x, p = a
        z = float((self.weights * x).sum())
        return (x / x.size + z * self.weights) / self.x_scale, p / self.p_scale

    # --- Predictor and corrector ---

    def _advance(self, node: Node, h: float) -> tuple[Node | None, int]:
        border = self._dual(node.tangent)
        found = self._correct(node.x + h * node.tangent[0], node.p + h * node.tangent[1], border, node.basis)
        return (None, 0) if found is None else (self._node(found[0], found[1], border, node.basis), found[2])

    def _correct(self, x: Array, p: float, border: Tangent, basis: Array | None) -> tuple[Array, float, int] | None:
        """Newton's method on f(x, p) = 0 in the plane through (x, p) that ``border`` is normal to."""
        for iteration in range(12):
            value, by_p = self.evaluate(x, p)
            if np.abs(value.f).max() <= _TOLERANCE:
                return x, p, iteration
            step = self._solve(value, by_p, border, value.f, 0.0, basis)
            if step is None or not np.isfinite(step[1]):
                return None
            x, p = x - step[0], p - step[1]
        return None

    def _solve(
        self, value: FlowValue, by_p: Array, border: Tangent, right: Array, right_p: float, basis: Array | None
    ) -> Tangent | None:
        """``[J, f_p; border] [dx, dp] = [right, right_p]``, which is regular at folds as well, with dx in a space."""
        flow, size, shape = self.flow, self.flow.size, self.flow.damping.shape
        if size <= DENSE_UP_TO:
            parts = flow.jacobian(value), by_p.ravel(), border[0].ravel(), right.ravel()
            if basis is not None:
                parts = basis.T @ parts[0] @ basis, parts[1] @ basis, parts[2] @ basis, parts[3] @ basis
            matrix = np.block([[parts[0], parts[1][:, None]], [parts[2][None], np.array([[border[1]]])]])
            factors, pivots, _ = lapack.dgetrf(matrix)
            if not lapack.dgecon(factors, np.abs(matrix).sum(axis=0).max())[0] > _SINGULAR:
                return None
            solution = lapack.dgetrs(factors, pivots, np.append(parts[3], right_p))[0]
            x = solution[:-1] if basis is None else basis @ solution[:-1]
            return x.reshape(shape), float(solution[-1])
        target = np.append(right.ravel(), right_p)

        def product(y: Array) -> Array:
            x, p = y[:size].reshape(shape), y[size]
            top = flow.jacobian_product(value, x) + p * by_p
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

    def _node(self, x: Array, p: float, border: Tangent, basis: Array | None) -> Node | None:
        value, by_p = self.evaluate(x, p)
        tangent = self._tangent(value, by_p, border, basis)
        return None if tangent is None else Node(p, x, tangent, self.flow.spectrum(value), basis=basis)

    def _tangent(self, value: FlowValue, by_p: Array, border: Tangent, basis: Array | None) -> Tangent | None:
        """The unit tangent of the branch, on the side that ``border`` points to."""
        tangent = self._solve(value, by_p, border, np.zeros_like(by_p), 1.0, basis)
        if tangent is None:
            return None
        length = np.sqrt(self._dot(tangent, tangent))
        return tangent[0] / length, tangent[1] / length

    # --- Points of interest ---

    def _clip(self, last: Node, new: Node, bound: float) -> Node:
        share = (bound - last.p) / (new.p - last.p)
        clipped = self.at(last.x + share * (new.x - last.x), bound, forward=new.p > last.p, basis=last.basis)
        return new if clipped is None else clipped

    def _specials(self, last: Node, new: Node) -> list[Node]:
        """Folds, branch and Hopf points between two neighbours, in their order along the branch.

        The real parts of all eigenvalues, sorted, are continuous along a branch: where the k-th changes its sign lies a
        root. So does one of dp where a branch turns back.
        """
        border = self._dual(last.tangent)
        reach = self._dot((new.x - last.x, new.p - last.p), last.tangent)

        def point(share: float) -> tuple[Array, float]:
            move = share * reach
            found = self._correct(last.x + move * last.tangent[0], last.p + move * last.tangent[1], border, last.basis)
            if found is None:
                raise SolverError("a point of interest was lost")
            return found[0], found[1]

        def real_part(share: float, k: int) -> float:
            values = self.flow.spectrum(self.evaluate(*point(share))[0])
            return float(values[min(k, len(values) - 1)].real)

        def turn(share: float) -> float:
            tangent = self._tangent(*self.evaluate(*point(share)), border, last.basis)
            return 0.0 if tangent is None else tangent[1]

        # Of a branch that symmetry alone tells from its neighbours, one eigenvalue is zero but for rounding.
        noise = _NOISE * float(self.flow.damping.max())
        before, after = (int((node.spectrum.real > noise).sum()) for node in (last, new))
        roots = []
        for k in range(min(before, after), max(before, after)):
            ends = real_part(0.0, k), real_part(1.0, k)
            if ends[0] * ends[1] < 0.0:
                roots.append(float(scipy.optimize.brentq(real_part, 0.0, 1.0, args=(k,), xtol=1e-11)))
        turned = last.tangent[1] * new.tangent[1] < 0.0
        if turned and not roots and turn(0.0) * turn(1.0) < 0.0:
            roots.append(float(scipy.optimize.brentq(turn, 0.0, 1.0, xtol=1e-11)))
        distinct = [share for k, share in enumerate(sorted(roots)) if k == 0 or share - sorted(roots)[k - 1] > 1e-6]
        return [self._classify(*point(share), last, turned) for share in distinct]

    def _classify(self, x: Array, p: float, last: Node, turned: bool) -> Node:
        """What happens at a point at which an eigenvalue crosses zero or the branch turns."""
        value, by_p = self.evaluate(x, p)
        size, rate = self.flow.size, float(self.flow.damping.max())
        spectrum = self.flow.spectrum(value)
        near = spectrum[np.abs(spectrum.real) <= 1e-6 * rate]
        node = Node(p, x, last.tangent, spectrum, basis=last.basis)
        if len(near) and np.abs(near.imag).min() > 1e-6 * rate:
            return replace(node, kind="hopf")
        if size <= DENSE_UP_TO:
            left, singular, right = np.linalg.svd(self.flow.jacobian(value))
            dimension = max(1, int((singular <= 1e-5 * rate).sum()))
            left, right = left[:, -dimension:], right[-dimension:].T
        else:
            values, vectors = self.flow.leading(value, len(spectrum))
            chosen = np.abs(values) <= 1e-5 * rate
            chosen[np.abs(values).argmin()] = True
            right = np.linalg.qr(vectors[:, chosen].real)[0]
            # For a symmetric M the left null vectors are the right ones over left/right gains; else take no chance.
            left = right * np.sqrt(value.right / np.maximum(value.left, 1e-300)).ravel()[:, None] ** 2
            left = np.linalg.qr(left)[0]
        if not turned:
            return replace(node, kind="branch", kernel=right)
        # At the neutral state, where the derivative vanishes, branches end, too.
        reach = max(float(np.linalg.norm(by_p)), np.sqrt(size * self.x_scale / self.p_scale) * rate)
        outside = np.linalg.norm(left.T @ by_p.ravel()) > _IN_RANGE * reach
        return replace(node, kind="fold" if outside else "end", kernel=right)
