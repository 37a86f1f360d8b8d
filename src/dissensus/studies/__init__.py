"""Every table and figure of the paper as a study: which runs it needs, what rows they become, how these are shown.

>>> STUDIES["nonlinearity"].printed.get({"dataset": "cora", "saturation": "tanh", "depth": 128})
82.18

Runs are executed by :mod:`dissensus.runs`, and shown by :mod:`dissensus.report`; a study knows of neither more than the
form of a finished run. Free of torch until something is run.
"""

from dissensus.studies._bifurcation import BIFURCATION, run_bifurcation
from dissensus.studies._depth import DEPTH
from dissensus.studies._energy import ENERGY, run_energy
from dissensus.studies._heterophilic import DYNAMICS, HETEROPHILIC
from dissensus.studies._homophilic import HOMOPHILIC
from dissensus.studies._large import LARGE
from dissensus.studies._nonlinearity import NONLINEARITY
from dissensus.studies._outlook import Outlook, outlook, total_seconds
from dissensus.studies._printed import Printed, printed
from dissensus.studies._results import check_results, read_results, write_results
from dissensus.studies._runtime import RUNTIME, run_timed
from dissensus.studies._study import Plan, Request, Study, Training
from dissensus.studies._views import Details, Grid, Lines, Paired, Pitchfork, Summary, View

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (HOMOPHILIC, HETEROPHILIC, DYNAMICS, LARGE, DEPTH, ENERGY, NONLINEARITY, RUNTIME, BIFURCATION)
}

__all__ = [
    "STUDIES",
    "Details",
    "Grid",
    "Lines",
    "Outlook",
    "Paired",
    "Pitchfork",
    "Plan",
    "Printed",
    "Request",
    "Study",
    "Summary",
    "Training",
    "View",
    "check_results",
    "outlook",
    "printed",
    "read_results",
    "run_bifurcation",
    "run_energy",
    "run_timed",
    "total_seconds",
    "write_results",
]
