"""The pattern of a sparse matrix, and the products that are differentiable in its values and in the dense factor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from dissensus import _native
from dissensus._memory import empty_like

_INT32_MAX = 2**31 - 1
_MKL = torch.backends.mkl.is_available()
# Numbers in a vector register of most CPUs, in single precision.
_LANES = 8

# The first CSR tensor of a process makes torch warn that the layout is in beta; users of a model need not read that.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.zeros(0, dtype=torch.int64), torch.zeros(0), (1, 1))


class Pattern:
    """Where the entries of a sparse [rows, columns] matrix are, in CSR order, with the transpose prepared once.

    A matrix is a pattern and a vector of values, ``values[e]`` standing at row ``row[e]`` and column ``col[e]``. The
    pattern is fixed; the values may change at every call and carry gradients.

    Args:
        row: row of each entry, [entries].
        col: column of each entry, [entries]; the pairs are distinct and sorted by row, then column.
        shape: number of rows and columns.

    Attributes:
        entries: number of stored entries.
        device: where the pattern lies.
    """

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        index = torch.int32 if max(row.numel(), *shape) <= _INT32_MAX else torch.int64
        self.shape = shape
        self.row = row.to(index)
        self.col = col.to(index)
        self.rowptr = _pointers(row, shape[0]).to(index)
        self.entries = col.numel()
        self.device = col.device

    @cached_property
    def diagonal(self) -> Tensor:
        """The entries on the diagonal, ascending."""
        return (self.row == self.col).nonzero().view(-1)

    @cached_property
    def transpose_order(self) -> Tensor:
        """The values of the transpose, in its own CSR order, are ``values[transpose_order]``."""
        with torch.inference_mode(False):  # a pattern first used in inference mode must serve training as well
            return torch.argsort(self.col.long() * self.shape[0] + self.row.long()).to(self.col.dtype)

    @cached_property
    def T(self) -> Pattern:
        """The pattern of the transpose."""
        order = self.transpose_order
        with torch.inference_mode(False):
            return Pattern(self.col[order], self.row[order], (self.shape[1], self.shape[0]))

    def transposed(self, values: Tensor) -> Tensor:
        """The values of the transpose, in the order of its own pattern: [entries, ...] -> the same."""
        return values.index_select(0, self.transpose_order)

    @property
    def fast(self) -> bool:
        """Whether torch's CSR kernels serve this pattern (MKL on CPU, cuSPARSE on CUDA)."""
        kind = self.device.type
        return self.entries > 0 and (kind == "cuda" or (_MKL and kind == "cpu"))

    def matrix(self, values: Tensor) -> Tensor:
        """The matrix as a torch sparse CSR tensor (not a copy)."""
        return torch.sparse_csr_tensor(self.rowptr, self.col, values, self.shape, check_invariants=False)

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]} x {self.shape[1]}, {self.entries} entries)"


def _pointers(row: Tensor, rows: int) -> Tensor:
    pointers = row.new_zeros(rows + 1)
    torch.cumsum(torch.bincount(row, minlength=rows), 0, out=pointers[1:])
    return pointers


# --- Kernels: no autograd. The fields call these directly; everything differentiable is built on them. ---


def product(
    pattern: Pattern,
    values: Tensor,
    x: Tensor,
    *,
    add: Tensor | None = None,
    scale: float = 1.0,
    out: Tensor | None = None,
) -> Tensor:
    """``scale (A(values) @ x + add)``: [rows, channels]. ``out`` may not be ``x``; it may be ``add``."""
    if _native_serves(pattern, values, x, add, out):
        out = empty_like(x, rows=pattern.shape[0]) if out is None else out
        _native.product(pattern.rowptr, pattern.col, values, x, out, add=add, scale=scale)
        return out
    result = _product(pattern, values, x, add)
    if scale != 1.0:
        result.mul_(scale)
    return result if out is None else out.copy_(result)


def product_vjp(
    pattern: Pattern,
    values_t: Tensor,
    x: Tensor,
    g: Tensor,
    by_values: Tensor | None,
    *,
    add: Tensor | None = None,
    scale: float = 1.0,
    out: Tensor | None = None,
) -> Tensor:
    """The cotangents of ``A(values) @ x``, times ``scale``, from that of its value: returns ``scale (A' g + add)`` and
    adds ``scale <g_i, x_j>`` to ``by_values``.

    Args:
        pattern: of A, rows x columns.
        values_t: the entries of A', ``pattern.transposed(values)``.
        x: the dense factor, [columns, channels].
        g: [rows, channels].
        by_values: [entries]; None leaves them out.
        add: [columns, channels]; None for nothing.
        scale: a factor.
        out: where to write the result, [columns, channels]; neither x nor g.
    """
    if by_values is None:
        return product(pattern.T, values_t, g, add=add, scale=scale, out=out)
    transpose = pattern.T
    if by_values.numel() != pattern.entries:
        raise ValueError(
            f"by_values has {by_values.numel()} entries: give one for each of the pattern's {pattern.entries}"
        )
    if not (_native_serves(transpose, values_t, g, x, add, out) and _native.serves(by_values)):
        inner(pattern, g, x, scale=scale, out=by_values)
        return product(transpose, values_t, g, add=add, scale=scale, out=out)
    # Both need the same rows of g, which lie far apart: each is fetched once.
    out = empty_like(x) if out is None else out
    _native.product(
        transpose.rowptr,
        transpose.col,
        values_t,
        g,
        out,
        add=add,
        scale=scale,
        by_values=(x, pattern.transpose_order, by_values),
    )
    return out


