"""Grids of runs, executed in this process, in worker processes or on a Ray cluster, with results kept in a store.

``repeat(config, splits=..., seeds=...)`` trains one configuration several times. In general, a run consists of a
configuration (a JSON-able dictionary) and a target (a ``"module:function"`` that computes its result). Runs are
identified by the hash of their configuration, so an interrupted grid can be started again and only executes the runs
that are missing::

    from dissensus import runs

    configs = runs.grid({"dataset": "cora", "model": {"name": "bimp"}}, {"split": range(1, 101), "seed": [1, 2, 3]})
    summary = runs.execute(configs, "package.module:function", store="runs.db", executor="processes")
    runs.aggregate(summary.records, "test", by=["model.name"])
"""

from dissensus.runs._config import RunConfig as RunConfig
from dissensus.runs._config import grid
from dissensus.runs._config import key as key
from dissensus.runs._execute import Summary as Summary
from dissensus.runs._execute import execute
from dissensus.runs._repeat import Attempt as Attempt
from dissensus.runs._repeat import Repeats as Repeats
from dissensus.runs._repeat import repeat
from dissensus.runs._store import Record, Store
from dissensus.runs._store import StoreError as StoreError
from dissensus.runs._table import aggregate, export
from dissensus.runs._table import as_table as as_table
from dissensus.runs._table import flat as flat
from dissensus.runs._table import listing as listing

__all__ = ["Record", "Store", "aggregate", "execute", "export", "grid", "repeat"]
