"""Search for settings on Ray Tune, by the metric's mean on validation over several splits; test nodes are never used.

>>> from dissensus import train, tune
>>> base = train.resolve("cora", "bimp")
>>> found = tune.search(base, tune.read_space("bimp"), trials=20, splits=[1, 2, 3])  # doctest: +SKIP
>>> found.best.settings  # doctest: +SKIP
"""

from dissensus.tune._search import Trial as Trial
from dissensus.tune._search import search
from dissensus.tune._space import Domain, Space, read_space

__all__ = ["Domain", "Space", "read_space", "search"]
