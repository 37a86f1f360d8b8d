"""Every table and figure of the paper as a study: which runs it needs, what rows they become, how these are shown.

>>> STUDIES["nonlinearity"].printed.get({"dataset": "cora", "saturation": "tanh", "depth": 128})
82.18

:func:`reproduce` runs what is missing of a study, and gives its tables and figures; :func:`outlook` says what that will
take. Beside the studies stand :func:`demo`, :func:`lab`, :func:`bench` and the checks of :mod:`theory`. Free of torch
until something is run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dissensus.studies._accuracy import DYNAMICS, HETEROPHILIC, HOMOPHILIC, LARGE
from dissensus.studies._as_printed import ABLATION, AS_PRINTED, READING
from dissensus.studies._bench import BENCHMARKS as BENCHMARKS
from dissensus.studies._bench import bench
from dissensus.studies._bifurcation import BIFURCATION, run_bifurcation
from dissensus.studies._cost import COST, run_cost
from dissensus.studies._depth import DEPTH
from dissensus.studies._energy import ENERGY, run_energy
from dissensus.studies._lab import lab
from dissensus.studies._labels import LABELS
from dissensus.studies._long_range import LONG_RANGE, RING
from dissensus.studies._minesweeper import MINESWEEPER
from dissensus.studies._missing import MISSING, MISSING_ABLATION, MISSING_DEPTH, MISSING_SHARE
from dissensus.studies._nonlinearity import CRITICAL, NONLINEARITY
from dissensus.studies._runtime import MEMORY, RUNTIME, run_memory, run_timed
from dissensus.studies._skips import SKIPS
from dissensus.studies._study import Study
from dissensus.studies._tuned_gnn import TUNED_GNN

if TYPE_CHECKING:
    from dissensus.studies import theory
    from dissensus.studies._demo import demo
    from dissensus.studies._reproduce import Reproduction as Reproduction
    from dissensus.studies._reproduce import outlook, reproduce

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        *(HOMOPHILIC, HETEROPHILIC, AS_PRINTED, READING, ABLATION, SKIPS),
        *(DYNAMICS, LARGE, DEPTH, ENERGY, NONLINEARITY, CRITICAL, RUNTIME, MEMORY, BIFURCATION),
        *(MISSING, MISSING_DEPTH, MISSING_SHARE, MISSING_ABLATION, LABELS, LONG_RANGE, RING, MINESWEEPER),
        *(TUNED_GNN, COST),
    )
}

__all__ = ["STUDIES", "Study", "bench", "demo", "lab", "outlook", "reproduce", "theory"]

# Stores name these functions as what made their runs.
_TARGETS = (run_bifurcation, run_cost, run_energy, run_memory, run_timed)
_HOMES = {**dict.fromkeys(("Reproduction", "outlook", "reproduce"), "_reproduce"), "demo": "_demo"}


def __getattr__(name: str) -> Any:
    if name == "theory":
        return import_module(f"{__name__}.theory")
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
