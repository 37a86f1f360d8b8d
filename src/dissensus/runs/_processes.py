"""Runs in worker processes on this machine."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue

from dissensus.errors import DissensusError
from dissensus.runs._config import RunConfig
from dissensus.runs._pools import Finished, WorkerDied


class Processes:
    """Worker processes on this machine, each started for its first run. A worker that dies is replaced."""

    attempts = 2

    def __init__(self, target: str, workers: int, threads: int) -> None:
        self._target, self._workers, self._threads = target, workers, threads
        self._tasks: SimpleQueue[tuple[str, RunConfig] | None] = SimpleQueue()
        self._ended: SimpleQueue[Finished | Exception] = SimpleQueue()
        self._feeders: list[threading.Thread] = []
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.active = 0

    def free(self) -> bool:
        return self.active < self._workers

    def submit(self, key: str, config: RunConfig) -> None:
        self.active += 1
        if len(self._feeders) < self.active:
            self._feeders.append(threading.Thread(target=self._feed, daemon=True))
            self._feeders[-1].start()
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
        for _ in self._feeders:
            self._tasks.put(None)
        for feeder in self._feeders:
            feeder.join()

    def _feed(self) -> None:
        """Send tasks to one worker; this is the target of a thread."""
        worker: subprocess.Popen[str] | None = None
        while (task := self._tasks.get()) is not None and not self._closed:
            key, config = task
            try:
                worker = worker or self._start()
            except (DissensusError, OSError) as error:
                self._ended.put(error)
                continue
            response = _request(worker, json.dumps(config))
            if response:
                self._ended.put((key, json.loads(response)))
            else:
                self._ended.put((key, WorkerDied(_exit_cause(self._end(worker)))))
                worker = None
        if worker is not None:
            self._end(worker)

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
            cause = _exit_cause(self._end(worker))
            raise DissensusError(f"a worker process could not start: {cause}; see its message above")
        return worker

    def _end(self, worker: subprocess.Popen[str]) -> int:
        """Close the pipes to a worker, which ends it, and return its exit code."""
        with self._lock:
            self._running.discard(worker)
        if worker.stdin is not None and worker.stdout is not None:
            worker.stdout.close()
            with suppress(BrokenPipeError):
                worker.stdin.close()
        return worker.wait()


def _request(worker: subprocess.Popen[str], line: str) -> str:
    """Send one line to the worker and return its response, which is empty if it died."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return ""
    response = worker.stdout.readline()
    return response if response.endswith("\n") else ""


def _exit_cause(code: int) -> str:
    if code >= 0:
        return f"the worker process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (perhaps out of memory: try fewer workers)" if -code == getattr(signal, "SIGKILL", 9) else ""
    return f"the worker process was ended by {name}{hint}"
