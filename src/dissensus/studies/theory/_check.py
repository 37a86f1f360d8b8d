"""What a check is: facts measured on random graphs, and the verdict that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dissensus.errors import InputError, one_of
from dissensus.studies.theory._setting import Setting

HOLDS = "holds"
CORRECTED = "holds, corrected"
FAILS = "fails as printed"


@dataclass(frozen=True)
class Fact:
    """One number, and the range that the statement asks it to lie in.

    Attributes:
        label: what was measured.
        value: the number.
        low, high: the range; without one the number is only shown.
        printed: the range is that of the printed form alone, so the corrected statement survives a value outside.
    """

    label: str
    value: float
    low: float = -math.inf
    high: float = math.inf
    printed: bool = False

    @property
    def ok(self) -> bool:
        """Whether the value lies in the range; NaN does not."""
        return self.low <= self.value <= self.high

    @property
    def margin(self) -> float:
        """Distance to the nearer end of the range, negative outside; NaN is as far outside as can be."""
        if math.isnan(self.value):
            return -math.inf
        bounded = [(self.low, self.value), (self.value, self.high)]
        return min((b - a for a, b in bounded if math.isfinite(a) or math.isfinite(b)), default=math.inf)


@dataclass(frozen=True)
class Check:
    """A statement with the evidence for and against it.

    Attributes:
        name: by which it is called.
        statement: what is claimed.
        where: the claim's place in the paper, or ``ours``.
        note: corrections and remarks.
        facts: what was measured; of several graphs, the one nearest to failing.
    """

    name: str
    statement: str
    where: str
    note: str
    facts: tuple[Fact, ...]

    @property
    def evidence(self) -> dict[str, float]:
        """The measured numbers by their labels."""
        return {fact.label: fact.value for fact in self.facts}

    @property
    def verdict(self) -> str:
        """``holds``, ``holds, corrected`` or ``fails as printed``.

        Corrected: the conclusion stands once a formula, a hypothesis or the measure is put right. Failed: the numbers
        contradict the conclusion itself.
        """
        if not all(fact.ok for fact in self.facts if not fact.printed):
            return FAILS
        return HOLDS if all(fact.ok for fact in self.facts) else CORRECTED


Measure = Callable[[Setting], Iterable[Fact]]


@dataclass(frozen=True)
class _Rule:
    name: str
    where: str
    statement: str
    note: str
    measure: Measure


_RULES: dict[str, _Rule] = {}


def rule(name: str, *, where: str, statement: str, note: str = "") -> Callable[[Measure], Measure]:
    """Register a function from a setting to facts under the name of a statement."""

    def register(measure: Measure) -> Measure:
        _RULES[name] = _Rule(name, where, statement, note, measure)
        return measure

    return register


def names() -> list[str]:
    """The checks, one family of statements after another."""
    return list(_RULES)


def evaluate(name: str, on: Sequence[Setting]) -> Check:
    """One check on given settings, which may break its hypotheses."""
    found = _RULES[one_of("check", name, _RULES)]
    if not on:
        raise InputError("there is no setting to check on: give at least one")
    worst: dict[str, Fact] = {}
    for setting in on:
        for fact in found.measure(setting):
            if fact.label not in worst or fact.margin < worst[fact.label].margin:
                worst[fact.label] = fact
    return Check(found.name, found.statement, found.where, found.note, tuple(worst.values()))
