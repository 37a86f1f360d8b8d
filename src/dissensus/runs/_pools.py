"""Where runs are made: in this process, in worker processes, on a Ray cluster. One small interface for all three."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from dissensus.errors import DissensusError, InputError, missing_extra
from dissensus.runs._call import Outcome, call
from dissensus.runs._config import Config


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

    def submit(self, key: str, config: Config) -> None: ...

    def next(self, timeout: float) -> Finished | None:
        """A run that has ended, or None if none has after ``timeout`` seconds."""
        ...

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        ...


class Inline:
    """One run at a time, in this process."""

    attempts = 1

    def __init__(self, target: str, threads: int | None) -> None:
        self._target, self._threads = target, threads
        self._task: tuple[str, Config] | None = None

    @property
    def active(self) -> int:
        return int(self._task is not None)

    def free(self) -> bool:
        return self._task is None

    def submit(self, key: str, config: Config) -> None:
        self._task = key, config

    def next(self, timeout: float) -> Finished | None:
        if self._task is None:
            return None
        (key, config), self._task = self._task, None
        return key, call(self._target, config, self._threads)

    def close(self) -> None:
        self._task = None


class Processes:
    """Worker processes on this machine, started when first needed. A worker that dies is replaced by a new one."""

    attempts = 2

    def __init__(self, target: str, workers: int, threads: int) -> None:
        self._target, self._workers, self._threads = target, workers, threads
        self._tasks: SimpleQueue[tuple[str, Config] | None] = SimpleQueue()
        self._ended: SimpleQueue[Finished | Exception] = SimpleQueue()
        self._keepers: list[threading.Thread] = []
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.active = 0

    def free(self) -> bool:
        return self.active < self._workers

    def submit(self, key: str, config: Config) -> None:
        self.active += 1
        if len(self._keepers) < self.active:
            self._keepers.append(threading.Thread(target=self._keep, daemon=True))
            self._keepers[-1].start()
        self._tasks.put((key, config))

    def next(self, timeout: float) -> Finished | None:
        try:
            ended = self._ended.get(timeout=timeout)
        except Empty:
            return None
        self.active -= 1
        if isinstance(ended, Exception):
            raise ended
        return ended

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for worker in self._running:
                worker.kill()
        for _ in self._keepers:
            self._tasks.put(None)
        for keeper in self._keepers:
            keeper.join()

    def _keep(self) -> None:
        """Feed one worker with tasks; runs in a thread of its own."""
        worker: subprocess.Popen[str] | None = None
        while (task := self._tasks.get()) is not None and not self._closed:
            key, config = task
            try:
                worker = worker or self._start()
            except (DissensusError, OSError) as error:
                self._ended.put(error)
                continue
            answer = _ask(worker, json.dumps(config))
            if answer:
                self._ended.put((key, json.loads(answer)))
            else:
                self._ended.put((key, Lost(_cause(self._bury(worker)))))
                worker = None
        if worker is not None:
            self._bury(worker)

    def _start(self) -> subprocess.Popen[str]:
        threads = str(self._threads)
        environment = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
        code = (
            "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from dissensus.runs._worker import main; main()"
        )
        command = [sys.executable, "-c", code, json.dumps(sys.path), self._target, threads]
        with self._lock:
            if self._closed:
                raise DissensusError("the pool is closed")
            worker = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=os.environ | environment,
            )
            self._running.add(worker)
        assert worker.stdout is not None
        if not worker.stdout.readline():
            cause = _cause(self._bury(worker))
            raise DissensusError(f"a worker process could not start: {cause}; its own message is above")
        return worker

    def _bury(self, worker: subprocess.Popen[str]) -> int:
        """End the worker if it has not, and free what it held; returns its exit code."""
        with self._lock:
            self._running.discard(worker)
        if worker.stdin is not None and worker.stdout is not None:
            worker.stdout.close()
            with suppress(BrokenPipeError):
                worker.stdin.close()
        return worker.wait()


def _ask(worker: subprocess.Popen[str], line: str) -> str:
    """The worker's answer to one line, empty if it died."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return ""
    answer = worker.stdout.readline()
    return answer if answer.endswith("\n") else ""


def _cause(code: int) -> str:
    if code >= 0:
        return f"the worker process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (perhaps out of memory: try fewer workers)" if -code == getattr(signal, "SIGKILL", 9) else ""
    return f"the worker process was ended by {name}{hint}"


class Ray:
    """Tasks on a Ray cluster: the one at ``address``, the one this process is connected to, or a new local one."""

    attempts = 4

    def __init__(self, target: str, workers: int | None, threads: int, address: str | None) -> None:
        try:
            # Read by Ray when it is imported: no statistics sent, no warning about accelerators of tasks without them.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
            import ray
        except ImportError as error:
            raise missing_extra("ray", "ray") from error
        self._ray = ray
        self._target, self._workers, self._threads = target, workers, threads
        self._connected = not ray.is_initialized()
        if self._connected:
            _connect(ray, address, None if workers is None else workers * threads)
        # Retries are the driver's decision, as for every pool.
        self._call: Callable[..., Any] = ray.remote(num_cpus=threads, max_retries=0)(call).remote
        self._tasks: dict[Any, str] = {}

    @property
    def active(self) -> int:
        return len(self._tasks)

    def free(self) -> bool:
        # Asked anew each time: nodes come and go.
        cores = self._ray.cluster_resources().get("CPU", 0)
        places = max(1, int(cores // self._threads))
        return len(self._tasks) < min(places, self._workers or places)

    def submit(self, key: str, config: Config) -> None:
        self._tasks[self._call(self._target, config, self._threads)] = key

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
            return key, Lost(f"the Ray worker died ({type(error).__name__})")
        except errors.RayError as error:
            last = str(error).strip().splitlines()[-1]
            raise DissensusError(
                f"Ray cannot make the runs: {last}. The package must be installed on every node"
            ) from error

    def close(self) -> None:
        if self._connected:
            self._ray.shutdown()
        else:
            for task in self._tasks:
                self._ray.cancel(task, force=True)
        self._tasks.clear()


def _connect(ray: Any, address: str | None, cores: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is None:
            # Bound to this machine: a cluster for one driver has no business on the network.
            ray.init(num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        elif address.startswith(("127.0.0.1:", "localhost:")):
            ray.init(address=address, _node_ip_address="127.0.0.1", **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"cannot connect to Ray at {address or 'a new local cluster'}: {error}") from error
