"""The sparsity pattern of a matrix, with products and a softmax that are differentiable in values and dense factors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from dissensus.kernels import csr_matrix, sampled_product, sparse_product

_INT32_MAX = 2**31 - 1


class Pattern:
    """The sparsity pattern of a [rows, columns] matrix in CSR format. The pattern of the transpose is computed once.

    A matrix consists of a pattern and a vector of values, where ``values[e]`` is the entry at row ``row[e]`` and column
    ``col[e]``. The pattern is fixed, but the values can change with every call and can have gradients.

    Args:
        row: row of each entry, [entries].
        col: column of each entry, [entries]; the pairs are distinct and sorted by row, then column.
        shape: number of rows and columns.

    Attributes:
        entries: number of stored entries.
        device: the device of the pattern.
    """

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        index = torch.int32 if max(row.numel(), *shape) <= _INT32_MAX else torch.int64
        self.shape = shape
        self.row = row.to(index)
        self.col = col.to(index)
        self.rowptr = _row_pointers(row, shape[0]).to(index)
        self.entries = col.numel()
        self.device = col.device

    @cached_property
    def diagonal(self) -> Tensor:
        """The indices of the entries on the diagonal, in ascending order."""
        return (self.row == self.col).nonzero().view(-1)

    @cached_property
    def has_diagonal(self) -> bool:
        """Whether every diagonal entry is stored."""
        return self.diagonal.numel() == self.shape[0]

    @cached_property
    def transpose_order(self) -> Tensor:
        """The values of the transpose, in its own CSR order, are ``values[transpose_order]``."""
        with torch.inference_mode(False):  # a pattern first used in inference mode must also work in training
            return torch.argsort(self.col.long() * self.shape[0] + self.row.long()).to(self.col.dtype)

    @cached_property
    def T(self) -> Pattern:
        """The pattern of the transpose."""
        order = self.transpose_order
        with torch.inference_mode(False):
            return Pattern(self.col[order], self.row[order], (self.shape[1], self.shape[0]))

    def transposed(self, values: Tensor) -> Tensor:
        """The values of the transpose in the order of its own pattern, [entries, ...]."""
        return values.index_select(0, self.transpose_order)

    def matrix(self, values: Tensor) -> Tensor:
        """The matrix as a torch sparse CSR tensor (not a copy)."""
        return csr_matrix(self.rowptr, self.col, values, self.shape)

    # Differentiable to any order.

    def spmm(self, values: Tensor, x: Tensor) -> Tensor:
        """The sparse product ``A(values) X``, differentiable in both.

        Args:
            values: the entries of A, [entries].
            x: the dense factor, [columns, channels].

        Returns:
            [rows, channels]
        """
        return _Product.apply(self, values, x.contiguous())

    def sddmm(self, a: Tensor, b: Tensor) -> Tensor:
        """The sampled dense product, ``<a_i, b_j>`` for every entry (i, j), differentiable in both.

        Args:
            a: one vector for each row, [rows, channels].
            b: one vector for each column, [columns, channels].

        Returns:
            [entries]
        """
        return _SampledProduct.apply(self, a.contiguous(), b.contiguous())

    def row_sums(self, values: Tensor) -> Tensor:
        """Sum of the values of each row: [entries, ...] -> [rows, ...]."""
        return values.new_zeros(self.shape[0], *values.shape[1:]).index_add(0, self.row.long(), values)

    def row_normalize(self, values: Tensor) -> Tensor:
        """Divide positive values [entries, ...] by the sum of their row, so that every row sums to one."""
        return values / self.row_sums(values).index_select(0, self.row)

    def row_softmax(self, scores: Tensor, weight: Tensor | None = None) -> Tensor:
        """The softmax over the entries of each row, ``w_e exp(s_e) / sum_row w exp(s)``; every row sums to one.

        Args:
            scores: s, [entries] or [entries, heads].
            weight: positive weights w, [entries]; ones if None.

        Returns:
            The same shape as ``scores``.
        """
        return _Softmax.apply(self, scores, weight)

    # Without autograd, for fields with hand-written derivatives.

    def product(
        self,
        values: Tensor,
        x: Tensor,
        *,
        add: Tensor | None = None,
        scale: float = 1.0,
        out: Tensor | None = None,
    ) -> Tensor:
        """``scale (A(values) x + add)``: [rows, channels]. ``out`` may not be ``x``; it may be ``add``."""
        return sparse_product(self.rowptr, self.row, self.col, values, x, add=add, scale=scale, out=out)

    def product_vjp(
        self,
        values_t: Tensor,
        x: Tensor,
        g: Tensor,
        grad_values: Tensor | None,
        *,
        add: Tensor | None = None,
        scale: float = 1.0,
        out: Tensor | None = None,
    ) -> Tensor:
        """The vector-Jacobian product of ``scale A(values) x``: returns ``scale (A' g + add)`` and adds ``scale <g_i,
        x_j>`` to ``grad_values``.

        Args:
            values_t: the entries of A', ``transposed(values)``.
            x: the dense factor, [columns, channels].
            g: the cotangent of the product, [rows, channels].
            grad_values: gradient of the values, [entries], which is added to; None if it is not needed.
            add: [columns, channels], or None.
            scale: scalar factor.
            out: where to write the result, [columns, channels]; must be neither x nor g.
        """
        if grad_values is not None:
            if grad_values.numel() != self.entries:
                raise ValueError(f"grad_values has {grad_values.numel()} entries: it must have {self.entries}")
            sampled_product(self.rowptr, self.row, self.col, g, x, scale=scale, out=grad_values)
        return self.T.product(values_t, g, add=add, scale=scale, out=out)

    def reduced(self, values: Tensor, how: str) -> Tensor:
        """The ``max`` or ``sum`` over each row, [entries, ...] -> [rows, ...]; much faster than scattering."""
        return torch.segment_reduce(values.contiguous(), how, offsets=self.rowptr, axis=0, unsafe=True)

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]} x {self.shape[1]}, {self.entries} entries)"


def _row_pointers(row: Tensor, rows: int) -> Tensor:
    pointers = row.new_zeros(rows + 1)
    torch.cumsum(torch.bincount(row, minlength=rows), 0, out=pointers[1:])
    return pointers


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, values: Tensor, x: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, x)
        return pattern.product(values, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        pattern, (values, x), grad = ctx.pattern, ctx.saved_tensors, grads[0].contiguous()
        if all(ctx.needs_input_grad[1:]) and not torch.is_grad_enabled():
            total = torch.zeros_like(values)
            return None, total, pattern.product_vjp(pattern.transposed(values), x, grad, total)
        grad_values = pattern.sddmm(grad, x) if ctx.needs_input_grad[1] else None
        grad_x = pattern.T.spmm(pattern.transposed(values), grad) if ctx.needs_input_grad[2] else None
        return None, grad_values, grad_x


class _SampledProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(a, b)
        return sampled_product(pattern.rowptr, pattern.row, pattern.col, a, b)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        pattern, (a, b), grad = ctx.pattern, ctx.saved_tensors, grads[0]
        grad_a = pattern.spmm(grad, b) if ctx.needs_input_grad[1] else None
        grad_b = pattern.T.spmm(pattern.transposed(grad), a) if ctx.needs_input_grad[2] else None
        return None, grad_a, grad_b


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, scores: Tensor, weight: Tensor | None) -> Tensor:
        ctx.pattern = pattern
        # Subtracting the largest score of each row does not change the result and keeps exp from overflowing.
        probs = torch.sub(scores, pattern.reduced(scores, "max").index_select(0, pattern.row)).exp_()
        if weight is not None:
            probs.mul_(_aligned(weight, scores))
        probs.div_(pattern.reduced(probs, "sum").index_select(0, pattern.row))
        ctx.save_for_backward(probs, weight)
        return probs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor | None]:
        # s' = p (g - sum_row p g), and for the weights w' = s' / w
        probs, weight = ctx.saved_tensors
        weighted = probs * grads[0]
        # `row_sums` can be differentiated again, `reduced` is faster.
        sums = ctx.pattern.row_sums(weighted) if torch.is_grad_enabled() else ctx.pattern.reduced(weighted, "sum")
        grad_scores = torch.addcmul(weighted, probs, sums.index_select(0, ctx.pattern.row), value=-1.0)
        if not ctx.needs_input_grad[2]:
            return None, grad_scores, None
        grad_weight = grad_scores / _aligned(weight, grad_scores)
        return None, grad_scores, grad_weight.flatten(1).sum(1) if grad_weight.dim() > 1 else grad_weight


def _aligned(weight: Tensor, scores: Tensor) -> Tensor:
    """[entries] -> [entries, 1, ...], with as many dimensions as the scores."""
    return weight.view(-1, *[1] * (scores.dim() - 1))
