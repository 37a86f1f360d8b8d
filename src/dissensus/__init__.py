"""Deep and continuous-depth graph neural networks that do not oversmooth.

Nodes are agents, channels are options, depth is time, and oversmoothing is consensus. The rooms, each importing only
the ones before it: :mod:`graph`, :mod:`solve`, :mod:`dynamics`, :mod:`nn`, :mod:`measure`, :mod:`data`, :mod:`train`,
:mod:`runs`, :mod:`tune`, :mod:`studies`, :mod:`report`. They are imported when first used, so that ``import
dissensus`` is instant.
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

_ROOMS = ("graph", "solve", "dynamics", "nn", "measure", "data", "train", "runs", "tune", "studies", "report")

__all__ = [
    "__version__",
    "data",
    "dynamics",
    "graph",
    "measure",
    "nn",
    "report",
    "runs",
    "solve",
    "studies",
    "train",
    "tune",
]


def __getattr__(name: str) -> ModuleType:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
