"""Memory for large states, used again: to map fresh memory costs several times what a pass over it does."""

from __future__ import annotations

import math
import weakref

import numpy as np
import torch
from torch import Tensor

# Bytes from which on a block is kept; the C library does so with smaller ones.
LEAST = 2**22
# Bytes that may lie unused.
MOST = 2**31
# A block may be so many times as large as what is asked for.
_SLACK = 1.5
# Where a block begins, so that pages of the largest size can hold it; numpy asks the system for them.
_PAGE = 2**21

# By identity, the longest unused first. A block may come back at any moment, in any thread: every use is one operation.
_unused: dict[int, np.ndarray] = {}


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
    lent = block[:size]
    weakref.finalize(lent, _give, block).atexit = False
    return torch.from_numpy(lent).view(x.dtype).view(shape)


def _take(size: int) -> np.ndarray:
    for key, block in sorted(_unused.copy().items(), key=lambda item: len(item[1])):
        if size <= len(block) <= _SLACK * size and _unused.pop(key, None) is not None:
            return block
    whole = np.empty(size + _PAGE, dtype=np.uint8)
    start = -whole.ctypes.data % _PAGE
    return whole[start : start + size]


def _give(block: np.ndarray) -> None:
    _unused[id(block)] = block
    kept = _unused.copy()
    excess = sum(map(len, kept.values())) - MOST
    for key, oldest in kept.items():
        if excess <= 0:
            break
        excess -= len(oldest)
        _unused.pop(key, None)
