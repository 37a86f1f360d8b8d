"""The pattern of a sparse matrix, and the products that are differentiable in its values and in the dense factor."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dissensus._memory import CACHED, empty_like

_INT32_MAX = 2**31 - 1
_MKL = torch.backends.mkl.is_available()
# Numbers in a vector register of most CPUs, in single precision.
_LANES = 8
# Bytes of a piece: of the rows that it takes and gives, and, where it takes them twice, of those that it holds between.
_PIECE, _HELD = 2**25, 2**22

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
        self._pieces: dict[int, tuple[Piece, ...]] = {}

    @cached_property
    def diagonal(self) -> Tensor:
        """The entries on the diagonal, ascending."""
        return (self.row == self.col).nonzero().view(-1)

    @cached_property
    def transpose_order(self) -> Tensor:
        """The values of the transpose, in its own CSR order, are ``values[transpose_order]``."""
        with torch.inference_mode(False):  # a pattern first used in inference mode must serve training as well
            return torch.argsort(self.col.long() * self.shape[0] + self.row.long())

    @cached_property
    def T(self) -> Pattern:
        """The pattern of the transpose."""
        order = self.transpose_order
        with torch.inference_mode(False):
            return Pattern(self.col[order], self.row[order], (self.shape[1], self.shape[0]))

    def transposed(self, values: Tensor) -> Tensor:
        """The values of the transpose, in the order of its own pattern: [entries, ...] -> the same."""
        return values.index_select(0, self.transpose_order)

    @cached_property
    def transposed_back(self) -> Tensor:
        """The inverse of ``transpose_order``."""
        with torch.inference_mode(False):
            return torch.argsort(self.transpose_order).to(self.col.dtype)

    def pieces(self, size: int) -> tuple[Piece, ...]:
        """Ranges of rows, each with about ``size`` rows and entries in all, and at least one row."""
        size = max(size, 1)
        if size not in self._pieces:
            with torch.inference_mode(False):
                ends = self.rowptr + torch.arange(self.shape[0] + 1, device=self.device)
                wanted = torch.arange(0, int(ends[-1]), size, device=self.device)
                cuts = sorted({*torch.searchsorted(ends, wanted).tolist(), self.shape[0]})
                self._pieces[size] = tuple(self._piece(*pair) for pair in pairwise(cuts))
        return self._pieces[size]

    def _piece(self, start: int, stop: int) -> Piece:
        entries = slice(int(self.rowptr[start]), int(self.rowptr[stop]))
        row, col = self.row[entries] - start, self.col[entries]
        return Piece(
            slice(start, stop),
            entries,
            Pattern(row, torch.arange(len(col), device=self.device), (stop - start, len(col))),
            Pattern(row, col, (stop - start, self.shape[1])),
        )

    @property
    def fast(self) -> bool:
        """Whether torch's CSR kernels serve this pattern (MKL on CPU, cuSPARSE on CUDA)."""
        kind = self.device.type
        return self.entries > 0 and (kind == "cuda" or (_MKL and kind == "cpu"))

    def matrix(self, values: Tensor) -> Tensor:
        """The matrix as a torch sparse CSR tensor (not a copy)."""
        return torch.sparse_csr_tensor(self.rowptr, self.col, values, self.shape, check_invariants=False)

    def bags(self, values: Tensor, x: Tensor) -> Tensor:
        """:func:`product` in one call, a bag for every row, a weighted sum of rows of x: on wide rows twice as fast as
        MKL's product."""
        return _bags(x, self.col, self.rowptr, values)

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]} x {self.shape[1]}, {self.entries} entries)"


class Piece(NamedTuple):
    """Consecutive rows of a matrix.

    Attributes:
        rows: where they are among all.
        entries: where their entries are.
        near: their own pattern where every entry has a column of its own, [rows, entries].
        pattern: their own pattern, [rows, columns].
    """

    rows: slice
    entries: slice
    near: Pattern
    pattern: Pattern


def _pointers(row: Tensor, rows: int) -> Tensor:
    pointers = row.new_zeros(rows + 1)
    torch.cumsum(torch.bincount(row, minlength=rows), 0, out=pointers[1:])
    return pointers


# --- Kernels: no autograd. The fields call these directly; everything differentiable is built on them. ---


