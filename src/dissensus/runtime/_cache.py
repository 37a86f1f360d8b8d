"""Results found again by the content of the tensors that they were made from."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

import torch
from torch import Tensor

from dissensus.runtime._export import exporting

Made = TypeVar("Made")
# None stands for edge weights that were not given.
Parts = tuple[Tensor | None, ...]

_CACHES: list[Cache] = []


class Cache(Generic[Made]):
    """The last ``size`` things made, by a key and by the whole content of the tensors that they were made from: a graph
    that changed, in place or not, is another one. While a model is exported nothing is found or kept."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.kept: list[tuple[Hashable, Parts, Made]] = []  # the one used last at the end
        self._lock = Lock()
        _CACHES.append(self)

    def get(self, key: Hashable, parts: Parts) -> Made | None:
        """What was made from these tensors, or None."""
        if exporting():
            return None
        with self._lock:
            for i, (known, tensors, made) in enumerate(self.kept):
                if known == key and all(map(_same, tensors, parts)):
                    self.kept.append(self.kept.pop(i))
                    return made
        return None

    def put(self, key: Hashable, parts: Parts, made: Made) -> Made:
        """Keep what was made from these tensors, in place of what was not used for longest; returns it."""
        if exporting():
            return made
        copies = tuple(None if part is None else part.detach().clone() for part in parts)
        with self._lock:
            self.kept.append((key, copies, made))
            del self.kept[: -self.size]
        return made

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self.kept.clear()

    @staticmethod
    def clear_all() -> None:
        """Forget all, in every cache."""
        for cache in _CACHES:
            cache.clear()


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    alike = (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
    return alike and torch.equal(one, other)
