"""Memory for large states, used again: to map fresh memory costs several times what a pass over it does."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

# Bytes from which on a block is kept; smaller ones are left to the C library.
LEAST = 2**20
# Bytes that may lie unused.
MOST = 2**31
# A block may be so many times as large as what is asked for.
_SLACK = 1.5
# Where a block begins that is large enough for pages of the largest size, for which numpy asks the system; and others.
_HUGE, _PAGE = 2**21, 2**12

# By size. A block may come back at any moment, in any thread: every use is one operation, and what two threads take
# from each other is mapped again.
_unused: dict[int, list[np.ndarray]] = {}


def empty_like(x: Tensor, count: int | None = None, *, rows: int | None = None) -> Tensor:
    """An uninitialized tensor of the shape, type and device of x; ``count`` of them in one, or with other ``rows``.

    On a CPU the memory of a large one is that of an earlier one of about the size whose last user, views included, is
    gone.
    """
    if count is None and rows is None and (x.nbytes < LEAST or not x.is_cpu):
        return torch.empty_like(x, memory_format=torch.contiguous_format, requires_grad=False)
    shape = (*(() if count is None else (count,)), *(x.shape if rows is None else (rows, *x.shape[1:])))
    size = math.prod(shape) * x.element_size()
    if size < LEAST or x.device.type != "cpu":
        return x.new_empty(shape)
    block = _take(size)
    # The tensor holds on to this view, and the block comes back when the view is gone.
    lent = block[:size].view(_Lent)
    lent.block = block
    return torch.from_numpy(lent).view(x.dtype).view(shape)


class _Lent(np.ndarray):
    """Some bytes of a block."""

    block: np.ndarray | None = None

    def __del__(self) -> None:
        if self.block is not None:
            _give(self.block)


def _take(size: int) -> np.ndarray:
    for length in (size, *sorted(n for n in _unused.copy() if size < n <= _SLACK * size)):
        with suppress(KeyError, IndexError):
            blocks = _unused[length]
            block = blocks.pop()
            if not blocks:
                _unused.pop(length, None)
            return block
    _drop(size)  # what is mapped anew takes the place of what lies unused: together they are no more than was in use
    page = _HUGE if size >= 2 * _HUGE else _PAGE
    whole = np.empty(size + page, dtype=np.uint8)
    start = -whole.ctypes.data % page
    return whole[start : start + size]


def _give(block: np.ndarray) -> None:
    _unused.setdefault(len(block), []).append(block)
    _drop(sum(length * len(blocks) for length, blocks in _unused.copy().items()) - MOST)


def _drop(excess: int) -> None:
    """Gives so many bytes back to the system, the sizes first that came up first."""
    if excess <= 0:
        return
    for length, blocks in _unused.copy().items():
        while excess > 0 and blocks:
            with suppress(IndexError):
                blocks.pop(0)
            excess -= length
        if not blocks:
            _unused.pop(length, None)
