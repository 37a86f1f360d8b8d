"""A grid of runs -> an executor -> a store that survives a kill.

A run is a configuration (a JSON-able dictionary) and a target, the ``"module:function"`` that makes a result from it.
It is known by the hash of its configuration, so a grid can be started again at any time and makes only what is
missing::

    from dissensus import runs

    configs = runs.grid({"dataset": "cora", "model": {"name": "bimp"}}, {"split": range(1, 101), "seed": [1, 2, 3]})
    summary = runs.execute(configs, "package.module:function", store="runs.db", executor="processes")
    runs.aggregate(summary.records, "test", by=["model.name"])
"""

from dissensus.runs._config import grid, key
from dissensus.runs._execute import EXECUTORS, Summary, execute
from dissensus.runs._store import Record, Store, StoreError
from dissensus.runs._table import aggregate, export

__all__ = ["EXECUTORS", "Record", "Store", "StoreError", "Summary", "aggregate", "execute", "export", "grid", "key"]
