"""The store of finished runs: an SQLite file that several processes can write, and that survives kills and full disks.

It uses SQLite's rollback journal. A write-ahead log, the usual choice for several writers, needs shared memory (which
network filesystems lack), consists of several files, and cannot be read on a full disk. With ``synchronous = EXTRA`` a
stored run survives a power failure.
"""

import json
import os
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from dissensus.errors import DissensusError, InputError, one_of, unknown
from dissensus.runs import _claims
from dissensus.runs._config import ABSENT, RunConfig, canonical, checked, leaves, lookup, plain, plain_key

VERSION = 1
_APPLICATION = 0x64697373  # "diss": distinguishes a store from other SQLite files
_TIMEOUT = 60.0
STATUSES = ("done", "failed")

_SCHEMA = """
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, target TEXT NOT NULL, status TEXT NOT NULL, config TEXT NOT NULL,
  result TEXT, error TEXT, traceback TEXT, seconds REAL NOT NULL, started TEXT NOT NULL, finished TEXT NOT NULL,
  provenance TEXT NOT NULL, checksum INTEGER NOT NULL
)
"""
_COLUMNS = "key, target, status, config, result, error, traceback, seconds, started, finished, provenance, checksum"
_CONFIG = 3
_HEADER = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version
"""


@dataclass(frozen=True)
class Record:
    """One finished run.

    ``status`` is ``"done"`` (then ``result`` is what the target returned) or ``"failed"`` (then ``error`` is a message
    of one line and ``traceback`` the full traceback). ``started`` and ``finished`` are ISO 8601 times in UTC;
    ``provenance`` has the machine, the versions and the number of threads of the run.
    """

    key: str
    target: str
    status: str
    config: RunConfig
    result: dict[str, Any] | None
    error: str | None
    traceback: str | None
    seconds: float
    started: str
    finished: str
    provenance: dict[str, Any]


class StoreError(DissensusError, RuntimeError):
    """The store cannot be read or written; the message says what to do.

    ``unsaved`` has the records of finished runs that could not be written, so that their results are not lost.
    """

    def __init__(self, message: str, unsaved: tuple[Record, ...] = ()) -> None:
        super().__init__(message)
        self.unsaved = unsaved


class Store:
    """Finished runs in the SQLite file ``path``, which is created if it does not exist (unless ``create`` is False).

    Several processes can use the same file, and several threads the same ``Store``. The file is checked when it is
    opened: one that is damaged, of another kind or of another version raises :class:`StoreError` and is not changed.
    The path ``":memory:"`` is a store in memory. Use a store as a context manager, or call :meth:`close`.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path = os.fspath(path)
        if self.path != ":memory:":
            if not create and not Path(self.path).is_file():
                raise InputError(f"{self.path}: there is no store of runs here: give the file of an earlier --store")
            if Path(self.path).is_dir():
                raise InputError(
                    f"{self.path}: a store is a file, but this is a directory: give the path of a file in it"
                )
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        with self._errors():
            self._connection = sqlite3.connect(
                self.path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False
            )
        try:
            self._check()
        except BaseException:
            self._connection.close()
            raise

    def __repr__(self) -> str:
        return f"Store({self.path!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Stored runs are already on disk."""
        with self._lock:
            self._connection.close()

    def __len__(self) -> int:
        return int(self._rows("SELECT count(*) FROM runs")[0][0])

    def get(self, key: str) -> Record | None:
        """The finished run with this :func:`key`, or None."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM runs WHERE key = ?", key)
        return _record(self._intact(rows[0])) if rows else None

    def put(self, record: Record) -> None:
        """Write a finished run to disk. An earlier record of it is replaced if it failed, and kept if it is done."""
        row = _row(record)
        marks = ", ".join("?" * len(row))
        names = [name.strip() for name in _COLUMNS.split(",")]
        update = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        with self._transaction() as connection:
            connection.execute(
                f"INSERT INTO runs ({_COLUMNS}) VALUES ({marks}) "
                f"ON CONFLICT (key) DO UPDATE SET {update} WHERE runs.status = 'failed'",
                row,
            )
            connection.execute("DELETE FROM claims WHERE key = ?", (record.key,))

    def missing(self, configs: Iterable[Mapping[str, Any]], *, retry_failed: bool = False) -> list[RunConfig]:
        """The ``configs`` without a finished run, each once; with ``retry_failed`` also those whose run failed."""
        stored = {
            stored_key
            for stored_key, (_, status, _) in self._index().items()
            if not (retry_failed and status == "failed")
        }
        wanted = {plain_key(config): config for config in map(checked, configs)}
        return [config for wanted_key, config in wanted.items() if wanted_key not in stored]

    def query(self, where: Mapping[str, Any] | None = None, status: str | None = None) -> list[Record]:
        """The finished runs whose configuration has the given values at the given dotted paths, oldest first.

        >>> with Store(":memory:") as store:
        ...     store.query({"model.name": "bimp", "split": 3}, status="done")
        []
        """
        if status is not None:
            one_of("status", status, STATUSES)
        wanted = {path: canonical(plain(value, path)) for path, value in (where or {}).items()}
        sql = f"SELECT {_COLUMNS} FROM runs WHERE ? IN (status, 'any') ORDER BY id"
        rows = [self._intact(row) for row in self._rows(sql, status or "any")]
        if not wanted:
            return [_record(row) for row in rows]
        configs = [json.loads(row[_CONFIG]) for row in rows]
        found = [
            _record(row)
            for row, config in zip(rows, configs, strict=True)
            if all(_has_value(config, *pair) for pair in wanted.items())
        ]
        if configs and not found:
            for path in wanted:
                if all(lookup(config, path) is ABSENT for config in configs):
                    raise unknown(
                        "configuration key", path, sorted({p for config in configs for p, _ in leaves(config)})
                    )
        return found

    @classmethod
    def recover(cls, damaged: str | os.PathLike[str], path: str | os.PathLike[str]) -> int:
        """Copy every intact run of a ``damaged`` store to a new store at ``path``; returns how many.

        The damaged file is not changed. A run is intact if its checksum matches.
        """
        source, target = Path(damaged), Path(path)
        if not source.is_file():
            raise InputError(f"{source}: there is no file to recover")
        if target.exists():
            raise InputError(f"{target}: this exists already; give the path of a new file")
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.db"
            shutil.copyfile(source, copy)
            # SQLite finds the journal of an unfinished write by the name of the database.
            journal = Path(f"{source}-journal")
            if journal.is_file():
                shutil.copyfile(journal, f"{copy}-journal")
            with closing(sqlite3.connect(copy)) as connection:
                records = list(_intact_records(connection, copy.stat().st_size))
        if not records:
            raise StoreError(f"{source}: no run in it can be read; restore the file from a backup, or run again")
        with cls(target) as store, store._transaction():
            for record in records:
                store.put(record)
        return len(records)

    def _check(self) -> None:
        with self._errors():
            self._connection.execute("PRAGMA synchronous = EXTRA")
            # In one statement, a store that another process is just creating is either empty or complete.
            application, version, tables = self._connection.execute(_HEADER).fetchone()
            if (application, version, tables) == (0, 0, 0):
                self._create()
                return
            if application != _APPLICATION:
                raise StoreError(f"{self.path}: an SQLite file, but not a store of runs; give another path")
            if version != VERSION:
                raise StoreError(
                    f"{self.path}: written with version {version} of the store, and this package reads version "
                    f"{VERSION}; open it with the package that wrote it, or give another path"
                )
            report = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if report != "ok":
            raise self._damaged(report.splitlines()[-1])

    def _create(self) -> None:
        with self._transaction() as connection:
            # Another process may have made the tables since they were looked for.
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                connection.execute(_SCHEMA)
                connection.execute(_claims.SCHEMA)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in the block or nothing; a block inside a block belongs to the outer one."""
        with self._lock, self._errors():
            inside = self._connection.in_transaction
            if inside:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # After some errors, such as a full disk, SQLite has already rolled back.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, self._errors():
            return self._connection.execute(sql, values).fetchall()

    def _index(self) -> dict[str, tuple[str, str, str]]:
        """key -> (target, status, finished) of every stored run."""
        return {row[0]: row[1:] for row in self._rows("SELECT key, target, status, finished FROM runs")}

    def _intact(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if not _is_intact(row):
            raise self._damaged(f"the run {row[0]} does not match its checksum")
        return row

    def _damaged(self, finding: str) -> StoreError:
        return StoreError(
            f"{self.path}: this store is damaged ({finding}). It is left as it is; copy what is intact with: "
            f"dissensus runs {self.path} --recover NEW.db"
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error
        except UnicodeDecodeError as error:  # SQLite's message quotes bytes of the file that may not be text
            raise self._damaged(str(error)) from error

    def _explain(self, error: sqlite3.Error) -> StoreError:
        code = getattr(error, "sqlite_errorcode", None)
        match code and code & 0xFF:
            case sqlite3.SQLITE_FULL:
                text = "the disk is full. What was stored before is safe; make room and start the same command again"
            case sqlite3.SQLITE_IOERR:
                text = (
                    f"reading or writing failed ({error}): the disk is full, over quota or failing. "
                    "Make room or give another path, and start the same command again"
                )
            case sqlite3.SQLITE_NOTADB:
                text = (
                    "this file is not a store of runs (not even an SQLite file); it is left as it is, give another path"
                )
            case sqlite3.SQLITE_CORRUPT:
                return self._damaged(str(error))
            case sqlite3.SQLITE_BUSY:
                text = f"another process has kept the store locked for {_TIMEOUT:.0f} s; end it, or try again later"
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                text = f"{error}; check the permissions of the file and its directory, or copy it to one of your own"
            case _ if "decode" in str(error):
                return self._damaged(str(error))
            case _:
                text = str(error)
        return StoreError(f"{self.path}: {text}")


def _row(record: Record) -> tuple[Any, ...]:
    values = tuple(_sql_value(getattr(record, field.name)) for field in fields(record))
    return (*values, _checksum(values))


def _sql_value(entry: Any) -> Any:
    if isinstance(entry, dict):
        return json.dumps(entry, separators=(",", ":"))
    # A message can quote text that is not valid Unicode, which SQLite does not accept.
    return entry.encode(errors="backslashreplace").decode() if isinstance(entry, str) else entry


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32("\0".join(map(str, values)).encode())


def _is_intact(row: tuple[Any, ...]) -> bool:
    return bool(_checksum(row[:-1]) == row[-1])


def _record(row: tuple[Any, ...]) -> Record:
    key, target, status, config, result, error, traceback, seconds, started, finished, provenance = row[:-1]
    return Record(
        key,
        target,
        status,
        json.loads(config),
        None if result is None else json.loads(result),
        error,
        traceback,
        seconds,
        started,
        finished,
        json.loads(provenance),
    )


def _has_value(config: RunConfig, path: str, wanted: str) -> bool:
    entry = lookup(config, path)
    return entry is not ABSENT and canonical(entry) == wanted


def _intact_records(connection: sqlite3.Connection, size: int) -> Iterator[Record]:
    try:
        # With this, SQLite opens a file that is shorter than its header says.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("SELECT 1 FROM runs LIMIT 0")
    except sqlite3.Error:
        return
    # One query per row, so that a damaged page only costs the rows on it. A row is longer than the 64 bytes of its key,
    # and ids have no gaps, so no id is above size / 64.
    for number in range(1, size // 64 + 1):
        try:
            row = connection.execute(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (number,)).fetchone()
        except sqlite3.Error:
            continue
        if row and _is_intact(row):
            yield _record(row)
