"""The attention at which the neutral opinion loses stability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor

from dissensus.errors import InputError, SolverError

# Up to this size all eigenvalues are computed; beyond, only the extreme ones.
_DENSE_UP_TO = 1024

Matrix = Any  # a torch tensor (dense or sparse), a NumPy array or a scipy sparse matrix


def check_parameters(damping: float, self_reinforcement: float) -> None:
    """Refuse d <= 0 and alpha < 0, and what is not finite."""
    if not 0 < damping < math.inf:
        raise InputError(f"damping is {damping}: it must be positive (d > 0), or opinions grow without bound")
    if not 0 <= self_reinforcement < math.inf:
        raise InputError(f"self_reinforcement is {self_reinforcement}: it must not be negative (alpha >= 0)")


def critical_attention(
    communication: Matrix | None = None,
    options: Matrix | None = None,
    damping: float = 1.0,
    self_reinforcement: float = 1.0,
) -> float:
    r"""The attention :math:`u^*` at which the neutral opinion X = 0 loses stability.

    .. math::
        u^* = \frac{d}{\alpha - 1 + \lambda}, \qquad
        \lambda = \max \operatorname{Re}\,(\lambda_a + 1)(\lambda_o + 1)

    over the eigenvalues of :math:`A_a` and :math:`A_o`; :math:`\lambda = 4`, so :math:`u^* = d/(\alpha + 3)`, where
    both are right stochastic.

    Args:
        communication: :math:`A_a`, [n, n], dense or sparse; None stands for any right-stochastic matrix.
        options: :math:`A_o`, [o, o]; None stands for any right-stochastic matrix.
        damping: d > 0.
        self_reinforcement: :math:`\alpha \ge 0`.
    """
    check_parameters(damping, self_reinforcement)
    matrices = [
        None if matrix is None else to_scipy(matrix, name)
        for matrix, name in ((communication, "communication"), (options, "options"))
    ]
    # Without negative entries no eigenvalue is larger than the leading one, which is real (Perron, Frobenius).
    leading_only = all(matrix is None or matrix.data.min(initial=0.0) >= 0.0 for matrix in matrices)
    by_agents, by_options = (_eigenvalues(matrix, leading_only) for matrix in matrices)
    products = np.outer(by_agents + 1.0, by_options + 1.0)
    growth = self_reinforcement - 1.0 + float(products.real.max())
    if growth <= 1e-12:
        raise InputError(
            f"alpha - 1 + lambda = {growth:g} is not positive: the neutral opinion is stable at every attention; raise "
            "self_reinforcement or strengthen the graph"
        )
    return damping / growth


def to_scipy(matrix: Matrix, name: str) -> scipy.sparse.csr_array:
    """A square matrix of any kind as a float64 scipy CSR array."""
    if isinstance(matrix, Tensor):
        if matrix.layout != torch.strided:
            coo = matrix.detach().cpu().to_sparse_coo().coalesce()
            indices = coo.indices().numpy()
            matrix = scipy.sparse.coo_array((coo.values().numpy(), (indices[0], indices[1])), shape=tuple(matrix.shape))
        else:
            matrix = matrix.detach().cpu().numpy()
    matrix = matrix if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError(f"the {name} matrix has shape {tuple(matrix.shape)}: it must be square and not empty")
    csr = scipy.sparse.csr_array(matrix).astype(np.float64)
    if not np.isfinite(csr.data).all():
        raise InputError(f"the {name} matrix has NaN or infinite entries: remove them")
    return csr


def _eigenvalues(matrix: scipy.sparse.csr_array | None, leading_only: bool) -> np.ndarray:
    """The eigenvalues that can lead: all of a small matrix, the extreme ones of a large one; 1 for None."""
    if matrix is None:
        return np.ones(1)
    if matrix.shape[0] <= _DENSE_UP_TO:
        return np.linalg.eigvals(matrix.toarray())
    sums = matrix.sum(axis=1)
    if leading_only and np.ptp(sums) <= 1e-6 * sums.max():
        return np.atleast_1d(sums.mean())
    symmetric = abs(matrix - matrix.T).max() == 0.0
    solver: Any = scipy.sparse.linalg.eigsh if symmetric else scipy.sparse.linalg.eigs
    # A product of two eigenvalues leads only where one of them is extreme in some direction of the plane.
    kinds = ("LA", "SA") if symmetric else ("LR", "SR", "LI", "LM")
    start = np.random.default_rng(0).random(matrix.shape[0])
    try:
        found = [
            solver(matrix, k=2, which=kind, v0=start, ncv=64, tol=1e-9, return_eigenvectors=False)
            for kind in kinds[: 1 if leading_only else None]
        ]
    except scipy.sparse.linalg.ArpackNoConvergence:
        raise SolverError(
            f"the leading eigenvalues of a matrix of {matrix.shape[0]} rows did not converge: leave the matrix out "
            "where it is right stochastic (its leading eigenvalue is 1), or scale its rows to one sum"
        ) from None
    return np.concatenate(found)