def product(
    pattern: Pattern, values: Tensor, x: Tensor, *, add: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """``A(values) @ x``, plus ``add`` where given: [rows, channels]. ``out`` may not be ``x``; it may be ``add``."""
    if out is None and not in_pieces(pattern, x):
        return _product(pattern, values, x, add)
    return _collect(products(pattern, values, x, add=add), pattern.shape[0], x, out)


def products(
    pattern: Pattern, values: Tensor, x: Tensor, *, add: Tensor | None = None
) -> Iterator[tuple[slice, Tensor]]:
    """:func:`product` as ranges of rows, each while it is in the cache; with a small x all rows at once.

    Yields:
        The range, and its part of the product, which the caller owns.
    """
    if not in_pieces(pattern, x):
        yield slice(None), _product(pattern, values, x, add)
        return
    for piece in pattern.pieces(_PIECE // _width(x)):
        yield piece.rows, _product(piece.pattern, values[piece.entries], x, None if add is None else add[piece.rows])


def product_vjp(
    pattern: Pattern,
    values_t: Tensor,
    x: Tensor,
    g: Tensor,
    by_values: Tensor | None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The cotangents of ``A(values) @ x`` from that of its value: returns ``A' g`` and adds ``<g_i, x_j>`` to
    ``by_values``.

    Args:
        pattern: of A, rows x columns.
        values_t: the entries of A', ``pattern.transposed(values)``.
        x: the dense factor, [columns, channels].
        g: [rows, channels].
        by_values: [entries]; None leaves them out.
        out: where to write the result, [columns, channels].
    """
    return _collect(products_vjp(pattern, values_t, x, g, by_values), pattern.shape[1], g, out)


def products_vjp(
    pattern: Pattern,
    values_t: Tensor,
    x: Tensor,
    g: Tensor,
    by_values: Tensor | None,
    *,
    add: Tensor | None = None,
    scale: float = 1.0,
) -> Iterator[tuple[slice, Tensor]]:
    """``scale`` times (:func:`product_vjp`, plus ``add`` where given), as ranges of rows, as :func:`products` yields
    them; ``by_values`` is complete after the last."""
    if scale != 1.0:
        values_t = values_t * scale
        add = None if add is None else add * scale
    if by_values is None or not (bags_serve(g) and in_pieces(pattern, g)):
        if by_values is not None:
            inner(pattern, g, x, scale=scale, out=by_values)
        yield from products(pattern.T, values_t, g, add=add)
        return
    # Both need the same rows of g, which lie far apart: each piece brings them together once.
    by_entry = by_values.new_zeros(pattern.entries)
    pieces = pattern.T.pieces(_HELD // _width(g))
    one_each = torch.arange(max(piece.pattern.entries for piece in pieces) + 1, dtype=pattern.col.dtype)
    for rows, entries, near, far in pieces:
        gathered = _bags(g, far.col, one_each[: far.entries + 1], None)
        inner(near, x[rows], gathered, scale=scale, out=by_entry[entries])
        yield rows, _product(near, values_t[entries], gathered, None if add is None else add[rows])
    by_values.add_(by_entry.index_select(0, pattern.transposed_back))


def _product(pattern: Pattern, values: Tensor, x: Tensor, add: Tensor | None) -> Tensor:
    if not pattern.fast:
        target = x.new_zeros(pattern.shape[0], x.shape[1]) if add is None else add.clone()
        return target.index_add_(0, pattern.row.long(), values.unsqueeze(1) * x.index_select(0, pattern.col))
    if bags_serve(x) and values.dtype == x.dtype:
        bags = pattern.bags(values, x)
        return bags if add is None else bags.add_(add)
    matrix = pattern.matrix(values)
    if add is None:
        # In place with beta = 0: `torch.mm` would first make a matrix of zeros and copy it.
        return x.new_empty(pattern.shape[0], x.shape[1]).addmm_(matrix, x, beta=0.0)
    return torch.addmm(add, matrix, x)


def _bags(x: Tensor, index: Tensor, pointers: Tensor, weights: Tensor | None) -> Tensor:
    """``sum_e weights_e x[index_e]`` over the entries e between successive pointers: [len(pointers) - 1, channels]."""
    return torch.embedding_bag(x, index, pointers, False, 0, False, weights, True)[0]


def bags_serve(x: Tensor) -> bool:
    """Whether :meth:`Pattern.bags` takes a factor such as x."""
    return x.dtype == torch.float32 and x.device.type == "cpu"


def in_pieces(pattern: Pattern, x: Tensor) -> bool:
    """Whether products with a dense factor such as x come in several pieces, as it exceeds the cache."""
    return pattern.fast and x.device.type == "cpu" and x.numel() * x.element_size() > CACHED


def _width(x: Tensor) -> int:
    """Bytes of a row."""
    return x.shape[1] * x.element_size()


def _collect(parts: Iterator[tuple[slice, Tensor]], rows: int, like: Tensor, out: Tensor | None) -> Tensor:
    """The parts as one tensor of so many rows."""
    for place, part in parts:
        if out is None and part.shape[0] == rows:
            out = part
            continue
        out = empty_like(like, rows=rows) if out is None else out
        out[place] = part
    assert out is not None
    return out


def inner(pattern: Pattern, a: Tensor, b: Tensor, *, scale: float = 1.0, out: Tensor | None = None) -> Tensor:
    """``scale <a[row[e]], b[col[e]]>`` for every entry e: [entries]. With ``out`` it is added to what is there, in
    place; where the pattern is fast, ``out`` may be the matrix of such values."""
    if not pattern.fast:
        fresh = _inner_gathered(pattern, a, b).mul_(scale)
        return fresh if out is None else out.add_(fresh)
    if a.shape[1] % _LANES:
        # Where a register is not filled the kernel goes number by number, ten times slower.
        a, b = (torch.nn.functional.pad(v, (0, -v.shape[1] % _LANES)) for v in (a, b))
    out = a.new_zeros(pattern.entries) if out is None else out
    total = pattern.matrix(out) if out.layout == torch.strided else out
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
