"""The attention at which the neutral opinion loses stability."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor

from dissensus.errors import InputError

# Up to this size all eigenvalues are computed; beyond, only the extreme ones.
_DENSE_UP_TO = 1024

Matrix = Any  # a torch tensor (dense or sparse), a NumPy array or a scipy sparse matrix


def check_parameters(damping: float, self_reinforcement: float) -> None:
    """Refuse d <= 0 and alpha < 0."""
    if not damping > 0:
        raise InputError(f"damping is {damping}: it must be positive (d > 0), or opinions grow without bound")
    if not self_reinforcement >= 0:
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

    over the eigenvalues of :math:`A_a` and :math:`A_o`; :math:`\lambda = 4`, so :math:`u^* = d/(\alpha + 3)`, where both are
    right stochastic.

    Args:
        communication: :math:`A_a`, [n, n], dense or sparse; None stands for any right-stochastic matrix.
        options: :math:`A_o`, [o, o]; None stands for any right-stochastic matrix.
        damping: d > 0.
        self_reinforcement: :math:`\alpha \ge 0`.
    """
    check_parameters(damping, self_reinforcement)
    products = np.outer(_eigenvalues(communication, "communication") + 1.0, _eigenvalues(options, "options") + 1.0)
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


def _eigenvalues(matrix: Matrix | None, name: str) -> np.ndarray:
    """The eigenvalues that can lead: all of a small matrix, the extreme ones of a large one; 1 for None."""
    if matrix is None:
        return np.ones(1)
    csr = to_scipy(matrix, name)
    if csr.shape[0] <= _DENSE_UP_TO:
        return np.linalg.eigvals(csr.toarray())
    # A product of two eigenvalues leads only where one of them is extreme in some direction of the plane.
    start = np.random.default_rng(0).random(csr.shape[0])
    kinds = ("LR", "SR", "LI", "LM")
    return np.concatenate(
        [scipy.sparse.linalg.eigs(csr, k=2, which=kind, v0=start, return_eigenvectors=False) for kind in kinds]
    )
