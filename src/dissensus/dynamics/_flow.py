"""Opinion dynamics in NumPy: value and Jacobian over attention and input, eigenvalues, the critical direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.optimize
import scipy.sparse
import torch

from dissensus.dynamics._saturation import Saturation
from dissensus.dynamics._spectrum import (
    SAME,
    Linear,
    components,
    leading_eigenpairs,
    leading_eigenvalue,
    leading_product,
)
from dissensus.errors import InputError

Array = np.ndarray


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
        return leading_eigenpairs(self._linearised(gain), count, dense_up_to=dense_up_to)

    def _linearised(self, gain: Array) -> Linear:
        """J, [n o, n o]."""
        return Linear(
            self._components,
            lambda v: self.jacobian_product(gain, v.reshape(self.damping.shape)).ravel(),
            lambda: _scale_rows(gain, self.sparse) - scipy.sparse.diags_array(self.damping.ravel()),
        )

    @property
    def _growing(self) -> Linear:
        """``D^{-1} U M``, [n o, n o]: along its leading vectors neutral opinions lose stability."""
        shape, ratio = self.damping.shape, self.attention / self.damping
        return Linear(
            self._components,
            lambda y: (ratio * self.mix(y.reshape(shape))).ravel(),
            lambda: _scale_rows(ratio, self.sparse),
        )

    @cached_property
    def _components(self) -> Array:
        """The strongly connected component of each opinion in M, [n o]: agents' and options', in all pairs."""
        agents, options = components(self.communication), components(scipy.sparse.csr_array(self.options))
        return (agents[:, None] * (options.max() + 1) + options).ravel()

    def critical(self) -> Critical:
        """The loss of stability of the neutral opinion x = 0 without input."""
        shape, ratio = self.damping.shape, self.attention / self.damping
        # Arnoldi's iteration sees one vector of a multiple eigenvalue; another start shows another one.
        (right, v), (_, other) = (leading_eigenpairs(self._growing, 2, seed=seed) for seed in (0, 1))
        _check_growth(float(right[0].real))
        transposed = Linear(
            self._components,
            lambda y: self.mix_transposed(ratio * y.reshape(shape)).ravel(),
            lambda: _scale_rows(ratio, self.sparse).T,
        )
        _, left = leading_eigenpairs(transposed, 1)
        direction, weights = _real(v[:, 0]), _real(left[:, 0]) / self.damping.ravel()
        weights /= np.abs(weights).sum()
        if weights.sum() < -1e-9 or (abs(weights.sum()) <= 1e-9 and weights[np.abs(weights).argmax()] < 0):
            weights = -weights
        overlap = float(weights @ direction)
        # The second eigenvalue of an oscillation is its conjugate, which lies apart.
        again = len(right) > 1 and abs(right[1] - right[0]) <= SAME * abs(right[0])
        again = again or abs(np.vdot(v[:, 0], other[:, 0])) < 0.99 * np.linalg.norm(v[:, 0]) * np.linalg.norm(
            other[:, 0]
        )
        simple = not again and abs(overlap) > 1e-12
        return Critical(
            self._first_crossing(1.0 / float(right[0].real)),
            complex(right[0]),
            (direction / overlap if simple else direction).reshape(shape),
            weights.reshape(shape),
            simple,
        )

    def critical_attention(self) -> float:
        """u* alone, without its direction."""
        growth = self.growth()
        _check_growth(growth)
        return self._first_crossing(1.0 / growth)

    def growth(self) -> float:
        """The largest real part of the eigenvalues of ``D^{-1} U M``: 1 at the critical attention."""
        if not self.attention.any():  # a zero matrix, on which Arnoldi's iteration breaks down
            return 0.0
        if any(np.ptp(values) for values in (self.damping, self.attention, self.self_reinforcement)):
            return leading_eigenvalue(self._growing).real
        # The eigenvalues of a Kronecker product are the products of its factors' eigenvalues.
        product = leading_product(self.communication, scipy.sparse.csr_array(self.options))
        ratio, alpha = self.attention.flat[0] / self.damping.flat[0], self.self_reinforcement.flat[0]
        return float(ratio * (alpha - 1.0 + product))

    def _first_crossing(self, u: float) -> float:
        """u itself, unless unequal damping makes an oscillation grow earlier or later."""

        def growth(u: float) -> float:
            return leading_eigenvalue(self._linearised(u * self.attention)).real

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


def _check_growth(growth: float) -> None:
    """Refuse a neutral opinion that no attention makes unstable."""
    if growth <= 1e-12:
        raise InputError(
            f"the largest growth rate of the neutral opinion is {growth:g}: it is stable at every attention; raise "
            "self_reinforcement or strengthen the graph"
        )


def _scale_rows(factors: Array, matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    return scipy.sparse.diags_array(factors.ravel()) @ matrix


def _real(vector: Array) -> Array:
    """A complex eigenvector turned so that its largest entry is real and positive, and its real part taken."""
    largest = vector[np.abs(vector).argmax()]
    return (vector * (np.conj(largest) / abs(largest))).real
