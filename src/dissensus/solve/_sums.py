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
        spare: memory for a sum that is needed only until the next; None if each needs memory of its own.
    """

    def __init__(
        self,
        others: Sequence[Tensor],
        stack: Tensor,
        rows: Sequence[tuple[float, ...]],
        spare: Tensor | None = None,
    ) -> None:
        self.others, self.stack, self.rows, self.spare = [v.contiguous() for v in others], stack, rows, spare
        self._terms = _native.Terms(self.others, stack) if _native.serves(*self.others, stack) else None

    def __call__(self, i: int, out: Tensor | None = None) -> Tensor:
        """The sum of row i, in ``out`` where given."""
        if out is None:
            out = empty_like(self.others[0]) if self.spare is None else self.spare
        if self._terms is not None and out.is_contiguous():
            self._terms.combine(self.rows[i], out)
            return out
        return self._combine(self.rows[i], out)

    def through_sigmoid(self, i: int, k: Tensor, out: Tensor) -> Tensor:
        """``sum_j w_ij s_j k (1 - k)``, in ``out``: the sum of row i as the cotangent of a sigmoid with the value k."""
        if self._terms is not None and _native.serves(k, out):
            self._terms.combine(self.rows[i], out, k=k)
            return out
        return torch.ops.aten.sigmoid_backward.grad_input(self(i), k, grad_input=out)

    def relative_rms(self, i: int, x: Tensor, new: Tensor, atol: float, rtol: float) -> float:
        """The root mean square of the sum of row i, entry by entry relative to ``atol + rtol max(|x|, |new|)``."""
        if self._terms is not None and _native.serves(x, new):
            return self._terms.relative_rms(self.rows[i], x, new, atol, rtol)
        return rms(relative(self(i), x, new, atol, rtol))

    def last(
        self, weights: tuple[float, ...], out: Tensor, also: tuple[tuple[float, ...], Tensor] | None = None
    ) -> Tensor:
        """A sum with these weights, in ``out``; one with the weights ``also[0]`` is added to ``also[1]``."""
        if self._terms is not None and _native.serves(out, also and also[1]):
            self._terms.combine(weights, out, also=also)
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


class Cotangent(NamedTuple):
    """A sum that a pullback may take as it is, and need not write out."""

    sums: Sums
    row: int

    def through_sigmoid(self, k: Tensor, out: Tensor) -> Tensor:
        """See :meth:`Sums.through_sigmoid`."""
        return self.sums.through_sigmoid(self.row, k, out)

    def tensor(self) -> Tensor:
        """The sum."""
        return self.sums(self.row)


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
