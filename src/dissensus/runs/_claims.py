"""Who runs what: a driver claims a run in the store before it starts it, so that no other driver starts it too.

A claim holds as long as its driver lives. On one Linux machine that is seen at once from the process table. From
another machine a driver is given up when its heartbeat, a counter in its claims, has not moved for ``LEASE`` seconds of
the observer's own clock, so clocks need not agree.
"""

import os
import socket
import sqlite3
import time
from pathlib import Path
from uuid import uuid4

LEASE = 60.0
BEAT = 10.0

SCHEMA = """
CREATE TABLE claims (
  key TEXT PRIMARY KEY, owner TEXT NOT NULL, place TEXT NOT NULL, pid INTEGER NOT NULL, birth TEXT,
  beat INTEGER NOT NULL
) WITHOUT ROWID
"""

# Owners of this process: a claim under this process's id by any other owner was left behind.
_living: set[str] = set()


def place() -> str:
    """This machine since its last start, and the space of process ids in it (containers have their own)."""
    boot = _read("/proc/sys/kernel/random/boot_id").strip()
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {boot} {space}"


def birth(pid: int) -> str | None:
    """When the process ``pid`` started, in ticks since the machine did; None if it is dead or the system cannot say.

    Ids are used again, so an id alone does not identify a process.
    """
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    return fields[19]


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


class Owner:
    """One driver, and what it has seen of the others. Its methods run inside a transaction of the store."""

    def __init__(self) -> None:
        self.id = uuid4().hex
        self._place = place()
        self._birth = birth(os.getpid())
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        _living.add(self.id)

    def claim(self, connection: sqlite3.Connection, key: str) -> bool:
        """Take the run ``key`` unless a living driver has it."""
        held = connection.execute("SELECT owner, place, pid, birth, beat FROM claims WHERE key = ?", (key,)).fetchone()
        if held is not None and self._lives(key, *held):
            return False
        connection.execute(
            "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, 0)",
            (key, self.id, self._place, os.getpid(), self._birth),
        )
        return True

    def beat(self, connection: sqlite3.Connection) -> None:
        """Move this driver's heartbeat on."""
        connection.execute("UPDATE claims SET beat = beat + 1 WHERE owner = ?", (self.id,))

    def release(self, connection: sqlite3.Connection) -> None:
        """Give back what is still claimed."""
        connection.execute("DELETE FROM claims WHERE owner = ?", (self.id,))

    def retire(self) -> None:
        """This driver has ended, even if its claims could not be given back."""
        _living.discard(self.id)

    def _lives(self, key: str, owner: str, where: str, pid: int, born: str | None, beat: int) -> bool:
        if where == self._place and pid == os.getpid() and born == self._birth:
            return owner in _living
        if where == self._place and born is not None:
            return birth(pid) == born
        now = time.monotonic()
        before, since = self._seen.get((key, owner), (None, now))
        if before != beat:
            since = now
        self._seen[key, owner] = beat, since
        return now - since < LEASE
