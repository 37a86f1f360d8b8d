"""Results that are kept to save time: by the content of tensors, or by plain arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import _lru_cache_wrapper, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from dissensus.runtime._export import exporting

if TYPE_CHECKING:
    from torch import Tensor

Made = TypeVar("Made")
# None stands for edge weights that were not given.
Tensors = tuple["Tensor | None", ...]

_CACHES: list[Cache] = []
_RESETS: list[Callable[[], None]] = []


class Cache(Generic[Made]):
    """The last ``size`` results, by a key and by the whole content of the tensors that they were made from.

    A graph that was changed in place is thus another graph. While a model is exported nothing is found or kept.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.kept: list[tuple[Hashable, Tensors, Made]] = []  # the most recently used one at the end
        self._lock = Lock()
        _CACHES.append(self)

    def get(self, key: Hashable, parts: Tensors) -> Made | None:
        """What was made from these tensors, or None."""
        if exporting():
            return None
        with self._lock:
            for i, (known, tensors, made) in enumerate(self.kept):
                if known == key and all(map(_same, tensors, parts)):
                    self.kept.append(self.kept.pop(i))
                    return made
        return None

    def put(self, key: Hashable, parts: Tensors, made: Made) -> Made:
        """Keep what was made from these tensors, instead of the least recently used result; returns it."""
        if exporting():
            return made
        copies = tuple(None if part is None else part.detach().clone() for part in parts)
        with self._lock:
            self.kept.append((key, copies, made))
            del self.kept[: -self.size]
        return made

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self.kept.clear()

    @staticmethod
    def clear_all() -> None:
        """Forget all results in every cache of this class."""
        for cache in _CACHES:
            cache.clear()


def memoized(size: int) -> Callable[[Callable[..., Made]], _lru_cache_wrapper[Made]]:
    """Decorator: keep the last ``size`` results of a function of plain arguments."""

    def decorate(function: Callable[..., Made]) -> _lru_cache_wrapper[Made]:
        wrapper = lru_cache(maxsize=size)(function)
        on_reset(wrapper.cache_clear)
        return wrapper

    return decorate


def on_reset(forget: Callable[[], None]) -> None:
    """Let :func:`reset` call ``forget``, for what is kept in another way."""
    _RESETS.append(forget)


def reset() -> None:
    """Forget everything that is kept to save time, and free its memory. Results stay the same."""
    Cache.clear_all()
    for forget in _RESETS:
        forget()


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    alike = (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
    return alike and one.equal(other)
