"""A store with runs in it."""

import pytest

from dissensus.runs import Store
from runs_records import record


@pytest.fixture
def full(tmp_path):
    """A store of 300 runs, several pages long."""
    path = tmp_path / "runs.db"
    with Store(path) as store, store._transaction():
        for x in range(300):
            store.put(record({"x": x, "model": {"name": "bimp"}}, {"test": x / 300, "curve": [x] * 50}))
    return path
