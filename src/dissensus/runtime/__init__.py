"""Everything that the package keeps or changes in a process, in one place, with the ways to undo it.

* :func:`reset`: forget everything that is kept to save time: checked graphs and features, rewired graphs, filled-in
  features, the last two datasets, and weights of solver steps. Results do not depend on it.
* :func:`scope`: number of threads and environment variables, for as long as a ``with`` block lasts.
* :func:`training`: settings that make training faster, for as long as a ``with`` block lasts.

Importing the package, building a model or calling one changes no setting of the process. Only these things stay for as
long as the process lives: models that were registered (see :func:`dissensus.nn.register`), imported files of your own
models, and the environment variables ``RAY_*`` once Ray was asked for.

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
