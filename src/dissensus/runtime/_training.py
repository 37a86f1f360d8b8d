"""Settings of the process that make training faster."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters of glibc's mallopt: how many free bytes at the end of the heap go back to the system, and from which size
# on a block is mapped by itself. There is no way to read them, and once set they no longer grow with the blocks that
# are freed. So what is set afterwards is where they end by themselves, after a block of 32 MB.
_TRIM, _MMAP = -1, -3
_GROWN = {_TRIM: 2**26, _MMAP: 2**25}
# Training on the whole graph frees and takes the same blocks every epoch: to map them again costs several per cent.
_KEEP = {_TRIM: 2**31 - 1, _MMAP: 2**25}
# Batches differ in size, so what is kept would add up.
_RETURN = {_TRIM: 2**17, _MMAP: 2**20}


@contextmanager
def training(*, batches: bool = False) -> Iterator[None]:
    """Inside the block denormal numbers count as zero, and freed memory stays with the process (on Linux with glibc).

    States and gradients of a deep network that has collapsed are so small that a processor takes several times as long
    for each product with them. Afterwards denormal numbers are treated as before, and the C library returns free memory
    to the system and has the thresholds that it takes by itself in a process with large tensors. If thresholds are set
    by ``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_MMAP_THRESHOLD_`` or ``GLIBC_TUNABLES``, memory is left alone. Blocks may be
    nested.

    Args:
        batches: return memory at once, since batches differ in size.
    """
    import torch

    flushed = not bool(torch.tensor(1e-40) * 1.0)
    torch.set_flush_denormal(True)
    _stack.append(batches)
    _set(_RETURN if batches else _KEEP)
    try:
        yield
    finally:
        _stack.pop()
        torch.set_flush_denormal(flushed)
        _set((_RETURN if _stack[-1] else _KEEP) if _stack else _GROWN)


# The blocks that are open, by ``batches``, the innermost last.
_stack: list[bool] = []


def _set(options: dict[int, int]) -> None:
    chosen = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"} & os.environ.keys()
    if chosen or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or (mallopt := _libc("mallopt")) is None:
        return
    for name, value in options.items():
        mallopt(name, value)
    if options is _GROWN and (trim := _libc("malloc_trim")) is not None:
        trim(0)


def _libc(name: str) -> ctypes._NamedFuncPointer | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
