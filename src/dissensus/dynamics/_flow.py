"""Opinion dynamics in NumPy: value and Jacobian over attention and input, eigenvalues, the critical direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.optimize
import scipy.sparse
import torch
from torch import Tensor

from dissensus.dynamics._saturation import Saturation
from dissensus.dynamics._spectrum import (
    SAME,
    LinearMap,
    components,
    descending,
    leading_eigenpairs,
    leading_eigenvalue,
    leading_product,
)
from dissensus.errors import InputError

Array = np.ndarray
Form = Literal["argument", "sum", "opinions"]
FORMS = ("argument", "sum", "opinions")
# Products with smaller matrices are faster with all entries, even with zeros.
_WRITTEN_OUT_UP_TO = 64
# Up to this size all eigenvalues of a Jacobian are computed.
ALL_UP_TO = 600


@dataclass(frozen=True)
class FlowValue:
    """f at a state, and what its derivatives need.

    Attributes:
        f: the value, [n, o].
        left, right: the Jacobian is ``-D + diag(left) M diag(right)``, [n, o] each.
        by_attention: df/du, [n, o].
    """

    f: Array
    left: Array
    right: Array
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
    r"""The right-hand side ``f(x; u, s)``, with one of three places for the saturation S (``form``):

    ``argument``: ``-D x + S(u U M x) + s B``; ``sum``: ``-D x + u U S(M x) + s B``; ``opinions``:
    ``-D x + u U M S(x) + s B``. Here ``M x = (alpha - 1) x + (A_a + I) x (A_o + I)'``.

    Args:
        communication: :math:`A_a`, [n, n].
        options: :math:`A_o`, [o, o].
        damping, attention, self_reinforcement, input: the diagonals D, U, alpha and the input B, [n, o].
        saturation: S, a differentiable function of tensors.
        form: where S stands.
    """

    communication: scipy.sparse.csr_array
    options: Array
    damping: Array
    attention: Array
    self_reinforcement: Array
    input: Array
    saturation: Callable[[Tensor], Tensor]
    form: Form = "argument"

    @property
    def size(self) -> int:
        """Number of opinions, n o."""
        return self.damping.size

    def saturated(self, u: float) -> Array:
        """The size of saturated opinions, [n, o]: 1/d, or as much as u and the graph make of it in other forms."""
        if self.form == "argument":
            return 1.0 / self.damping
        own = u * self.attention / self.damping
        return own * (abs(self.matrix).sum(axis=1).reshape(own.shape) if self.form == "opinions" else 1.0)

    def scale(self, u: float) -> float:
        """The mean of :meth:`saturated`."""
        return float(self.saturated(u).mean())

    @cached_property
    def odd(self) -> bool:
        """Whether ``S(-z) = -S(z)``: then -x solves the equations without input if x does."""
        z = torch.linspace(0.0, 4.0, 33, dtype=torch.float64)
        return bool((self.saturation(z) + self.saturation(-z)).abs().max() <= 1e-9)

    @cached_property
    def symmetric(self) -> bool:
        """Whether M is symmetric: then all eigenvalues of the Jacobian are real, where the slopes are positive."""
        return bool(abs(self.matrix - self.matrix.T).max() == 0.0)

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        """M, [n o, n o]; opinion (i, j) has index i o + j."""
        agents = self.communication + scipy.sparse.eye_array(self.communication.shape[0])
        mixing = scipy.sparse.csr_array(self.options + np.eye(len(self.options)))
        own = scipy.sparse.diags_array((self.self_reinforcement - 1.0).ravel())
        return scipy.sparse.csr_array(scipy.sparse.kron(agents, mixing) + own)

    @cached_property
    def dense(self) -> Array:
        """M written out."""
        return self.matrix.toarray()

    def mix(self, x: Array) -> Array:
        """M x, [..., n, o] -> the same."""
        states = x.reshape(-1, self.size).T
        return ((self.dense if self.size <= _WRITTEN_OUT_UP_TO else self.matrix) @ states).T.reshape(x.shape)

    def rates(self, x: Array, u: float, s: float = 1.0) -> Array:
        """f alone, of one or many states: [..., n, o] -> the same."""
        own = u * self.attention
        if self.form == "opinions":
            core = own * self.mix(self._saturate(x))
        elif self.form == "sum":
            core = own * self._saturate(self.mix(x))
        else:
            core = self._saturate(own * self.mix(x))
        return core + s * self.input - self.damping * x

    def _saturate(self, z: Array) -> Array:
        with torch.no_grad():
            return self.saturation(torch.from_numpy(np.ascontiguousarray(z))).numpy()

    def evaluate(self, x: Array, u: float, s: float = 1.0) -> FlowValue:
        """FlowValue and derivatives at the state x, [n, o]."""
        own = u * self.attention
        if self.form == "opinions":
            value, right = self.derivatives(x, 1)
            drive = self.mix(value)
            core, left, by_attention = own * drive, own, self.attention * drive
        elif self.form == "sum":
            value, slope = self.derivatives(self.mix(x), 1)
            core, left, by_attention, right = own * value, own * slope, self.attention * value, np.ones_like(x)
        else:
            drive = self.mix(x)
            core, slope = self.derivatives(own * drive, 1)
            left, by_attention, right = own * slope, self.attention * drive * slope, np.ones_like(x)
        return FlowValue(core + s * self.input - self.damping * x, left, right, by_attention)

    def derivatives(self, z: Array, order: int) -> list[Array]:
        """S(z) and its derivatives up to ``order``, each of z's shape; by autograd, but for the slope of a named S."""
        named = self.saturation
        if order == 1 and isinstance(named, Saturation):
            argument = torch.from_numpy(np.ascontiguousarray(z)) * named.inner
            value = named.kernel(argument.clone())
            slope = named.pull(torch.ones_like(value), value, argument, torch.empty_like(value))
            return [(named.outer * value + named.shift).numpy(), (named.outer * named.inner * slope).numpy()]
        with torch.enable_grad():
            argument = torch.from_numpy(np.ascontiguousarray(z)).requires_grad_()
            values = [self.saturation(argument)]
            for k in range(order):
                more = k + 1 < order
                (slope,) = torch.autograd.grad(values[-1].sum(), argument, create_graph=more, allow_unused=True)
                values.append(torch.zeros_like(argument, requires_grad=more) if slope is None else slope)
        return [value.detach().numpy() for value in values]

    def jacobian_product(self, value: FlowValue, v: Array) -> Array:
        """J v, [n, o] -> [n, o]."""
        return value.left * self.mix(value.right * v) - self.damping * v

    def jacobian(self, value: FlowValue) -> Array:
        """J written out, [n o, n o]."""
        scaled = value.left.ravel()[:, None] * self.dense * value.right.ravel()
        return scaled - np.diag(self.damping.ravel())

    def sparse_jacobian(self, value: FlowValue) -> scipy.sparse.csr_array:
        """J as a sparse matrix, [n o, n o]."""
        right = scipy.sparse.diags_array(value.right.ravel())
        return _scale_rows(value.left, self.matrix @ right) - scipy.sparse.diags_array(self.damping.ravel())

    def leading(self, value: FlowValue, count: int = 1) -> tuple[Array, Array]:
        """The ``count`` eigenvalues of J with the largest real parts, descending, and their vectors [n o, count]."""
        return leading_eigenpairs(self._linearised(value), count)

    def spectrum(self, value: FlowValue) -> Array:
        """Eigenvalues of J by descending real part: all of a small system, of a large one to the first negative one."""
        if self.size <= ALL_UP_TO:
            gain = (value.left * value.right).ravel()
            if self.symmetric and gain.min() >= 0.0:
                # -D + L M R has the eigenvalues of -D + (L R)^(1/2) M (L R)^(1/2), which is symmetric.
                root = np.sqrt(gain)
                values = np.linalg.eigvalsh(root[:, None] * self.dense * root - np.diag(self.damping.ravel()))
                return values[::-1].astype(complex)
            return descending(np.linalg.eigvals(self.jacobian(value)))
        count, values = 4, self.leading(value, 4)[0]
        while values[-1].real >= 0.0 and count < self.size:
            count = min(2 * count, self.size)
            values = self.leading(value, count)[0]
        return values

    def _linearised(self, value: FlowValue) -> LinearMap:
        """J, [n o, n o]."""
        return LinearMap(
            self._components,
            lambda v: self.jacobian_product(value, v.reshape(self.damping.shape)).ravel(),
            lambda: self.sparse_jacobian(value),
        )

    @property
    def _growing(self) -> LinearMap:
        """``D^{-1} U M``, [n o, n o]: along its leading vectors neutral opinions lose stability."""
        shape, ratio = self.damping.shape, self.attention / self.damping
        return LinearMap(
            self._components,
            lambda y: (ratio * self.mix(y.reshape(shape))).ravel(),
            lambda: _scale_rows(ratio, self.matrix),
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
        transposed_matrix = self.matrix.T.tocsr()
        transposed = LinearMap(
            self._components,
            lambda y: transposed_matrix @ (ratio.ravel() * y),
            lambda: _scale_rows(ratio, self.matrix).T,
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
            zero = np.zeros_like(self.damping)
            return leading_eigenvalue(self._linearised(FlowValue(zero, u * self.attention, zero + 1.0, zero))).real

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
            self.form,
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