def saturated_product(
    pattern: Pattern,
    values: Tensor,
    x: Tensor,
    *,
    state: Tensor,
    own: float,
    out: Tensor,
    add: Tensor | None = None,
    value: tuple[float, float, Tensor, Tensor] | None = None,
    then: tuple[_native.Terms, Sequence[float], Tensor] | None = None,
) -> None:
    """``sigmoid(A(values) @ x + add + own state)`` in ``out``, and, with ``value = (f, d, b, into)``, ``f out + b - d
    state`` in ``into``.

    Args:
        pattern: of A, rows x columns.
        values: [entries].
        x: [columns, channels].
        state: [rows, channels].
        own: a factor.
        out: [rows, channels]; of the others it may be ``into``, which then remains.
        add: [rows, channels]; None for nothing.
        value: numbers f and d, and b and ``into``, both [rows, channels]; None for nothing.
        then: a sum to be made afterwards: its terms, the last of which is ``out``, their weights, and its place.
    """
    outer, damping, source, into = value or (0.0, 0.0, None, None)
    if _native_serves(pattern, values, x, state, out, add, source, into):
        _native.saturate(
            pattern.rowptr, pattern.col, values, x, out, add=add, state=state, own=own, value=value, then=then
        )
        return
    z = product(pattern, values, x, add=add)
    if own:
        z.add_(state, alpha=own)
    torch.sigmoid(z, out=out)
    if source is not None:
        torch.add(source, out, alpha=outer, out=into).add_(state, alpha=-damping)
    if then is not None:
        terms, weights, total = then
        terms.combine(weights, total)


def _native_serves(pattern: Pattern, values: Tensor, x: Tensor, *of_rows: Tensor | None) -> bool:
    """Whether the package's own kernels take a product, and tensors of its shape; else torch does, or says why not."""
    if not (pattern.col.dtype == torch.int32 and _native.serves(values, x, *of_rows)):
        return False
    rows, columns = pattern.shape
    size, width = rows * x.shape[-1], columns * x.shape[-1]
    return (
        x.dim() == 2
        and x.numel() == width
        and values.numel() == pattern.entries
        and not any(t is not None and t.numel() != size for t in of_rows)
    )


def _product(pattern: Pattern, values: Tensor, x: Tensor, add: Tensor | None) -> Tensor:
    if not pattern.fast:
        target = x.new_zeros(pattern.shape[0], x.shape[1]) if add is None else add.clone()
        return target.index_add_(0, pattern.row.long(), values.unsqueeze(1) * x.index_select(0, pattern.col))
    if x.dtype == values.dtype == torch.float32 and x.device.type == "cpu":
        # A bag for every row, a weighted sum of rows of x: on wide rows twice as fast as MKL's product.
        bags = torch.embedding_bag(x, pattern.col, pattern.rowptr, False, 0, False, values, True)[0]
        return bags if add is None else bags.add_(add)
    matrix = pattern.matrix(values)
    if add is None:
        # In place with beta = 0: `torch.mm` would first make a matrix of zeros and copy it.
        return x.new_empty(pattern.shape[0], x.shape[1]).addmm_(matrix, x, beta=0.0)
    return torch.addmm(add, matrix, x)


def inner(pattern: Pattern, a: Tensor, b: Tensor, *, scale: float = 1.0, out: Tensor | None = None) -> Tensor:
    """``scale <a[row[e]], b[col[e]]>`` for every entry e: [entries]. With ``out`` it is added to what is there, in
    place."""
    if not pattern.fast:
        fresh = _inner_gathered(pattern, a, b).mul_(scale)
        return fresh if out is None else out.add_(fresh)
    if a.shape[1] % _LANES:
        # Where a register is not filled the kernel goes number by number, ten times slower.
        a, b = (torch.nn.functional.pad(v, (0, -v.shape[1] % _LANES)) for v in (a, b))
    out = a.new_zeros(pattern.entries) if out is None else out
    total = pattern.matrix(out)
    torch.sparse.sampled_addmm(total, a, b.t(), alpha=scale, out=total)
    return out


