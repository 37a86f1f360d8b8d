"""Linear combinations of states, and products with a small dense matrix."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from dissensus.kernels._blocks import row_blocks
from dissensus.runtime import exporting, memoized


def linear_combination(
    weights: Sequence[float], terms: Sequence[Tensor], stack: Tensor | None = None, *, out: Tensor
) -> Tensor:
    """``sum_j weights[j] s_j``, where the s_j are first the terms and then the rows of a stack.

    Args:
        weights: scalars; if there are fewer than terms and rows, the last rows are left out.
        terms: at least one tensor, all of the same shape.
        stack: ``[rows, *shape]``, contiguous.
        out: where to write the sum; contiguous, and not one of the terms.
    """
    torch.mul(terms[0], weights[0], out=out)
    for weight, term in zip(weights[1:], terms[1:], strict=False):
        out.add_(term, alpha=weight)
    rest = tuple(weights[len(terms) :])
    if rest:
        assert stack is not None
        # A matrix product adds all rows in one pass over ``out``.
        out.view(1, -1).addmm_(_row_vector(rest, out.dtype, out.device), stack[: len(rest)].view(len(rest), -1))
    return out


@memoized(1024)
def _row_vector(weights: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor([weights], dtype=dtype, device=device)


def dense_product(x: Tensor, matrix: Tensor, out: Tensor | None = None) -> Tensor:
    """``X M``: [rows, columns], without autograd.

    In float32 on an AMD processor with AVX-512 it is oneDNN's product, because MKL, which ``torch.mm`` calls, uses
    AVX-512 on Intel's processors only. There oneDNN takes half the time.

    Args:
        x: [rows, channels].
        matrix: [channels, columns].
        out: where to write the product; may be the memory of ``x`` if the matrix is square.
    """
    usual = exporting() or x.dtype != torch.float32 or not x.is_cpu or not x.numel() or not _mkl_misses_avx512()
    multiply = torch.mm if usual else _onednn_product
    if out is None:
        return multiply(x, matrix)
    if usual and (exporting() or out.data_ptr() != x.data_ptr()):
        return torch.mm(x, matrix, out=out)
    for rows in row_blocks(x):
        out[rows].copy_(multiply(x[rows], matrix))
    return out


def _onednn_product(x: Tensor, matrix: Tensor) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, matrix.t(), None, "none", [], "")


@cache
def _mkl_misses_avx512() -> bool:
    if not (sys.platform == "linux" and torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()):
        return False
    has_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return has_avx512 and "AuthenticAMD" in Path("/proc/cpuinfo").read_text(errors="ignore")
