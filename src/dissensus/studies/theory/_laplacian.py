"""Laplacians and the linear flows that they drive."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch
from torch import Tensor


def laplacian_of(a: Tensor) -> Tensor:
    """L = D - A, [n, n], with the row sums of A in the diagonal matrix D."""
    return torch.diag(a.sum(1)) - a


def spectral_gap(laplacian: Tensor) -> float:
    """The smallest real part of an eigenvalue of L beside the zero one: the rate at which differences die out.

    At least 0.001, so that times which are measured in it stay finite on a disconnected graph.
    """
    return max(float(torch.linalg.eigvals(laplacian).real.sort().values[1]), 1e-3)


def consensus_weights(laplacian: Tensor) -> Tensor:
    """The left null vector w of L with ``w' 1 = 1``, [n]: consensus is at w' X(0)."""
    values, vectors = torch.linalg.eig(laplacian.T)
    w = vectors[:, values.abs().argmin()].real
    return w / w.sum()


def linear_flow(matrix: Tensor, x: Tensor, time: float, source: Tensor | None = None) -> Tensor:
    """``X' = M X + B`` at a time, exactly, by the exponential of the system with B as further states: [n, channels]."""
    n, channels = x.shape
    whole = np.zeros((n + channels, n + channels))
    whole[:n, :n] = matrix.numpy()
    if source is not None:
        whole[:n, n:] = source.numpy()
    stacked = np.vstack([x.numpy(), np.eye(channels)])
    return torch.from_numpy((scipy.linalg.expm(time * whole) @ stacked)[:n])
