"""The attention at which the neutral opinion loses stability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from dissensus.dynamics._convert import AnyGraph, as_matrix, as_option_matrix
from dissensus.errors import InputError, SolverError

# Up to this size all eigenvalues are computed; beyond, only the extreme ones.
_DENSE_UP_TO = 1024


def check_parameters(damping: float, self_reinforcement: float) -> None:
    """Refuse d <= 0 and alpha < 0, and what is not finite."""
    if not 0 < damping < math.inf:
        raise InputError(f"damping is {damping}: it must be positive (d > 0), or opinions grow without bound")
    if not 0 <= self_reinforcement < math.inf:
        raise InputError(f"self_reinforcement is {self_reinforcement}: it must not be negative (alpha >= 0)")


def critical_attention(
    communication: AnyGraph | None = None,
    options: Any = None,
    damping: float = 1.0,
    self_reinforcement: float = 1.0,
) -> float:
    r"""The attention :math:`u^*` at which the neutral opinion X = 0 loses stability.

    .. math::
        u^* = \frac{d}{\alpha - 1 + \lambda}, \qquad
        \lambda = \max \operatorname{Re}\,(\lambda_a + 1)(\lambda_o + 1)

    over the eigenvalues of :math:`A_a` and :math:`A_o`; :math:`\lambda = 4`, so :math:`u^* = d/(\alpha + 3)`, where
    both are right stochastic.

    The same graph and parameters give the same number as ``bifurcation(...).critical`` and ``System(...).attention``
    but for diagonals: here they count, as those of a right-stochastic matrix do; there they are left out, unless
    ``self_loops=True``. ``as_matrix(graph, self_loops=False)`` leaves them out here, too, and its ``normalize=True``
    does what theirs does.

    Args:
        communication: :math:`A_a`, of any kind that :func:`as_matrix` takes, or nested lists; None stands for any
            right-stochastic matrix, and then so does None for ``options``.
        options: :math:`A_o`, [o, o]; or the number of uncorrelated options; None is one option (both have
            :math:`\lambda_o = 0`).
        damping: d > 0.
        self_reinforcement: :math:`\alpha \ge 0`.
    """
    check_parameters(damping, self_reinforcement)
    if communication is None:  # all right-stochastic matrices lead with the eigenvalue 1, as [[1]] does
        communication, options = [[1.0]], [[1.0]] if options is None else options
    a_a = as_matrix(np.asarray(communication) if isinstance(communication, list) else communication)
    a_o = as_option_matrix(options)
    # Without negative entries no eigenvalue is larger than the leading one, which is real (Perron, Frobenius).
    positive = all(matrix.data.min(initial=0.0) >= 0.0 for matrix in (a_a, a_o))
    by_options = _eigenvalues(a_o, np.array([1.0]) if positive else np.array([1.0, 1j, -1.0])) + 1.0
    # Re (lambda_a + 1) m is largest for the lambda_a that lies farthest in the direction of the conjugate of m.
    products = np.outer(_eigenvalues(a_a, np.array([1.0]) if positive else _directions(by_options)) + 1.0, by_options)
    growth = self_reinforcement - 1.0 + float(products.real.max())
    if growth <= 1e-12:
        raise InputError(
            f"alpha - 1 + lambda = {growth:g} is not positive: the neutral opinion is stable at every attention; raise "
            "self_reinforcement or strengthen the graph"
        )
    return damping / growth


def _directions(values: np.ndarray) -> np.ndarray:
    """The distinct directions of complex numbers from zero, up to conjugation: unit numbers."""
    angles = np.abs(np.angle(values[values != 0]))
    return np.exp(1j * np.unique(np.round(angles, 9))) if angles.size else np.ones(1)


def _eigenvalues(matrix: scipy.sparse.csr_array, directions: np.ndarray) -> np.ndarray:
    """All eigenvalues of a small matrix, those of a large one that lie farthest in ``directions``."""
    if matrix.shape[0] <= _DENSE_UP_TO:
        return np.linalg.eigvals(matrix.toarray())
    sums = matrix.sum(axis=1)
    if (directions == 1.0).all() and matrix.data.min(initial=0.0) >= 0.0 and np.ptp(sums) <= 1e-6 * sums.max():
        return np.atleast_1d(sums.mean())
    symmetric = abs(matrix - matrix.T).max() == 0.0
    if symmetric:  # all on one line, whose ends are farthest
        directions = np.unique(np.where(directions.real < 0, -1.0, 1.0))
    try:
        return np.concatenate([_farthest(matrix, direction, symmetric) for direction in directions])
    except scipy.sparse.linalg.ArpackNoConvergence:
        raise SolverError(
            f"the leading eigenvalues of a matrix of {matrix.shape[0]} rows did not converge: scale its rows to one "
            "sum, as as_matrix(..., normalize=True) does, or take a part of the graph"
        ) from None


def _farthest(matrix: scipy.sparse.csr_array, direction: complex, symmetric: bool) -> np.ndarray:
    options = {"v0": np.random.default_rng(0).random(matrix.shape[0]), "ncv": 64, "tol": 1e-9}
    turned: Any = matrix * (direction.real if direction.imag == 0 else direction)
    solver: Any = scipy.sparse.linalg.eigsh if symmetric else scipy.sparse.linalg.eigs
    return solver(turned, k=2, which="LA" if symmetric else "LR", return_eigenvectors=False, **options) / direction
