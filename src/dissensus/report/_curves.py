"""Line charts: the data once, drawn by matplotlib for print and by the script of a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from sys import float_info
from typing import Any

from dissensus.errors import InputError

_BELOW = 1e-5  # zero is drawn this much lower than the floor of a logarithmic axis


@dataclass
class Series:
    """One line: ``y`` over ``x``, optionally with a band from ``low`` to ``high``; all of the same length.

    A NaN leaves a gap. Series of the same name share colour, marker and legend entry, so that a curve may be given in
    several pieces; ``dashed`` draws the line broken and its markers hollow.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False

    def __post_init__(self) -> None:
        self.x, self.y = _floats(self.x), _floats(self.y)
        if (self.low is None) != (self.high is None):
            raise InputError(f"series {self.name!r} has one end of its band; give both low and high, or neither")
        if self.low is not None and self.high is not None:
            self.low, self.high = _floats(self.low), _floats(self.high)
        lengths = [len(part) for part in (self.x, self.y, self.low, self.high) if part is not None]
        if len(set(lengths)) > 1:
            raise InputError(
                f"series {self.name!r} has parts of lengths {lengths}; give one y, low and high for each x"
            )


@dataclass
class Curves:
    """Several :class:`Series` on common axes.

    On a logarithmic axis values that are not positive cannot be drawn and leave a gap. With ``y_floor``, smaller values
    are drawn at a tick of their own, ``< y_floor``, and zero at another one below it. :meth:`save` writes files for
    print, which needs matplotlib (the extra ``plot``); a :class:`Page` draws the chart by itself.
    """

    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    title: str = ""
    x_log: bool = False
    y_log: bool = False
    caption: str = ""
    y_floor: float | None = None
    names: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.y_floor is not None and not (self.y_log and self.y_floor >= 1e-200):
            raise InputError(f"y_floor is {self.y_floor}: give one of at least 1e-200, with y_log=True")
        self.names = list(dict.fromkeys(line.name for line in self.series))
        if not any(self.runs(line) for line in self.series):
            positive = " and positive, for a log axis," if self.x_log or self.y_log else ""
            raise InputError(f"chart {self.title!r} has nothing to draw; give a series with a finite{positive} point")

    def place(self, y: float) -> float:
        """Where a value stands on the vertical axis: itself, unless it is below ``y_floor``."""
        if self.y_floor is None or not 0 <= y < self.y_floor:
            return y
        return self.y_floor if y > 0 else self.y_floor * _BELOW

    def runs(self, line: Series) -> list[list[int]]:
        """Indices of each stretch of a series without a gap."""
        return _stretches(self._drawn(line, index) for index in range(len(line.x)))

    def markers(self, line: Series) -> tuple[int, int]:
        """The first point with a marker and the step to the next one: all of a short line, about eight of a long one.

        They differ between names, so that curves that coincide are told apart.
        """
        step = 1 if len(line.x) <= 24 else len(line.x) // 8
        return self.names.index(line.name) % step, step

    def bands(self, line: Series) -> list[list[int]]:
        """Indices of each stretch of a series that has a band; a single run, say, has no spread."""
        if line.low is None or line.high is None:
            return []
        ends = zip(line.low, line.high, strict=True)
        return _stretches(
            self._drawn(line, index) and isfinite(low) and isfinite(high) for index, (low, high) in enumerate(ends)
        )

    def save(self, stem: str | Path) -> tuple[Path, Path]:
        """Write ``stem.png`` (300 dots per inch) and ``stem.svg``; equal data give equal files."""
        from dissensus.report._figure import save

        return save(self, Path(stem))

    def chart(self) -> dict[str, Any]:
        """The chart as a page's script reads it (web/chart.js): plain data, with null for what is not a number."""
        return {
            "title": self.title,
            "describe": self.describe(),
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "xLog": self.x_log,
            "yLog": self.y_log,
            "yFloor": self.y_floor,
            "lines": [
                {
                    "name": line.name,
                    "x": _numbers(line.x),
                    "y": _numbers(line.y),
                    "low": line.low and _numbers(line.low),
                    "high": line.high and _numbers(line.high),
                    "dashed": line.dashed,
                    "markers": 3,
                    "every": self.markers(line),
                }
                for line in self.series
            ],
        }

    def describe(self) -> str:
        """The chart in one sentence, for readers who cannot see it."""
        axes = f"{self.y_label or 'y'} over {self.x_label or 'x'}"
        return f"{self.title or 'Line chart'}: {axes}; {', '.join(self.names)}"

    def _drawn(self, line: Series, index: int) -> bool:
        return _visible(line.x[index], self.x_log) and _visible(self.place(line.y[index]), self.y_log)


def _floats(values: Iterable[float]) -> list[float]:
    return [float(value) for value in values]


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [value if isfinite(value) else None for value in values]


def _visible(value: float, log: bool) -> bool:
    return isfinite(value) and (value >= float_info.min or not log)


def _stretches(flags: Iterable[bool]) -> list[list[int]]:
    """The indices of the true flags, cut wherever one between them is false."""
    runs: list[list[int]] = []
    before = False
    for index, flag in enumerate(flags):
        if flag and before:
            runs[-1].append(index)
        elif flag:
            runs.append([index])
        before = flag
    return runs
