"""Search for settings on Ray Tune, by mean validation accuracy over several splits; test nodes are never looked at.

>>> from dissensus import train, tune
>>> base = train.resolve("cora", "bimp")
>>> found = tune.search(base, tune.read_space("bimp"), trials=20, splits=[1, 2, 3])  # doctest: +SKIP
>>> found.best.settings  # doctest: +SKIP
"""

from dissensus.tune._search import SCHEDULERS, SEARCHES, Outcome, Trial, search
from dissensus.tune._space import Domain, Space, read_space

__all__ = ["SCHEDULERS", "SEARCHES", "Domain", "Outcome", "Space", "Trial", "read_space", "search"]
