"""The theory, runnable: each lemma and theorem of the paper, its errata and our sharper results as a named check.

A check measures facts on random graphs and draws its verdict from them: ``holds``, ``holds, corrected`` or
``fails as printed``. :func:`check` runs one by name on three graphs; :func:`evaluate` runs one on given settings, for
instance with a hypothesis broken: ``evaluate("dissensus", [replace(s, source=torch.ones_like(s.source))])``.
"""

from dissensus.studies.theory import _linear  # noqa: F401, I001 - the modules register their checks in this order
from dissensus.studies.theory import _reaction  # noqa: F401
from dissensus.studies.theory import _form  # noqa: F401
from dissensus.studies.theory import _behaviour  # noqa: F401
from dissensus.studies.theory import _gradients  # noqa: F401
from dissensus.studies.theory._check import CORRECTED, FAILS, HOLDS, Check, Fact, check, evaluate, names
from dissensus.studies.theory._setting import Setting, settings

__all__ = ["CORRECTED", "FAILS", "HOLDS", "Check", "Fact", "Setting", "check", "evaluate", "names", "settings"]
