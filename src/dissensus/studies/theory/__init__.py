"""The theory, runnable: each lemma and theorem of the paper, its errata and our sharper results as a named check.

A check measures facts on random graphs and draws its verdict from them: ``holds``, ``holds, corrected`` or
``fails as printed``. :func:`examine` runs any number of them on three random graphs; :func:`evaluate` runs one on given
settings, which may break a hypothesis: ``evaluate("dissensus", [replace(s, source=torch.ones_like(s.source))])``.
"""

from dissensus.studies.theory import _linear  # noqa: F401, I001 - the modules register their checks in this order
from dissensus.studies.theory import _reaction  # noqa: F401
from dissensus.studies.theory import _form  # noqa: F401
from dissensus.studies.theory import _behaviour  # noqa: F401
from dissensus.studies.theory import _gradients  # noqa: F401
from dissensus.studies.theory import _aggregation  # noqa: F401
from dissensus.studies.theory._check import evaluate, names
from dissensus.studies.theory._examine import examine
from dissensus.studies.theory._setting import settings

__all__ = ["evaluate", "examine", "names", "settings"]
