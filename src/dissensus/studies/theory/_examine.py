"""Many checks at once, and their tables."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from dissensus.errors import one_of
from dissensus.report import Table
from dissensus.studies.theory._check import Check, Fact, evaluate, names
from dissensus.studies.theory._setting import settings


@dataclass(frozen=True)
class Findings:
    """Checks on random graphs.

    Attributes:
        checks: in the order of :func:`names`.
        nodes, seed, graphs: size, seed and number of the random graphs.
        seconds: wall-clock time.
    """

    checks: tuple[Check, ...]
    nodes: int
    seed: int
    graphs: int
    seconds: float

    def table(self) -> Table:
        """One row for each check; of a single check, one row for each number that it measured."""
        if len(self.checks) == 1:
            return _detail(self.checks[0])
        return _overview(self.checks, f"{self.graphs} random graphs of {self.nodes} nodes, seed {self.seed}")

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "seed": self.seed,
            "nodes": self.nodes,
            "graphs": self.graphs,
            "checks": [_plain(check) for check in self.checks],
            "verdicts": dict(Counter(check.verdict for check in self.checks)),
            "seconds": self.seconds,
        }


def examine(
    *chosen: str, nodes: int = 24, seed: int = 0, progress: Callable[[str], None] = lambda name: None
) -> Findings:
    """Check the statements of the theory on three random graphs, sparse, medium and dense.

    Args:
        chosen: names of checks (:func:`names`); all if none is given.
        nodes: size of each graph, see :func:`settings`.
        seed: of the graphs.
        progress: called with the name of each check before it starts.
    """
    started = time.perf_counter()
    wanted = [one_of("check", name, names()) for name in chosen] or names()
    graphs = settings(nodes, seed)
    checks = []
    for name in wanted:
        progress(name)
        checks.append(evaluate(name, graphs))
    return Findings(tuple(checks), nodes, seed, len(graphs), time.perf_counter() - started)


def _plain(check: Check) -> dict[str, Any]:
    facts = [{**asdict(fact), "ok": bool(fact.ok)} for fact in check.facts]
    return {**asdict(check), "verdict": check.verdict, "evidence": check.evidence, "facts": facts}


def _overview(checks: Sequence[Check], caption: str) -> Table:
    rows = [[check.name, check.where, check.statement, _evidence(check), check.verdict] for check in checks]
    counts = Counter(check.verdict for check in checks)
    note = ", ".join(f"{count} {verdict!r}" for verdict, count in counts.items())
    return Table(
        ["check", "where", "statement", "evidence", "verdict"],
        rows,
        caption=f"Lemmas and theorems on {caption}",
        note=f"{note}. 'dissensus theory NAME' shows every number and the corrections.",
    )


def _evidence(check: Check) -> str:
    """The first two facts, or the first and the first that is outside of its range."""
    facts = list(check.facts)
    shown = [facts[0], *[fact for fact in facts[1:] if not fact.ok], *facts[1:]]
    return "; ".join(f"{fact.label}: {fact.value:.3g}" for fact in shown[:2])


def _detail(check: Check) -> Table:
    rows = [[fact.label, f"{fact.value:.6g}", _asked(fact), _met(fact)] for fact in check.facts]
    note = f"{check.verdict}. {check.note}" if check.note else f"{check.verdict}."
    return Table(["measured", "value", "asked", "met"], rows, f"{check.name} ({check.where}): {check.statement}", note)


def _asked(fact: Fact) -> str:
    if isfinite(fact.low) and isfinite(fact.high):
        half = 0.5 * (fact.high - fact.low)
        text = f"{0.5 * (fact.high + fact.low):g}" + (f" ± {half:.2g}" if half else "")
    elif isfinite(fact.low):
        text = f"≥ {fact.low:g}"
    elif isfinite(fact.high):
        text = f"≤ {fact.high:g}"
    else:
        return ""
    return f"{text} (as printed)" if fact.printed else text


def _met(fact: Fact) -> str:
    if not (isfinite(fact.low) or isfinite(fact.high)):
        return ""
    return "yes" if fact.ok else "no"
