"""Atomic writing of files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Context manager with a temporary file to write. It replaces ``path`` at the end, or is deleted on an error."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
