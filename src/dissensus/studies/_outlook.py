"""What of a study is done, what is missing, and how long that will take."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from dissensus.report import Table
from dissensus.runs import Record, RunConfig, key
from dissensus.studies._study import Row, Study, StudyRuns


@dataclass
class RunGroup:
    """The runs of one group: done, failed, missing, and the estimated seconds of those that are missing.

    ``seconds`` is None while nothing comparable has been run.
    """

    group: tuple[str, ...]
    done: int = 0
    failed: int = 0
    missing: int = 0
    seconds: float | None = 0.0


@dataclass(frozen=True)
class Outlook:
    """What of a study is done and what is missing, by groups of runs."""

    study: str
    groups: list[RunGroup]

    @property
    def seconds(self) -> float | None:
        """The estimate of all groups together; None where one has none."""
        known = [group.seconds for group in self.groups]
        return None if None in known else sum(seconds for seconds in known if seconds is not None)

    def table(self) -> Table:
        """One row for each group, and their sums."""
        rows: list[list[Any]] = [
            [" ".join(Path(name).name for name in g.group), g.done, g.failed, g.missing, _duration(g.seconds)]
            for g in self.groups
        ]
        total: list[Any] = [
            "all",
            *(self._sum(name) for name in ("done", "failed", "missing")),
            _duration(self.seconds),
        ]
        return Table([self.study, "done", "failed", "to run", "still to run"], [*rows, total])

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "done": self._sum("done"),
            "failed_runs": self._sum("failed"),
            "missing": self._sum("missing"),
            "seconds_missing": self.seconds,
            "groups": [asdict(group) for group in self.groups],
        }

    def _sum(self, name: str) -> int:
        return sum(getattr(group, name) for group in self.groups)


def outlook_of(study: Study, plan: StudyRuns, stored: Mapping[str, Record]) -> Outlook:
    """Counts by the first two dimensions of the study.

    A missing run is expected to take as long as the mean of those that differ from it in split and seed alone;
    without any, as those of the same group, then of the whole study.

    Args:
        study: whose runs.
        plan: all of them.
        stored: finished runs by their key, of this study and others.
    """
    groups: dict[tuple[str, ...], RunGroup] = {}
    times: dict[tuple[str, ...], list[float]] = defaultdict(list)
    missing: list[tuple[str, tuple[str, ...]]] = []
    for config in plan.configs:
        found = stored.get(key(config))
        row = _row(study, config)
        names = tuple(str(row[name]) for name in study.dimensions[:2] if row.get(name) is not None)
        here = groups.setdefault(names, RunGroup(names))
        if found is None:
            here.missing += 1
            missing.append((row["settings"], names))
        elif found.status == "failed":
            here.failed += 1
        else:
            here.done += 1
            for level in ((row["settings"],), names, ()):
                times[level].append(found.seconds)
    for settings, names in missing:
        here = groups[names]
        known = next((times[level] for level in ((settings,), names, ()) if level in times), None)
        here.seconds = None if known is None or here.seconds is None else here.seconds + fmean(known)
    return Outlook(study.name, list(groups.values()))


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _row(study: Study, config: RunConfig) -> Row:
    nothing = Record(
        key="", target="", status="failed", config=config, result=None, error=None, traceback=None,
        seconds=0.0, started="", finished="", provenance={},
    )  # fmt: skip
    return study.rows(nothing)[0]
