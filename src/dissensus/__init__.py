"""Deep and continuous-depth graph neural networks that do not oversmooth.

Nodes are agents, channels are options, depth is time, and oversmoothing is consensus. The modules are :mod:`kernels`,
:mod:`graph`, :mod:`solve`, :mod:`dynamics`, :mod:`nn`, :mod:`data`, :mod:`train`, :mod:`measure`, :mod:`runs`,
:mod:`tune`, :mod:`studies` and :mod:`report`; :mod:`runtime` holds what is global. They are imported on first use, so
``import dissensus`` is fast.
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

_ROOMS = (
    *("kernels", "graph", "solve", "dynamics", "nn", "measure", "data", "train", "runs", "tune", "studies", "report"),
    "runtime",
)

__all__ = [
    "__version__",
    "data",
    "dynamics",
    "graph",
    "kernels",
    "measure",
    "nn",
    "report",
    "runs",
    "runtime",
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
