"""Runs on a Ray cluster."""

import io
import os
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, TextIO

from dissensus.errors import DissensusError
from dissensus.ray_cluster import connect, import_ray
from dissensus.runs._call import Outcome, call
from dissensus.runs._config import RunConfig
from dissensus.runs._pools import Finished, WorkerDied


class Ray:
    """Tasks on a Ray cluster: the one at ``address``, the one this process is connected to, or a new local one."""

    attempts = 4

    def __init__(self, target: str, workers: int | None, threads: int, address: str | None) -> None:
        # The variable under which Ray itself looks for its cluster.
        address = address or os.environ.get("RAY_ADDRESS")
        self._ray = ray = import_ray(address)
        self._target, self._workers, self._threads = target, workers, threads
        self._connected = not ray.is_initialized()
        if self._connected:
            connect(ray, address, None if workers is None else workers * threads)
            sys.stdout = _QuietStdout(sys.stdout)
        # The driver decides about retries, as for every pool.
        self._call: Callable[..., Any] = ray.remote(num_cpus=threads, max_retries=0)(_call_on_node).remote
        self._tasks: dict[Any, str] = {}

    @property
    def active(self) -> int:
        return len(self._tasks)

    def free(self) -> bool:
        # Not cached, because nodes can join and leave the cluster.
        cores = self._ray.cluster_resources().get("CPU", 0)
        slots = max(1, int(cores // self._threads))
        return len(self._tasks) < min(slots, self._workers or slots)

    def submit(self, key: str, config: RunConfig) -> None:
        self._tasks[self._call(sys.path, self._target, config, self._threads)] = key

    def next(self, timeout: float) -> Finished | None:
        ended, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=timeout)
        if not ended:
            return None
        key = self._tasks.pop(ended[0])
        errors = self._ray.exceptions
        try:
            return key, self._ray.get(ended[0])
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
            errors.LocalRayletDiedError,
        ) as error:
            return key, WorkerDied(f"the Ray worker died ({type(error).__name__})")
        except errors.RayError as error:
            last = str(error).strip().splitlines()[-1]
            raise DissensusError(f"Ray cannot execute the runs ({last}): install the package on every node") from error

    def close(self) -> None:
        if self._connected:
            with redirect_stdout(sys.stderr):
                self._ray.shutdown()
            if isinstance(sys.stdout, _QuietStdout):
                sys.stdout = sys.stdout.stream
        else:
            for task in self._tasks:
                self._ray.cancel(task, force=True)
        self._tasks.clear()


class _QuietStdout(io.TextIOBase):
    """Standard output, except that messages of Ray's threads go to standard error.

    A command may print a JSON object on standard output, where nothing else may appear.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        ray = threading.current_thread().name.startswith("ray_")
        return (sys.stderr if ray else self.stream).write(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()


def _call_on_node(path: list[str], target: str, config: RunConfig, threads: int) -> Outcome:
    # A node that shares the driver's files finds modules in the same folders. What is installed on it comes first.
    sys.path.extend(entry for entry in path if entry not in sys.path)
    return call(target, config, threads)
