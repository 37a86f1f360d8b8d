"""A grid of runs -> an executor -> a store that survives a kill.

``repeat(config, splits=..., seeds=...)`` trains one configuration several times. In general a run is a configuration (a
JSON-able dictionary) and a target, the ``"module:function"`` that makes a result from it. It is known by the hash of
its configuration, so a grid can be started again at any time and makes only what is missing::

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
