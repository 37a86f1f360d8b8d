"""Check the lemmas and theorems, their errata and sharper forms, on three random graphs.

A verdict is one of: 'holds'; 'holds, corrected', where the conclusion stands once a formula, a hypothesis or the
measure is put right; 'fails as printed', where the numbers contradict the conclusion. Of the three graphs, the numbers
shown are those nearest to failing. With a name, everything that the check measured is shown, and its note.
"""

import argparse
import json
import sys
import time
from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dissensus.report import Table
    from dissensus.studies.theory import Check, Fact


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="check this one alone, in detail (default: all)")
    parser.add_argument("--seed", default=0, type=int, metavar="S", help="seed of the random graphs")
    parser.add_argument("--nodes", default=24, type=int, metavar="N", help="nodes of each graph, from 4 to 100")
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    from dissensus.errors import one_of
    from dissensus.studies import theory

    started = time.perf_counter()
    names = theory.names() if args.name is None else [one_of("check", args.name, theory.names())]
    graphs = theory.settings(args.nodes, args.seed)
    checks = []
    for name in names:
        print(f"checking {name}", file=sys.stderr)
        checks.append(theory.evaluate(name, graphs))
    if args.json:
        answer = {
            "seed": args.seed,
            "nodes": args.nodes,
            "graphs": len(graphs),
            "checks": [_plain(check) for check in checks],
            "verdicts": Counter(check.verdict for check in checks),
            "seconds": time.perf_counter() - started,
        }
        print(json.dumps(answer))
    elif args.name is None:
        _overview(checks, f"{len(graphs)} random graphs of {args.nodes} nodes, seed {args.seed}").show()
    else:
        _detail(checks[0]).show()
    return 0


def _plain(check: "Check") -> dict[str, Any]:
    """JSON knows no infinity and no NaN: such values are null, and so is a missing end of a range."""

    def number(value: float) -> float | None:
        return float(value) if isfinite(value) else None

    return {
        "name": check.name,
        "where": check.where,
        "statement": check.statement,
        "verdict": check.verdict,
        "note": check.note,
        "evidence": {label: number(value) for label, value in check.evidence.items()},
        "facts": [
            {
                "label": fact.label,
                "value": number(fact.value),
                "low": number(fact.low),
                "high": number(fact.high),
                "printed": fact.printed,
                "ok": bool(fact.ok),
            }
            for fact in check.facts
        ],
    }


def _overview(checks: "list[Check]", caption: str) -> "Table":
    from dissensus.report import Table

    rows = [[check.name, check.where, check.statement, _evidence(check), check.verdict] for check in checks]
    counts = Counter(check.verdict for check in checks)
    note = ", ".join(f"{count} {verdict!r}" for verdict, count in counts.items())
    return Table(
        ["check", "where", "statement", "evidence", "verdict"],
        rows,
        caption=f"Lemmas and theorems on {caption}",
        note=f"{note}. 'dissensus theory NAME' shows every number and the corrections.",
    )


def _evidence(check: "Check") -> str:
    """The first two facts, or the first and the first that is outside of its range."""
    facts = list(check.facts)
    shown = [facts[0], *[fact for fact in facts[1:] if not fact.ok], *facts[1:]]
    return "; ".join(f"{fact.label}: {fact.value:.3g}" for fact in shown[:2])


def _detail(check: "Check") -> "Table":
    from dissensus.report import Table

    rows = [[fact.label, f"{fact.value:.6g}", _asked(fact), _met(fact)] for fact in check.facts]
    note = f"{check.verdict}. {check.note}" if check.note else f"{check.verdict}."
    return Table(["measured", "value", "asked", "met"], rows, f"{check.name} ({check.where}): {check.statement}", note)


def _asked(fact: "Fact") -> str:
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


def _met(fact: "Fact") -> str:
    if not (isfinite(fact.low) or isfinite(fact.high)):
        return ""
    return "yes" if fact.ok else "no"
