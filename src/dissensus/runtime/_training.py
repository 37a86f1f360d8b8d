"""Settings of the process that make training faster."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters of glibc's mallopt. M_TRIM_THRESHOLD: if more bytes than this are free at the end of the heap, they are
# returned to the system. M_MMAP_THRESHOLD: larger blocks are mapped individually, and returned when they are freed.
# M_MMAP_MAX: the maximum number of blocks that are mapped.
_TRIM, _MMAP, _MMAP_MAX = -1, -3, -4
# Training on the whole graph allocates the same blocks in every epoch. Blocks that were returned would be filled with
# zeros again, which on a graph of the size of ogbn-arxiv takes a third of the time.
_KEEP = {_TRIM: 2**31 - 1, _MMAP: 2**25, _MMAP_MAX: 0}
# Batches differ in size, so freed blocks that are kept would add up.
_RETURN = {_TRIM: 2**17, _MMAP: 2**20, _MMAP_MAX: 2**16}
# After training. The previous values are unknown, because they cannot be read; and glibc, which raises both thresholds
# when large blocks are freed, no longer does so once they are set. These are the largest thresholds that it would
# reach, and its own maximum of mapped blocks.
_AFTER = {_TRIM: 2**26, _MMAP: 2**25, _MMAP_MAX: 2**16}


@contextmanager
def training(*, batches: bool = False) -> Iterator[None]:
    """Inside a ``with`` block, flush denormal numbers to zero and (on Linux with glibc) keep freed memory for reuse.

    In a deep network that has collapsed, states and gradients are denormal numbers, with which a product takes several
    times as long. After the block, denormal numbers are treated as before, freed memory is returned to the system, and
    the thresholds of the C library are those that it reaches by itself in a process with large tensors. If
    ``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_MMAP_THRESHOLD_``, ``MALLOC_MMAP_MAX_`` or ``GLIBC_TUNABLES`` set these
    thresholds, they are not changed. Blocks can be nested.

    Args:
        batches: return freed memory at once, because batches differ in size.
    """
    import torch

    flushed_before = not bool(torch.tensor(1e-40) * 1.0)
    torch.set_flush_denormal(True)
    _open_blocks.append(batches)
    _set_thresholds(_RETURN if batches else _KEEP)
    try:
        yield
    finally:
        _open_blocks.pop()
        torch.set_flush_denormal(flushed_before)
        _set_thresholds((_RETURN if _open_blocks[-1] else _KEEP) if _open_blocks else _AFTER)


# The argument ``batches`` of every open block, the innermost last.
_open_blocks: list[bool] = []


def _set_thresholds(options: dict[int, int]) -> None:
    set_by_user = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"} & os.environ.keys()
    if set_by_user or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or (mallopt := _libc("mallopt")) is None:
        return
    for name, value in options.items():
        mallopt(name, value)
    if options is _AFTER and (trim := _libc("malloc_trim")) is not None:
        trim(0)


def _libc(name: str) -> ctypes._NamedFuncPointer | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
