"""Opinion dynamics in NumPy: value and Jacobian over attention and input, eigenvalues, the critical direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
import torch

from dissensus.dynamics._saturation import Saturation
from dissensus.errors import InputError, SolverError

Array = np.ndarray

# Up to this size all eigenvalues of a written-out matrix are computed, where they are asked for once.
DENSE_UP_TO = 512
# An eigenvalue this close to the leading one, relatively, is the same.
_SAME = 1e-7


@dataclass(frozen=True)
class Value:
    """f at a state, and what its derivatives need.

    Attributes:
        f: the value, [n, o].
        gain: the Jacobian is ``-D + diag(gain) M``, [n, o].
        by_attention: df/du, [n, o].
    """

    f: Array
    gain: Array
    by_attention: Array


@dataclass(frozen=True)
class Critical:
    """Where and along which direction the neutral opinion loses stability.

    Attributes:
        attention: u*.
        eigenvalue: of ``D^{-1} U M``, the one of largest real part.
        direction: its right eigenvector v, [n, o].
        weights: w with ``w' J = 0`` at u*, [n, o], of absolute sum one and ``<w, v> = 1``, so that ``z = <w, x>`` is a
            weighted average of the opinions.
        simple: no other eigenvalue is equal.
    """

    attention: float
    eigenvalue: complex
    direction: Array
    weights: Array
    simple: bool


@dataclass(frozen=True, eq=False)
class Flow:
    r"""``f(x; u, s) = -D x + S(u U M x) + s B`` with ``M x = (alpha - 1) x + (A_a + I) x (A_o + I)'``.

    Args:
        communication: :math:`A_a`, [n, n].
        options: :math:`A_o`, [o, o].
        damping, attention, self_reinforcement, input: the diagonals D, U, alpha and the input B, [n, o].
        saturation: S.
    """

    communication: scipy.sparse.csr_array
    options: Array
    damping: Array
    attention: Array
    self_reinforcement: Array
    input: Array
    saturation: Saturation

    @property
    def size(self) -> int:
        """Number of opinions, n o."""
        return self.damping.size

    def mix(self, x: Array) -> Array:
        """M x, [n, o] -> [n, o]."""
        y = x @ self._mixing.T
        return y + self.communication @ y + (self.self_reinforcement - 1.0) * x

    def mix_transposed(self, x: Array) -> Array:
        """M' x, [n, o] -> [n, o]."""
        y = x @ self._mixing
        return y + self._communication_t @ y + (self.self_reinforcement - 1.0) * x

    @cached_property
    def _mixing(self) -> Array:
        return self.options + np.eye(len(self.options))

    @cached_property
    def _communication_t(self) -> scipy.sparse.csr_array:
        return self.communication.T.tocsr()

    @cached_property
    def sparse(self) -> scipy.sparse.csr_array:
        """M as a sparse matrix, [n o, n o]; opinion (i, j) has index i o + j."""
        agents = self.communication + scipy.sparse.eye_array(self.communication.shape[0])
        own = scipy.sparse.diags_array((self.self_reinforcement - 1.0).ravel())
        return scipy.sparse.csr_array(scipy.sparse.kron(agents, scipy.sparse.csr_array(self._mixing)) + own)

    @cached_property
    def _dense(self) -> Array:
        return self.sparse.toarray()

    def evaluate(self, x: Array, u: float, s: float = 1.0) -> Value:
        """Value and derivatives at the state x, [n, o]."""
        drive = self.attention * self.mix(x)
        z = torch.from_numpy(u * drive)
        kernel = self.saturation.kernel(z.clone())
        slope = self.saturation.pull(torch.ones_like(z), kernel, z, torch.empty_like(z)).numpy()
        f = kernel.numpy() + s * self.input - self.damping * x
        return Value(f, slope * (u * self.attention), slope * drive)

    def jacobian_product(self, gain: Array, v: Array) -> Array:
        """J v at the point whose ``gain`` is given, [n, o] -> [n, o]."""
        return gain * self.mix(v) - self.damping * v

    def jacobian(self, gain: Array) -> Array:
        """J written out, [n o, n o]."""
        return gain.ravel()[:, None] * self._dense - np.diag(self.damping.ravel())

    def leading(self, gain: Array, count: int = 1, *, dense_up_to: int | None = None) -> tuple[Array, Array]:
        """The ``count`` eigenvalues of J with the largest real parts, descending, and their vectors [n o, count]."""
        return leading_eigenpairs(
            self.size,
            lambda v: self.jacobian_product(gain, v.reshape(self.damping.shape)).ravel(),
            lambda: _scale_rows(gain, self.sparse) - scipy.sparse.diags_array(self.damping.ravel()),
            count,
            dense_up_to=dense_up_to,
        )

    def critical(self) -> Critical:
        """The loss of stability of the neutral opinion x = 0 without input."""
        shape, ratio = self.damping.shape, self.attention / self.damping
        # Arnoldi's iteration sees one vector of a multiple eigenvalue; another start shows another one.
        (right, v), (_, other) = (self._growing(2, seed) for seed in (0, 1))
        growth = float(right[0].real)
        if growth <= 1e-12:
            raise InputError(
                f"the largest growth rate of the neutral opinion is {growth:g}: it is stable at every attention; raise "
                "self_reinforcement or strengthen the graph"
            )
        _, left = leading_eigenpairs(
            self.size,
            lambda y: self.mix_transposed(ratio * y.reshape(shape)).ravel(),
            lambda: _scale_rows(ratio, self.sparse).T,
            1,
        )
        direction, weights = _real(v[:, 0]), _real(left[:, 0]) / self.damping.ravel()
        weights /= np.abs(weights).sum()
        if weights.sum() < -1e-9 or (abs(weights.sum()) <= 1e-9 and weights[np.abs(weights).argmax()] < 0):
            weights = -weights
        overlap = float(weights @ direction)
        # The second eigenvalue of an oscillation is its conjugate, which lies apart.
        again = len(right) > 1 and abs(right[1] - right[0]) <= _SAME * abs(right[0])
        again = again or abs(np.vdot(v[:, 0], other[:, 0])) < 0.99 * np.linalg.norm(v[:, 0]) * np.linalg.norm(
            other[:, 0]
        )
        simple = not again and abs(overlap) > 1e-12
        return Critical(
            self._first_crossing(1.0 / growth),
            complex(right[0]),
            (direction / overlap if simple else direction).reshape(shape),
            weights.reshape(shape),
            simple,
        )

    def _growing(self, count: int, seed: int = 0) -> tuple[Array, Array]:
        """The leading eigenvalues of ``D^{-1} U M``, and their vectors: along them neutral opinions lose stability."""
        shape, ratio = self.damping.shape, self.attention / self.damping
        return leading_eigenpairs(
            self.size,
            lambda y: (ratio * self.mix(y.reshape(shape))).ravel(),
            lambda: _scale_rows(ratio, self.sparse),
            count,
            seed=seed,
        )

    def growth(self) -> float:
        """The largest real part of the eigenvalues of ``D^{-1} U M``: 1 at the critical attention."""
        if not (self.attention.any() and self.sparse.nnz):  # a zero matrix, on which Arnoldi's iteration breaks down
            return 0.0
        return float(self._growing(1)[0][0].real)

    def _first_crossing(self, u: float) -> float:
        """u itself, unless unequal damping makes an oscillation grow earlier or later."""

        def growth(u: float) -> float:
            return float(self.leading(u * self.attention)[0][0].real)

        if np.ptp(self.damping) == 0.0 or abs(growth(u)) <= 1e-7 * float(self.damping.max()):
            return u
        above = u
        while growth(above) < 0.0:
            if above > 1e6 * u:
                raise InputError("the neutral opinion is stable at every attention: strengthen the graph")
            above *= 2.0
        return float(scipy.optimize.brentq(growth, 0.0, above, xtol=1e-13 * u))

    def reduced(self, critical: Critical) -> Flow:
        """One agent in place of all, ``y' = -d y + S(u m y) + s <w, B>``: x = y v along the critical direction.

        d is the damping in that direction and m the growth rate times d; with right-stochastic matrices m = alpha + 3.
        """
        damping = float((critical.weights * self.damping * critical.direction).sum())
        terms = critical.weights * self.input
        # A sum that is zero but for rounding must not unfold the diagram.
        average = float(terms.sum()) if abs(terms.sum()) > 1e-13 * np.abs(terms).sum() else 0.0
        one = np.ones((1, 1))
        return Flow(
            scipy.sparse.csr_array((1, 1)),
            np.zeros((1, 1)),
            damping * one,
            one,
            critical.eigenvalue.real * damping * one,
            average * one,
            self.saturation,
        )