def _inner_gathered(pattern: Pattern, a: Tensor, b: Tensor, chunk: int = 1 << 18) -> Tensor:
    # In pieces, so that memory stays far below entries x channels.
    pieces = zip(pattern.row.split(chunk), pattern.col.split(chunk), strict=True)
    parts = [torch.linalg.vecdot(a.index_select(0, r), b.index_select(0, c)) for r, c in pieces]
    return torch.cat(parts) if parts else a.new_zeros(0)


# --- The same, differentiable (to any order). ---


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, values: Tensor, x: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, x)
        return product(pattern, values, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        pattern, (values, x), grad = ctx.pattern, ctx.saved_tensors, grads[0].contiguous()
        if all(ctx.needs_input_grad[1:]) and not torch.is_grad_enabled():
            total = torch.zeros_like(values)
            return None, total, product_vjp(pattern, pattern.transposed(values), x, grad, total)
        by_values = sddmm(pattern, grad, x) if ctx.needs_input_grad[1] else None
        by_x = spmm(pattern.T, pattern.transposed(values), grad) if ctx.needs_input_grad[2] else None
        return None, by_values, by_x


class _Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(a, b)
        return inner(pattern, a, b)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        pattern, (a, b), grad = ctx.pattern, ctx.saved_tensors, grads[0]
        by_a = spmm(pattern, grad, b) if ctx.needs_input_grad[1] else None
        by_b = spmm(pattern.T, pattern.transposed(grad), a) if ctx.needs_input_grad[2] else None
        return None, by_a, by_b


def spmm(pattern: Pattern, values: Tensor, x: Tensor) -> Tensor:
    """``A(values) @ x``, differentiable in both.

    Args:
        pattern: the pattern of A, rows x columns.
        values: its entries, [entries].
        x: the dense factor, [columns, channels].

    Returns:
        [rows, channels]
    """
    return _Product.apply(pattern, values, x.contiguous())


def sddmm(pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    """``<a_i, b_j>`` for every stored entry (i, j), differentiable in both.

    Args:
        pattern: rows x columns.
        a: one vector for each row, [rows, channels].
        b: one vector for each column, [columns, channels].

    Returns:
        [entries], in the pattern's order.
    """
    return _Inner.apply(pattern, a.contiguous(), b.contiguous())


def row_sums(pattern: Pattern, values: Tensor) -> Tensor:
    """Sum of the values of each row: [entries, ...] -> [rows, ...]."""
    return values.new_zeros(pattern.shape[0], *values.shape[1:]).index_add(0, pattern.row.long(), values)


def row_normalize(pattern: Pattern, values: Tensor) -> Tensor:
    """Positive values divided by their row's sum, so that every row sums to one: [entries, ...] -> the same."""
    return values / row_sums(pattern, values).index_select(0, pattern.row)


def row_softmax(pattern: Pattern, scores: Tensor, weight: Tensor | None = None) -> Tensor:
    """``w_e exp(s_e) / sum_row w exp(s)``: the softmax over the entries of each row.

    Args:
        pattern: rows x columns.
        scores: [entries] or [entries, heads].
        weight: positive multiplicities w, [entries]; one where absent.

    Returns:
        The same shape as ``scores``; every row sums to one.
    """
    return _Softmax.apply(pattern, scores, weight)


def _reduced(pattern: Pattern, values: Tensor, how: str) -> Tensor:
    """The ``max`` or ``sum`` of each row, several times faster than by scattering: [entries, ...] -> [rows, ...]."""
    return torch.segment_reduce(values.contiguous(), how, offsets=pattern.rowptr, axis=0, unsafe=True)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, scores: Tensor, weight: Tensor | None) -> Tensor:
        ctx.pattern = pattern
        # The row's largest score is subtracted first: the result is the same, and exp cannot overflow.
        shares = torch.sub(scores, _reduced(pattern, scores, "max").index_select(0, pattern.row)).exp_()
        if weight is not None:
            shares.mul_(_aligned(weight, scores))
        shares.div_(_reduced(pattern, shares, "sum").index_select(0, pattern.row))
        ctx.save_for_backward(shares, weight)
        return shares

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor | None]:
        # s' = p (g - sum_row p g), and for the weights w' = s' / w
        shares, weight = ctx.saved_tensors
        weighted = shares * grads[0]
        # Only the plain sum has derivatives of every order.
        sums = row_sums(ctx.pattern, weighted) if torch.is_grad_enabled() else _reduced(ctx.pattern, weighted, "sum")
        by_scores = torch.addcmul(weighted, shares, sums.index_select(0, ctx.pattern.row), value=-1.0)
        if not ctx.needs_input_grad[2]:
            return None, by_scores, None
        by_weight = by_scores / _aligned(weight, by_scores)
        return None, by_scores, by_weight.flatten(1).sum(1) if by_weight.dim() > 1 else by_weight


def _aligned(weight: Tensor, scores: Tensor) -> Tensor:
    """[entries] -> [entries, 1, ...], with as many dimensions as the scores."""
    return weight.view(-1, *[1] * (scores.dim() - 1))
