"""Caches: of results by the content of tensors, and of functions by plain arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import _lru_cache_wrapper, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from dissensus.runtime._export import exporting

if TYPE_CHECKING:
    from torch import Tensor

Cached = TypeVar("Cached")
# None stands for edge weights that are not given.
Tensors = tuple["Tensor | None", ...]

_CACHES: list[Cache] = []
_RESETS: list[Callable[[], None]] = []


class Cache(Generic[Cached]):
    """The ``size`` most recently used results, found by a key and by the whole content of the input tensors.

    So a graph that was changed in place is found to be another graph. While a model is exported, the cache is not used.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: list[tuple[Hashable, Tensors, Cached]] = []  # the most recently used one at the end
        self._lock = Lock()
        _CACHES.append(self)

    def get(self, key: Hashable, tensors: Tensors) -> Cached | None:
        """The cached result for these tensors, or None."""
        if exporting():
            return None
        with self._lock:
            for i, (known_key, known_tensors, value) in enumerate(self.entries):
                if known_key == key and all(map(_same, known_tensors, tensors)):
                    self.entries.append(self.entries.pop(i))
                    return value
        return None

    def put(self, key: Hashable, tensors: Tensors, value: Cached) -> Cached:
        """Store the result for these tensors and return it. The least recently used result is dropped if necessary."""
        if exporting():
            return value
        copies = tuple(None if tensor is None else tensor.detach().clone() for tensor in tensors)
        with self._lock:
            self.entries.append((key, copies, value))
            del self.entries[: -self.size]
        return value

    def clear(self) -> None:
        """Remove all results."""
        with self._lock:
            self.entries.clear()

    @staticmethod
    def clear_all() -> None:
        """Remove all results from all caches of this class."""
        for cache in _CACHES:
            cache.clear()


def memoized(size: int) -> Callable[[Callable[..., Cached]], _lru_cache_wrapper[Cached]]:
    """Decorator like ``functools.lru_cache(maxsize=size)``, which :func:`reset` clears."""

    def decorate(function: Callable[..., Cached]) -> _lru_cache_wrapper[Cached]:
        wrapper = lru_cache(maxsize=size)(function)
        on_reset(wrapper.cache_clear)
        return wrapper

    return decorate


def on_reset(clear: Callable[[], None]) -> None:
    """Register a function that clears a cache of another kind; :func:`reset` calls it."""
    _RESETS.append(clear)


def reset() -> None:
    """Clear all caches and free their memory. Results do not depend on them."""
    Cache.clear_all()
    for clear in _RESETS:
        clear()


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    alike = (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
    return alike and one.equal(other)