def _scale_rows(factors: Array, matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    return scipy.sparse.diags_array(factors.ravel()) @ matrix


def leading_eigenpairs(
    size: int,
    product: Callable[[Array], Array],
    matrix: Callable[[], scipy.sparse.csr_array],
    count: int,
    *,
    dense_up_to: int | None = None,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Eigenvalues of largest real part, descending, with vectors: all of a small matrix, by Arnoldi of a large one.

    Args:
        size: number of rows.
        product: the matrix times a vector.
        matrix: the matrix itself, made only where it is needed.
        count: number of eigenvalues.
        dense_up_to: size up to which all eigenvalues are computed; None is ``DENSE_UP_TO``.
        seed: of the vector that Arnoldi's iteration starts from.
    """
    count = min(count, size)
    if size <= (DENSE_UP_TO if dense_up_to is None else dense_up_to) or count >= size - 1:
        values, vectors = scipy.linalg.eig(matrix().toarray())
    else:
        operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=product, dtype=np.float64)
        start = np.random.default_rng(seed).random(size)
        # One more than asked for, so that a conjugate pair is not cut in an order that depends on the method.
        sought = min(count + 1, size - 2)
        try:
            values, vectors = scipy.sparse.linalg.eigs(operator, k=sought, which="LR", v0=start, tol=1e-10, maxiter=200)
        except scipy.sparse.linalg.ArpackNoConvergence:
            values, vectors = _crowded(matrix().tocsc(), sought, start)
    # Of equal real parts the one with the larger imaginary part first, so that the order is the same everywhere.
    order = np.lexsort((-values.imag, -values.real))[:count]
    return values[order], vectors[:, order]


def _crowded(matrix: scipy.sparse.csc_array, count: int, start: Array) -> tuple[Array, Array]:
    """Leading eigenvalues that lie close together, as on long paths: those nearest to a bound above all of them."""
    diagonal = matrix.diagonal()
    # Gershgorin's bound; a little more, as the bound itself may be an eigenvalue.
    radius = abs(matrix).sum(axis=1)
    bound = float((diagonal + radius - np.abs(diagonal)).max()) + 1e-3 * float(radius.max())
    try:
        return scipy.sparse.linalg.eigs(matrix, k=count, sigma=bound, v0=start, tol=1e-10)
    except scipy.sparse.linalg.ArpackNoConvergence:
        raise SolverError(
            f"the leading eigenvalues of a {matrix.shape[0]} x {matrix.shape[0]} Jacobian did not converge: take a "
            "part of the graph"
        ) from None


def _real(vector: Array) -> Array:
    """A complex eigenvector turned so that its largest entry is real and positive, and its real part taken."""
    largest = vector[np.abs(vector).argmax()]
    return (vector * (np.conj(largest) / abs(largest))).real
