"""Caches and settings that concern the whole process.

* :func:`reset`: clear all caches: checked graphs and features, rewired graphs, filled-in features, the last two
  datasets, and weights of solver steps. Results do not depend on it.
* :func:`scope`: set the number of threads and environment variables inside a ``with`` block.
* :func:`training`: settings that make training faster, inside a ``with`` block.

Importing the package, building a model or calling one changes no setting of the process. Only these things last until
the process ends: registered models (see :func:`dissensus.nn.register`), imported files with models of your own, and, if
Ray is used, environment variables ``RAY_*``.

>>> from dissensus import runtime
>>> import torch
>>> before = torch.get_num_threads()
>>> with runtime.scope(threads=1):
...     torch.get_num_threads()
1
>>> torch.get_num_threads() == before
True
"""

from dissensus.runtime._cache import Cache as Cache
from dissensus.runtime._cache import memoized as memoized
from dissensus.runtime._cache import on_reset as on_reset
from dissensus.runtime._cache import reset
from dissensus.runtime._export import exporting as exporting
from dissensus.runtime._scope import scope
from dissensus.runtime._training import training

__all__ = ["reset", "scope", "training"]
