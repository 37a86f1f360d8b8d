"""What of a study is done, what is missing, and how long that will take."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from dissensus.runs import Record, key
from dissensus.studies._study import Config, Plan, Row, Study


@dataclass
class Outlook:
    """The runs of one group: done, failed, missing, and the estimated seconds of those that are missing.

    ``seconds`` is None while nothing comparable has been run.
    """

    group: tuple[str, ...]
    done: int = 0
    failed: int = 0
    missing: int = 0
    seconds: float | None = 0.0


def outlook(study: Study, plan: Plan, stored: Mapping[str, Record]) -> list[Outlook]:
    """Counts by the first two dimensions of the study.

    A missing run is expected to take as long as the mean of those that differ from it in split and seed alone;
    without any, as those of the same group, then of the whole study.

    Args:
        study: whose runs.
        plan: all of them.
        stored: finished runs by their key, of this study and others.
    """
    groups: dict[tuple[str, ...], Outlook] = {}
    times: dict[tuple[str, ...], list[float]] = defaultdict(list)
    missing: list[tuple[str, tuple[str, ...]]] = []
    for config in plan.configs:
        found = stored.get(key(config))
        row = _row(study, config)
        names = tuple(str(row[name]) for name in study.dimensions[:2] if row.get(name) is not None)
        here = groups.setdefault(names, Outlook(names))
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
    return list(groups.values())


def total_seconds(groups: Sequence[Outlook]) -> float | None:
    """The estimate of all groups together; None where one has none."""
    known = [group.seconds for group in groups]
    return None if None in known else sum(seconds for seconds in known if seconds is not None)


def _row(study: Study, config: Config) -> Row:
    nothing = Record(
        key="", target="", status="failed", config=config, result=None, error=None, traceback=None,
        seconds=0.0, started="", finished="", provenance={},
    )  # fmt: skip
    return study.rows(nothing)[0]
