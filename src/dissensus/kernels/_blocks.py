"""Work on large states block by block.

The C library maps a buffer of more than 32 MB anew each time, and the system fills it with zeros page by page, which
takes as long as a sparse product. So results of that size are written to memory that is there, in blocks of rows whose
own buffers are small.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from dissensus.runtime import exporting

# The largest threshold of glibc above which it maps a block of memory by itself.
_LARGE_BYTES = 2**25
_BLOCK_BYTES = 2**22


def is_large(x: Tensor) -> bool:
    """Whether a new buffer of the size of x is slow to get, so that a result should be written to memory at hand.

    Never while a model is exported, because its number of nodes may be a symbol, which a comparison would bound.
    """
    return not exporting() and x.numel() * x.element_size() > _LARGE_BYTES


def row_blocks(x: Tensor) -> Iterator[slice]:
    """The rows of x in blocks of about 4 MB if it is large, otherwise all of them."""
    size = max(1, _BLOCK_BYTES * x.shape[0] // (x.numel() * x.element_size())) if is_large(x) else max(x.shape[0], 1)
    for start in range(0, x.shape[0], size):
        yield slice(start, start + size)
