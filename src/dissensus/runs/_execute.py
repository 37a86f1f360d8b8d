"""The driver: executes the missing runs of a grid, each once, and stores every run as soon as it has finished."""

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dissensus.errors import InputError, one_of
from dissensus.runs import _claims
from dissensus.runs._call import Target, import_target, now, worker_died
from dissensus.runs._config import RunConfig, checked, plain_key
from dissensus.runs._pools import Inline, Pool, WorkerDied
from dissensus.runs._processes import Processes
from dissensus.runs._ray import Ray
from dissensus.runs._store import Record, Store, StoreError

EXECUTORS = ("inline", "processes", "ray")
_POLL = 0.25


@dataclass(frozen=True)
class Summary:
    """The result of :func:`execute`.

    Attributes:
        records: the runs, in the order of the configurations.
        here: number of runs that this call executed.
        found: number of runs that were already in the store.
        elsewhere: number of runs that another driver executed in the meantime.
        failed: number of failed runs among all.
        seconds: duration of the call.
    """

    records: list[Record]
    here: int
    found: int
    elsewhere: int
    failed: int
    seconds: float

    def __str__(self) -> str:
        elsewhere = f", {self.elsewhere} executed by another driver" if self.elsewhere else ""
        failed = f", {self.failed} failed" if self.failed else ""
        counts = f"{self.here} executed, {self.found} found{elsewhere}{failed}"
        return f"{len(self.records)} runs: {counts}, {self.seconds:.1f} s"


def execute(
    configs: Iterable[Mapping[str, Any]],
    target: str,
    *,
    store: Store | str | os.PathLike[str] | None = None,
    executor: str = "inline",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    on_result: Callable[[Record], None] | None = None,
    retry_failed: bool = False,
    function: Target | None = None,
) -> Summary:
    """Execute the runs of ``configs`` that are not in ``store`` yet, and return all of them.

    Each finished run is stored at once, so after a kill, a power failure or a full disk the same call only executes
    what is missing. Several drivers can share a store: a run is claimed before it starts, and a driver waits for runs
    that another one executes and takes them over if that one dies.

    A run that raises an exception is stored as failed and does not stop the others. A run whose worker dies is started
    again once (on Ray, whose nodes can leave the cluster, three times) before it counts as failed. If the store cannot
    be written, no new run starts; when the active ones have finished, they are written again if possible, and a
    :class:`StoreError` is raised that has the unsaved ones. An interrupt ends active runs and keeps finished ones.

    Args:
        configs: the configurations (JSON-able dictionaries); equal ones are executed once.
        target: ``"module:function"``; called as ``function(config)``, returns a JSON-able dictionary.
        store: a :class:`Store`, the path of one, or None for results that are only returned.
        executor: ``"inline"`` in this process, ``"processes"`` in worker processes, ``"ray"`` on a Ray cluster.
        workers: maximum number of simultaneous runs; by default one per core, or as many as fit on the Ray cluster.
        threads: number of threads of each run; by default cores // workers for processes, 1 on Ray, and unchanged
            inline.
        address: address of a running Ray cluster, ``"host:port"``. By default, Ray is started on this machine.
        on_result: called in this process with every run that finishes during the call, here or in another driver.
        retry_failed: execute runs again that are stored as failed.
        function: called instead of the target by the executor ``"inline"``, for example to show progress.
    """
    start_time = time.monotonic()
    one_of("executor", executor, EXECUTORS)
    _at_least_one(workers=workers, threads=threads)
    if address is not None and executor != "ray":
        raise InputError(f"an address is for the executor 'ray', not {executor!r}: leave it out")
    if function is not None and executor != "inline":
        raise InputError("a function of this process is for the executor 'inline': leave it out")
    if workers not in (None, 1) and executor == "inline":
        raise InputError("the executor 'inline' executes one run at a time; for workers use 'processes' or 'ray'")
    plain = [checked(config) for config in configs]
    keys = [plain_key(config) for config in plain]
    with _opened(store) as opened:
        driver = _Driver(opened, dict(zip(keys, plain, strict=True)), target, retry_failed, on_result)
        if driver.pending:
            import_target(target)
            driver.run(lambda: _pool(executor, function or target, workers, threads, address, len(driver.pending)))
        stored = {wanted: opened.get(wanted) for wanted in dict.fromkeys(keys)}
    records = [record for wanted in keys if (record := stored[wanted]) is not None]
    return Summary(
        records=records,
        here=driver.count["here"],
        found=len(set(keys)) - driver.count.total(),
        elsewhere=driver.count["elsewhere"],
        failed=sum(record.status == "failed" for record in records),
        seconds=time.monotonic() - start_time,
    )


