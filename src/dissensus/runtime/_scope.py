"""The number of threads and environment variables inside a ``with`` block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from dissensus.errors import InputError


@contextmanager
def scope(*, threads: int | None = None, environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """Set the number of threads and environment variables inside a ``with`` block, and restore them afterwards.

    Args:
        threads: number of torch's threads; None leaves it as it is.
        environment: variables to set, unless they are set already.
    """
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}: give at least 1, or None to leave the number as it is")
    with ExitStack() as undo:
        for name, value in (environment or {}).items():
            if name not in os.environ:
                os.environ[name] = value
                undo.callback(os.environ.pop, name, None)
        if threads is not None:
            import torch

            undo.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(threads)
        yield
