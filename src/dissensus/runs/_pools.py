"""Where runs are made: the interface that all executors have, and the simplest of them."""

from dataclasses import dataclass
from typing import Protocol

from dissensus.runs._call import Outcome, Target, call
from dissensus.runs._config import RunConfig


@dataclass(frozen=True)
class Lost:
    """The worker of a run died before the run ended."""

    cause: str


Finished = tuple[str, Outcome | Lost]


class Pool(Protocol):
    """Runs up to some number of configurations at a time.

    ``attempts`` is how often a run is started before the death of its worker counts as its failure; ``active`` how many
    have been submitted and not yet returned by ``next``.
    """

    attempts: int

    @property
    def active(self) -> int: ...

    def free(self) -> bool:
        """Whether one more run can start now."""
        ...

    def submit(self, key: str, config: RunConfig) -> None: ...

    def next(self, timeout: float) -> Finished | None:
        """A run that has ended, or None if none has after ``timeout`` seconds."""
        ...

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        ...


class Inline:
    """One run at a time, in this process."""

    attempts = 1

    def __init__(self, target: str | Target, threads: int | None) -> None:
        self._target, self._threads = target, threads
        self._task: tuple[str, RunConfig] | None = None

    @property
    def active(self) -> int:
        return int(self._task is not None)

    def free(self) -> bool:
        return self._task is None

    def submit(self, key: str, config: RunConfig) -> None:
        self._task = key, config

    def next(self, timeout: float) -> Finished | None:
        if self._task is None:
            return None
        (key, config), self._task = self._task, None
        return key, call(self._target, config, self._threads)

    def close(self) -> None:
        self._task = None