def _at_least_one(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise InputError(f"{name} must be at least 1, not {count}")


@contextmanager
def _opened(store: Store | str | os.PathLike[str] | None) -> Iterator[Store]:
    if isinstance(store, Store):
        yield store
    else:
        with Store(":memory:" if store is None else store) as opened:
            yield opened


def _pool(
    executor: str, target: str | Target, workers: int | None, threads: int | None, address: str | None, runs: int
) -> Pool:
    if executor == "inline":
        return Inline(target, threads)
    assert isinstance(target, str)
    if executor == "ray":
        return Ray(target, workers, threads or 1, address)
    cores = cores_here()
    workers = min(workers or cores, runs)
    return Processes(target, workers, threads or max(1, cores // workers))


def cores_here() -> int:
    """The number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Driver:
    """One call of :func:`execute`: the queue of runs, their claims, and the handling of failures."""

    def __init__(
        self,
        store: Store,
        configs: dict[str, RunConfig],
        target: str,
        retry_failed: bool,
        on_result: Callable[[Record], None] | None,
    ) -> None:
        self.store, self.configs, self.target = store, configs, target
        self.on_result = on_result or (lambda record: None)
        self.count: Counter[str] = Counter()
        self.started: dict[str, str] = {}
        self.attempts: Counter[str] = Counter()
        self.unsaved: list[Record] = []
        self.store_error: StoreError | None = None
        index = store._index()
        for stored_target in {index[wanted][0] for wanted in configs if wanted in index} - {target}:
            raise InputError(
                f"{store.path}: some of these configurations have been run with the target {stored_target!r}; "
                f"use another store for {target!r}"
            )
        # Failed runs to execute again, with the time they finished: if another driver has executed one of them again in
        # the meantime, the time in the store is another one, and that record counts.
        self.to_retry = {
            wanted: index[wanted][2]
            for wanted in configs
            if retry_failed and wanted in index and index[wanted][1] == "failed"
        }
        self.pending = deque(wanted for wanted in configs if wanted not in index or wanted in self.to_retry)

    def run(self, make_pool: Callable[[], Pool]) -> None:
        pool = make_pool()
        owner = _claims.Owner()
        try:
            with _heartbeat(self.store, owner):
                self._loop(pool, owner)
        finally:
            pool.close()
            owner.retire()
            self._release(owner)

    def _loop(self, pool: Pool, owner: _claims.Owner) -> None:
        taken: list[str] = []
        while self.pending or taken or pool.active:
            while self.pending and not self.store_error and pool.free():
                self._start(self.pending.popleft(), pool, owner, taken)
            if self.store_error and not pool.active:
                break
            if pool.active:
                ended = pool.next(_POLL)
                if ended is not None:
                    self._finish(*ended, pool)
                    continue
            else:
                time.sleep(_POLL)
            # Runs that other drivers had claimed may be finished or released by now.
            self.pending.extend(taken)
            taken.clear()
        self._raise_store_error()

    def _start(self, wanted: str, pool: Pool, owner: _claims.Owner, taken: list[str]) -> None:
        try:
            state = self._claim(wanted, owner)
        except StoreError as error:
            self.store_error = error
            self.pending.appendleft(wanted)
            return
        if state == "finished":
            record = self.store.get(wanted)
            assert record is not None
            self.count["elsewhere"] += 1
            self.on_result(record)
        elif state == "taken":
            taken.append(wanted)
        else:
            self.started[wanted] = now()
            self.attempts[wanted] += 1
            pool.submit(wanted, self.configs[wanted])

    def _claim(self, wanted: str, owner: _claims.Owner) -> str:
        with self.store._transaction() as connection:
            row = connection.execute("SELECT finished FROM runs WHERE key = ?", (wanted,)).fetchone()
            if row is not None and row[0] != self.to_retry.get(wanted):
                return "finished"
            return "claimed" if owner.claim(connection, wanted) else "taken"

    def _finish(self, wanted: str, outcome: dict[str, Any] | WorkerDied, pool: Pool) -> None:
        if isinstance(outcome, WorkerDied):
            if self.attempts[wanted] < pool.attempts and not self.store_error:
                self.attempts[wanted] += 1
                pool.submit(wanted, self.configs[wanted])
                return
            tried = f", {self.attempts[wanted]} times in a row" if self.attempts[wanted] > 1 else ""
            outcome = worker_died(outcome.cause + tried, self.started[wanted])
        record = Record(key=wanted, target=self.target, config=self.configs[wanted], **outcome)
        try:
            self._save(record)
        except StoreError as error:
            self.store_error = error
            self.unsaved.append(record)

    def _save(self, record: Record) -> None:
        self.store.put(record)
        self.count["here"] += 1
        self.on_result(record)

    def _raise_store_error(self) -> None:
        if self.store_error is None:
            return
        # The disk may have free space again.
        while self.unsaved:
            try:
                self._save(self.unsaved[0])
            except StoreError:
                break
            self.unsaved.pop(0)
        unsaved = tuple(self.unsaved)
        note = f" ({len(unsaved)} finished runs could not be stored and will be executed again)" if unsaved else ""
        raise StoreError(f"{self.store_error}{note}", unsaved) from self.store_error

    def _release(self, owner: _claims.Owner) -> None:
        try:
            with self.store._transaction() as connection:
                owner.release(connection)
        except StoreError:
            # The claims expire with this process, and an earlier error is the one to report.
            pass


@contextmanager
def _heartbeat(store: Store, owner: _claims.Owner) -> Iterator[None]:
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(_claims.BEAT):
            try:
                with store._transaction() as connection:
                    owner.beat(connection)
            except StoreError:
                # A run need not end because of a missed heartbeat; the next one may succeed.
                continue

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
