"""Linear combinations of states."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dissensus.runtime import memoized


def linear_combination(
    weights: Sequence[float], terms: Sequence[Tensor], stack: Tensor | None = None, *, out: Tensor
) -> Tensor:
    """``sum_j weights[j] s_j``, where the s_j are first the terms and then the rows of a stack.

    Args:
        weights: scalars; fewer than there are terms and rows leave out the last rows.
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
        # One pass over the result for all rows.
        out.view(1, -1).addmm_(_row(rest, out.dtype, out.device), stack[: len(rest)].view(len(rest), -1))
    return out


@memoized(1024)
def _row(weights: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor([weights], dtype=dtype, device=device)
