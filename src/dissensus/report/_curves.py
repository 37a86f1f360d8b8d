"""Line charts, drawn by matplotlib for print and by a script on a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from sys import float_info
from typing import Any

from dissensus.errors import InputError

_ZERO = 1e-5  # on a logarithmic axis with a floor, zero is drawn at this multiple of the floor


@dataclass
class Series:
    """One line: ``y`` over ``x``, optionally with a band from ``low`` to ``high``; all of the same length.

    NaN leaves a gap. Series of the same name share colour, marker and legend entry, so a curve can consist of several
    series. A ``dashed`` series has a dashed line and hollow markers.
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
            raise InputError(f"series {self.name!r} has only one end of its band; give both low and high, or neither")
        if self.low is not None and self.high is not None:
            self.low, self.high = _floats(self.low), _floats(self.high)
        lengths = [len(part) for part in (self.x, self.y, self.low, self.high) if part is not None]
        if len(set(lengths)) > 1:
            raise InputError(
                f"series {self.name!r} has x, y, low and high of lengths {lengths}; give one of each for every x"
            )


@dataclass
class Curves:
    """Several :class:`Series` on common axes.

    On a logarithmic axis, values that are not positive leave a gap. With ``y_floor``, all positive values below it are
    drawn at one tick, ``< y_floor``, and zeros at another tick below. :meth:`save` writes files for print and needs
    matplotlib (the extra ``plot``); a :class:`Page` needs nothing to draw the chart.
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
            raise InputError(f"y_floor is {self.y_floor}: it must be at least 1e-200, with y_log=True")
        self.names = list(dict.fromkeys(line.name for line in self.series))
        if not any(self.segments(line) for line in self.series):
            positive = " and positive, for a log axis," if self.x_log or self.y_log else ""
            raise InputError(f"chart {self.title!r} has nothing to draw; give a series with a finite{positive} point")

    def place(self, y: float) -> float:
        """The position of a value on the vertical axis: the value itself, unless it is below ``y_floor``."""
        if self.y_floor is None or not 0 <= y < self.y_floor:
            return y
        return self.y_floor if y > 0 else self.y_floor * _ZERO

    def segments(self, line: Series) -> list[list[int]]:
        """Indices of the points of each segment of a series without a gap."""
        return _segments(self._drawn(line, index) for index in range(len(line.x)))

    def markers(self, line: Series) -> tuple[int, int]:
        """The index of the first point with a marker, and the step to the next one.

        A line of up to 24 points has a marker at every point, a longer one has about eight. The first index depends on
        the name, so that curves that coincide can be told apart.
        """
        step = 1 if len(line.x) <= 24 else len(line.x) // 8
        return self.names.index(line.name) % step, step

    def bands(self, line: Series) -> list[list[int]]:
        """Indices of the points of each segment of a series with a band. (A mean over one run has no band.)"""
        if line.low is None or line.high is None:
            return []
        ends = zip(line.low, line.high, strict=True)
        return _segments(
            self._drawn(line, index) and isfinite(low) and isfinite(high) for index, (low, high) in enumerate(ends)
        )

    def save(self, stem: str | Path) -> tuple[Path, Path]:
        """Write ``stem.png`` (300 dots per inch) and ``stem.svg``; the same data always gives the same files."""
        from dissensus.report._figure import save

        return save(self, Path(stem))

    def chart(self) -> dict[str, Any]:
        """The chart as JSON data for a page's script (web/chart.js), with null for values that are not finite."""
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
        """The chart in one sentence, for screen readers."""
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


def _segments(flags: Iterable[bool]) -> list[list[int]]:
    """The indices of each run of consecutive true flags."""
    segments: list[list[int]] = []
    before = False
    for index, flag in enumerate(flags):
        if flag and before:
            segments[-1].append(index)
        elif flag:
            segments.append([index])
        before = flag
    return segments
