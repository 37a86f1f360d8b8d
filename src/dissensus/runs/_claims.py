"""Claims of runs: a driver claims a run in the store before it starts it, so that no other driver starts it as well.

A claim is valid as long as its driver lives. On the same Linux machine, the process table tells at once whether it
does. A driver on another machine counts as dead when its heartbeat, a counter in its claims, has not changed for
``LEASE`` seconds. The observer measures this time, so the machines' clocks need not agree.
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

# The ids of this process's active owners. Other claims with this process's id are left over.
_active_owners: set[str] = set()


def place() -> str:
    """Identifies this machine since its last boot, and the namespace of process ids (containers have their own)."""
    boot = _read("/proc/sys/kernel/random/boot_id").strip()
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {boot} {namespace}"


def birth(pid: int) -> str | None:
    """When the process ``pid`` started, in clock ticks since boot; None if it is dead or this cannot be found out.

    Ids are reused, so an id alone does not identify a process.
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
    """A driver as the owner of claims. Its methods are called inside a transaction of the store."""

    def __init__(self) -> None:
        self.id = uuid4().hex
        self._place = place()
        self._birth = birth(os.getpid())
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        _active_owners.add(self.id)

    def claim(self, connection: sqlite3.Connection, key: str) -> bool:
        """Claim the run ``key``. Returns False if a driver that is alive has claimed it."""
        held = connection.execute("SELECT owner, place, pid, birth, beat FROM claims WHERE key = ?", (key,)).fetchone()
        if held is not None and self._is_alive(key, *held):
            return False
        connection.execute(
            "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, 0)",
            (key, self.id, self._place, os.getpid(), self._birth),
        )
        return True

    def beat(self, connection: sqlite3.Connection) -> None:
        """Increase this driver's heartbeat."""
        connection.execute("UPDATE claims SET beat = beat + 1 WHERE owner = ?", (self.id,))

    def release(self, connection: sqlite3.Connection) -> None:
        """Delete this driver's remaining claims."""
        connection.execute("DELETE FROM claims WHERE owner = ?", (self.id,))

    def retire(self) -> None:
        """Mark this driver as ended, even if its claims could not be deleted."""
        _active_owners.discard(self.id)

    def _is_alive(self, key: str, owner: str, where: str, pid: int, born: str | None, beat: int) -> bool:
        if where == self._place and pid == os.getpid() and born == self._birth:
            return owner in _active_owners
        if where == self._place and born is not None:
            return birth(pid) == born
        now = time.monotonic()
        before, since = self._seen.get((key, owner), (None, now))
        if before != beat:
            since = now
        self._seen[key, owner] = beat, since
        return now - since < LEASE
