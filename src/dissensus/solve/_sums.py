"""Linear combinations of states, which is all that a Runge-Kutta method does between the evaluations of a field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from dissensus import _native
from dissensus._memory import empty_like


class Sums:
    """``sum_j w_ij s_j`` for one row of weights after the other; a row has as many of the first terms as weights, the
    last of which may depend on the sums of the rows before it.

    Args:
        others: the first terms, of one shape.
        stack: the terms after them, [terms, *shape].
        rows: the weights, a tuple each.
    """

    def __init__(self, others: Sequence[Tensor], stack: Tensor, rows: Sequence[tuple[float, ...]]) -> None:
        self.others, self.stack, self.rows = [v.contiguous() for v in others], stack, rows
        self.terms = _native.Terms(self.others, stack) if _native.serves(*self.others, stack) else None

    def __call__(self, i: int, out: Tensor) -> Tensor:
        """The sum of row i, in a contiguous ``out``."""
        if self.terms is None:
            return self._combine(self.rows[i], out)
        self.terms.combine(self.rows[i], out)
        return out

    def relative_rms(self, i: int, x: Tensor, new: Tensor, atol: float, rtol: float) -> float:
        """The root mean square of the sum of row i, entry by entry relative to ``atol + rtol max(|x|, |new|)``."""
        if self.terms is not None and _native.serves(x, new):
            return self.terms.relative_rms(self.rows[i], x, new, atol, rtol)
        return rms(relative(self(i, empty_like(new)), x, new, atol, rtol))

    def last(
        self, weights: tuple[float, ...], out: Tensor, also: tuple[tuple[float, ...], Tensor] | None = None
    ) -> Tensor:
        """A sum with these weights, in a contiguous ``out``. One with the weights ``also[0]`` is added to the tensor
        ``also[1]``."""
        if self.terms is not None and (also is None or _native.serves(also[1])):
            self.terms.combine(weights, out, also=also)
            return out
        if also is not None:
            also[1].add_(self._combine(also[0], empty_like(out)))
        return self._combine(weights, out)

    def _combine(self, weights: tuple[float, ...], out: Tensor) -> Tensor:
        """``sum_j w_j s_j``, in ``out``."""
        total, flat = out.view(-1), [v.view(-1) for v in self.others]
        torch.mul(flat[0], weights[0], out=total)
        for weight, other in zip(weights[1:], flat[1:], strict=False):
            total.add_(other, alpha=weight)
        rest = weights[len(flat) :]
        if rest:
            stack = self.stack[: len(rest)].view(len(rest), -1)
            total.view(1, -1).addmm_(_matrix(rest, out.dtype, out.device), stack)
        return out


class Sum(NamedTuple):
    """A sum that is not made yet: row ``row`` of ``sums``, to be written to ``out``."""

    sums: Sums
    row: int
    out: Tensor

    def tensor(self) -> Tensor:
        """The sum."""
        return self.sums(self.row, self.out)

    def through_sigmoid(self, k: Tensor, out: Tensor) -> Tensor:
        """``sum_j w_j s_j k (1 - k)``, in ``out``: the sum as the cotangent of a sigmoid with the value k."""
        if self.sums.terms is None or not _native.serves(k, out):
            return torch.ops.aten.sigmoid_backward.grad_input(self.tensor(), k, grad_input=out)
        self.sums.terms.combine(self.sums.rows[self.row], out, k=k)
        return out

    @property
    def native(self) -> tuple[_native.Terms, tuple[float, ...], Tensor] | None:
        """The terms, their weights and the memory for the sum, where the package's own kernels take them."""
        return None if self.sums.terms is None else (self.sums.terms, self.sums.rows[self.row], self.out)


def rms(x: Tensor) -> float:
    """Root mean square of all entries; zero for an empty tensor."""
    return float(torch.linalg.vector_norm(x)) / math.sqrt(max(x.numel(), 1))


def relative(error: Tensor, x: Tensor, new: Tensor, atol: float, rtol: float) -> Tensor:
    """``error / (atol + rtol max(|x|, |new|))``."""
    scale = torch.maximum(x.abs(), new.abs()).mul_(rtol).add_(atol)
    return torch.div(error, scale, out=scale)


@lru_cache(maxsize=1024)
def _matrix(row: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor([row], dtype=dtype, device=device)
