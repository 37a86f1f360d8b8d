"""The values that the paper prints, from data files: one line a value, its coordinates first."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

_VALUES = ("mean", "std")


@dataclass(frozen=True)
class Printed:
    """Printed means by their coordinates, such as model and dataset.

    >>> printed("homophilic").get({"model": "bimp", "dataset": "cora"})
    83.19
    """

    columns: tuple[str, ...] = ()
    means: Mapping[tuple[str, ...], float] = field(default_factory=dict)

    def get(self, row: Mapping[str, Any]) -> float | None:
        """The mean printed for the coordinates in ``row``; None where there is none."""
        return self.means.get(tuple(str(row.get(name)) for name in self.columns))

    def values(self, column: str) -> tuple[str, ...]:
        """The different values of a coordinate, in the paper's order."""
        place = self.columns.index(column)
        return tuple(dict.fromkeys(key[place] for key in self.means))


def printed(study: str) -> Printed:
    """The values of ``paper/STUDY.csv``; empty for a study of which the paper prints no numbers."""
    file = files(__package__) / "paper" / f"{study}.csv"
    if not file.is_file():
        return Printed()
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    columns = tuple(name for name in rows[0] if name not in _VALUES)
    return Printed(columns, {tuple(row[name] for name in columns): float(row["mean"]) for row in rows})
