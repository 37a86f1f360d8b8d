"""All that the package keeps or changes in a process beside what is asked of it, and how to undo it.

* :class:`Cache`: graphs that were built, and rewired ones, found again by their content.
  :meth:`Cache.clear_all` empties all.
* :func:`training`: settings of the process that make training faster, for as long as a ``with`` block lasts.
* :func:`exporting`: whether ``torch.export`` is tracing; then nothing is kept.

Importing the package, building a model or calling it changes no setting.
"""

from dissensus.runtime._cache import Cache
from dissensus.runtime._export import exporting
from dissensus.runtime._training import training

__all__ = ["Cache", "exporting", "training"]
