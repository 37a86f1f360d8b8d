"""Products with a sparse matrix in CSR format: ``rowptr`` [rows + 1], ``row`` and ``col`` [entries], values [entries].

Which routine of torch is fastest depends on dtype and device:

* for float32 on a CPU it is ``embedding_bag``, a weighted sum of rows of the dense factor for every row of the matrix,
  which is two to three times as fast as MKL's product for 64 channels (with AVX2);
* otherwise torch's CSR product, if there is one (MKL on a CPU, cuSPARSE on CUDA);
* gather and ``index_add_`` in all other cases.
"""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor

from dissensus.kernels._blocks import is_large, row_blocks

_MKL = torch.backends.mkl.is_available()
# Number of float32 values in a vector register of most CPUs.
_LANES = 8
# Number of entries for which rows are gathered at a time.
_CHUNK = 1 << 18


def sparse_product(
    rowptr: Tensor,
    row: Tensor,
    col: Tensor,
    values: Tensor,
    x: Tensor,
    *,
    add: Tensor | None = None,
    scale: float = 1.0,
    out: Tensor | None = None,
) -> Tensor:
    """``scale (A x + add)``: [rows, channels].

    Args:
        rowptr, row, col, values: A.
        x: the dense factor, [columns, channels].
        add: [rows, channels].
        scale: scalar factor.
        out: where to write the result; may be ``add``, but not ``x``.
    """
    rows = rowptr.numel() - 1
    if not _has_csr_product(values):
        total = x.new_zeros(rows, x.shape[1]).index_add_(0, row.long(), values.unsqueeze(1) * x.index_select(0, col))
    elif x.dtype == values.dtype == torch.float32 and x.is_cpu:
        if out is not None and is_large(out):
            return _product_in_blocks(rowptr, col, values, x, add, scale, out)
        total = torch.embedding_bag(x, col, rowptr, False, 0, False, values, True)[0]
    else:
        # In place with beta = 0, because `torch.mm` would first create a matrix of zeros and copy it.
        total = x.new_empty(rows, x.shape[1]) if out is None or out is add else out
        total.addmm_(csr_matrix(rowptr, col, values, (rows, x.shape[0])), x, beta=0.0)
    if add is not None:
        total.add_(add)
    if scale != 1.0:
        total.mul_(scale)
    return total if out is None or out is total else out.copy_(total)


def _product_in_blocks(
    rowptr: Tensor, col: Tensor, values: Tensor, x: Tensor, add: Tensor | None, scale: float, out: Tensor
) -> Tensor:
    for rows in row_blocks(out):
        pointers = rowptr[rows.start : rows.stop + 1]
        entries = slice(int(pointers[0]), int(pointers[-1]))
        bags = pointers - pointers[0]
        part = torch.embedding_bag(x, col[entries], bags, False, 0, False, values[entries], True)[0]
        if add is not None:
            part.add_(add[rows])
        torch.mul(part, scale, out=out[rows])
    return out


def sampled_product(
    rowptr: Tensor,
    row: Tensor,
    col: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    scale: float = 1.0,
    out: Tensor | None = None,
) -> Tensor:
    """``scale <a_i, b_j>`` for every entry (i, j) of a sparse matrix, [entries]; added to ``out`` if given.

    Args:
        rowptr, row, col: positions of the entries.
        a: one vector for each row, [rows, channels].
        b: one vector for each column, [columns, channels].
        scale: scalar factor.
        out: [entries], or None.
    """
    if out is None:
        out = a.new_zeros(col.numel())
    if not _has_csr_product(out):
        # In chunks, so that memory stays well below entries x channels.
        for chunk, i, j in zip(out.split(_CHUNK), row.split(_CHUNK), col.split(_CHUNK), strict=True):
            chunk.add_(torch.linalg.vecdot(a.index_select(0, i), b.index_select(0, j)), alpha=scale)
        return out
    if a.shape[1] % _LANES:
        # If the channels do not fill whole registers, the routine is not vectorised and ten times slower.
        a, b = (torch.nn.functional.pad(v, (0, -v.shape[1] % _LANES)) for v in (a, b))
    total = csr_matrix(rowptr, col, out, (a.shape[0], b.shape[0]))
    torch.sparse.sampled_addmm(total, a, b.t(), alpha=scale, out=total)
    return out


def csr_matrix(rowptr: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The matrix as a torch sparse CSR tensor that shares memory with the values."""
    _avoid_beta_warning()
    return torch.sparse_csr_tensor(rowptr, col, values, shape, check_invariants=False)


def _has_csr_product(values: Tensor) -> bool:
    """Whether torch has a fast CSR product for these values."""
    return values.numel() > 0 and (values.is_cuda or (_MKL and values.is_cpu))


@cache
def _avoid_beta_warning() -> None:
    # When a process creates its first CSR tensor, torch warns that the layout is in beta, which does not concern users
    # of a model. This function creates that first one, so that no warning filter is needed for each product.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.zeros(0, dtype=torch.int64), torch.zeros(0), (1, 1))
