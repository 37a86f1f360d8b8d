"""The driver: makes the runs of a grid that are missing, each once, and stores every one as soon as it has finished."""

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
from dissensus.runs._call import Target, import_target, lost, now
from dissensus.runs._config import RunConfig, checked, plain_key
from dissensus.runs._pools import Inline, Lost, Pool
from dissensus.runs._processes import Processes
from dissensus.runs._ray import Ray
from dissensus.runs._store import Record, Store, StoreError

EXECUTORS = ("inline", "processes", "ray")
_POLL = 0.25


@dataclass(frozen=True)
class Summary:
    """What :func:`execute` did.

    ``records`` are in the order of the configurations; ``here`` were made by this call, ``found`` were in the store
    before, ``elsewhere`` were made by another driver meanwhile; ``failed`` of all of them have failed.
    """

    records: list[Record]
    here: int
    found: int
    elsewhere: int
    failed: int
    seconds: float

    def __str__(self) -> str:
        elsewhere = f", {self.elsewhere} made by another driver" if self.elsewhere else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"{len(self.records)} runs: {self.here} made, {self.found} found{elsewhere}{failed}, {self.seconds:.1f} s"
        )


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
    """Make every run of ``configs`` that ``store`` does not hold yet, and return all of them.

    Each finished run is stored at once, so after a kill, a power loss or a full disk the same call makes only what is
    missing. Several drivers may share a store: a run is claimed before it starts, a driver waits for the runs that
    another one is making, and takes them over if that one dies.

    Args:
        configs: the configurations (JSON-able dictionaries); equal ones are run once.
        target: ``"module:function"``; called as ``function(config)``, returns a JSON-able dictionary.
        store: a :class:`Store`, the path of one, or None for results that are only returned.
        executor: ``"inline"`` in this process, ``"processes"`` in worker processes, ``"ray"`` on a Ray cluster.
        workers: how many runs at a time; by default one a core, or as many as the Ray cluster takes.
        threads: threads of one run; by default cores // workers for processes, 1 on Ray, as it is inline.
        address: of a running Ray cluster, ``"host:port"``; without it Ray is started on this machine.
        on_result: called in this process with each run that finishes during the call, here or by another driver.
        retry_failed: make the runs again that are stored as failed.
        function: called in place of the target by the executor ``"inline"``, such as one that shows progress.

    A run that raises is stored as failed and does not stop the others. A run whose worker dies is started once more
    (on Ray, where nodes come and go, three times), then counts as failed. When the store cannot be written, no new run
    starts, those under way are awaited and tried again to store, and a :class:`StoreError` carries those that could not
    be. An interrupt ends the runs under way and keeps the finished ones.
    """
    begun = time.monotonic()
    one_of("executor", executor, EXECUTORS)
    _at_least_one(workers=workers, threads=threads)
    if address is not None and executor != "ray":
        raise InputError(f"an address is for the executor 'ray', not {executor!r}")
    if function is not None and executor != "inline":
        raise InputError("a function of this process is for the executor 'inline': leave it out")
    if workers not in (None, 1) and executor == "inline":
        raise InputError("the executor 'inline' makes one run at a time; for workers use 'processes' or 'ray'")
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
        seconds=time.monotonic() - begun,
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
    """The cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Driver:
    """One call of :func:`execute`: the queue of runs, the claims, and the policy for what goes wrong."""

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
        self.trouble: StoreError | None = None
        index = store._index()
        for stored_target in {index[wanted][0] for wanted in configs if wanted in index} - {target}:
            raise InputError(
                f"{store.path}: some of these configurations have been run with the target {stored_target!r}; "
                f"use another store for {target!r}"
            )
        # A failed run is superseded only by the time it finished: if another driver retries it first, that one counts.
        self.superseded = {
            wanted: index[wanted][2]
            for wanted in configs
            if retry_failed and wanted in index and index[wanted][1] == "failed"
        }
        self.pending = deque(wanted for wanted in configs if wanted not in index or wanted in self.superseded)

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
            while self.pending and not self.trouble and pool.free():
                self._start(self.pending.popleft(), pool, owner, taken)
            if self.trouble and not pool.active:
                break
            if pool.active:
                ended = pool.next(_POLL)
                if ended is not None:
                    self._end(*ended, pool)
                    continue
            else:
                time.sleep(_POLL)
            # Whatever other drivers had a moment ago may be finished, or theirs no longer.
            self.pending.extend(taken)
            taken.clear()
        self._report_trouble()

    def _start(self, wanted: str, pool: Pool, owner: _claims.Owner, taken: list[str]) -> None:
        try:
            state = self._claim(wanted, owner)
        except StoreError as error:
            self.trouble = error
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
            if row is not None and row[0] != self.superseded.get(wanted):
                return "finished"
            return "claimed" if owner.claim(connection, wanted) else "taken"

    def _end(self, wanted: str, outcome: dict[str, Any] | Lost, pool: Pool) -> None:
        if isinstance(outcome, Lost):
            if self.attempts[wanted] < pool.attempts and not self.trouble:
                self.attempts[wanted] += 1
                pool.submit(wanted, self.configs[wanted])
                return
            tried = f", {self.attempts[wanted]} times in a row" if self.attempts[wanted] > 1 else ""
            outcome = lost(outcome.cause + tried, self.started[wanted])
        record = Record(key=wanted, target=self.target, config=self.configs[wanted], **outcome)
        try:
            self._save(record)
        except StoreError as error:
            self.trouble = error
            self.unsaved.append(record)

    def _save(self, record: Record) -> None:
        self.store.put(record)
        self.count["here"] += 1
        self.on_result(record)

    def _report_trouble(self) -> None:
        if self.trouble is None:
            return
        # Room may have been made while the last runs were awaited.
        while self.unsaved:
            try:
                self._save(self.unsaved[0])
            except StoreError:
                break
            self.unsaved.pop(0)
        unsaved = tuple(self.unsaved)
        note = f" ({len(unsaved)} finished runs could not be stored and will be made again)" if unsaved else ""
        raise StoreError(f"{self.trouble}{note}", unsaved) from self.trouble

    def _release(self, owner: _claims.Owner) -> None:
        try:
            with self.store._transaction() as connection:
                owner.release(connection)
        except StoreError:
            # The claims fall with this process in any case; whatever went wrong before is the error to show.
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
                # A missed beat is no reason to end a run; the next one may succeed.
                continue

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
