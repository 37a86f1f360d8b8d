"""The interface of all executors, and the simplest one."""

from dataclasses import dataclass
from typing import Protocol

from dissensus.runs._call import Outcome, Target, call
from dissensus.runs._config import RunConfig


@dataclass(frozen=True)
class WorkerDied:
    """The worker of a run died before the run ended."""

    cause: str


Finished = tuple[str, Outcome | WorkerDied]


class Pool(Protocol):
    """Executes a limited number of runs at a time.

    ``attempts`` is the number of times that a run is started before it counts as failed because its worker died;
    ``active`` is the number of runs that have been submitted, but not yet returned by ``next``.
    """

    attempts: int

    @property
    def active(self) -> int: ...

    def free(self) -> bool:
        """Whether another run can start now."""
        ...

    def submit(self, key: str, config: RunConfig) -> None: ...

    def next(self, timeout: float) -> Finished | None:
        """A run that has ended, or None if none ends within ``timeout`` seconds."""
        ...

    def close(self) -> None:
        """End the workers and their runs."""
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
