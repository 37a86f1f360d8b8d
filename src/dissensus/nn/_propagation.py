"""What the discrete layers pass messages with: normalised weights of a graph's edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dissensus.graph import Pattern, SparseFeatures, row_sums, spmm


@dataclass(frozen=True)
class Propagation:
    """A sparse matrix that a layer multiplies with: a pattern n x n and its values [entries] (for attention:
    weights)."""

    pattern: Pattern
    values: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """``A X``, differentiable: [n, channels]."""
        assert self.values is not None
        return spmm(self.pattern, self.values, x)


def symmetric_values(pattern: Pattern, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    r"""The entries of :math:`D^{-1/2} A D^{-1/2}`, with D the row sums of A: [entries].

    Args:
        pattern: n x n, self-loops included.
        weight: positive entries of A, [entries]; one where absent.
        dtype: of the result.
    """
    weight = torch.ones(pattern.entries, dtype=dtype, device=pattern.device) if weight is None else weight
    scale = row_sums(pattern, weight).rsqrt()
    return weight * scale.index_select(0, pattern.row) * scale.index_select(0, pattern.col)


def project(linear: torch.nn.Module, x: Tensor | SparseFeatures) -> Tensor:
    """``X W'`` without the bias: [n, out]."""
    weight = linear.weight
    assert isinstance(weight, Tensor)
    return x.linear(weight) if isinstance(x, SparseFeatures) else x @ weight.t()
