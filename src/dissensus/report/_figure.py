"""Curves drawn by matplotlib, as files for print."""

from collections.abc import Mapping, Sequence
from math import log2, log10
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dissensus.report._drawing import drawing
from dissensus.report._number import power
from dissensus.report._theme import LIGHT, series_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dissensus.report._curves import Curves, Series

MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")


def save(curves: "Curves", stem: Path) -> tuple[Path, Path]:
    """Draw ``curves`` and write ``stem.png`` and ``stem.svg``."""
    files = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    with drawing(files, (5.6, 3.5), dpi=300, layout="constrained") as figure:
        draw(curves, figure)
    return files


def draw(curves: "Curves", figure: "Figure") -> None:
    """Draw ``curves`` on an empty figure."""
    ax = figure.subplots()
    xs, ys = _extent(curves)
    _scale(ax.xaxis, ax.set_xscale, ax.set_xlim, xs, curves.x_log)
    _scale(ax.yaxis, ax.set_yscale, ax.set_ylim, ys, curves.y_log, _named(curves, ys))
    ax.grid(color=LIGHT["grid"], linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(which="both", length=2.5, width=0.6)
    for line in curves.series:
        _line(curves, line, ax, min(ys))
    _legend(curves, ax)
    ax.set_xlabel(curves.x_label)
    ax.set_ylabel(curves.y_label)
    ax.set_title(curves.title, loc="left")


def _line(curves: "Curves", line: "Series", ax: Any, lowest: float) -> None:
    style = _look(curves.names.index(line.name), line.dashed)
    if line.low is not None and line.high is not None:
        for run in curves.bands(line):
            low = [max(curves.place(line.low[i]), lowest) for i in run]
            high = [curves.place(line.high[i]) for i in run]
            ax.fill_between([line.x[i] for i in run], low, high, color=style["color"], alpha=0.15, linewidth=0)
    for run in curves.runs(line):
        ys = [curves.place(line.y[i]) for i in run]
        ax.plot([line.x[i] for i in run], ys, markevery=curves.markers(line), **style)


def _extent(curves: "Curves") -> tuple[list[float], list[float]]:
    """All values that are drawn on either axis, the ends of bands included."""
    xs: list[float] = []
    ys: list[float] = []
    for line in curves.series:
        for run in curves.runs(line):
            xs += [line.x[i] for i in run]
            ys += [curves.place(line.y[i]) for i in run]
        for run in curves.bands(line):
            ends = [end[i] for end in (line.low, line.high) if end is not None for i in run]
            ys += [end for end in map(curves.place, ends) if end > 0 or not curves.y_log]
    return xs, ys


def _named(curves: "Curves", ys: Sequence[float]) -> dict[float, str]:
    """The ticks that stand for zero and for all that is below the floor, where something is drawn there."""
    if curves.y_floor is None:
        return {}
    names = {curves.place(0.0): "0", curves.y_floor: f"< {_label(curves.y_floor)}"}
    return {place: name for place, name in names.items() if place in ys}


def _scale(
    axis: Any,
    set_scale: Any,
    set_limits: Any,
    values: Sequence[float],
    log: bool,
    named: Mapping[float, str] = MappingProxyType({}),
) -> None:
    low, high = min(values), max(values)
    if not log:
        room = 0.03 * (high - low) or 0.1 * abs(low) or 1.0
        set_limits(low - room, high + room)
        return
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    set_scale("log")
    start, end = log10(low), log10(high)
    room = 0.03 * (end - start) or 0.3
    # Beyond the smallest and the largest number there is no room left to give.
    set_limits(10 ** max(start - room, -323), 10 ** min(end + room, 308))
    different = sorted(set(values))
    if 2 <= len(different) <= 16 and all(log2(value).is_integer() for value in different):
        axis.set_major_locator(FixedLocator(different))
    else:
        ticks = LogLocator(subs=(1.0, 2.0, 5.0) if end - start < 1.5 else (1.0,), numticks=8)
        # Beside a tick with a name there is no room for another one.
        least = 1e3 * max(named, default=0.0)
        above = [value for value in ticks.tick_values(low, high) if least < value <= high]
        axis.set_major_locator(FixedLocator([*named, *above]) if named else ticks)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: named.get(value) or _label(value)))


def _label(value: float) -> str:
    exponent = log10(value) if value > 0 else 0.0
    if abs(exponent - round(exponent)) < 1e-9 and not -3 < exponent < 5:
        return power(round(exponent))
    return f"{value:.6g}"


def _look(index: int, dashed: bool) -> dict[str, Any]:
    """Colour and marker of the ``index``-th name: the pairs repeat only after 64 names."""
    colours = series_colours(LIGHT)
    colour = colours[index % len(colours)]
    return {
        "color": colour,
        "linestyle": (0, (4, 2)) if dashed else "-",
        "linewidth": 1.4,
        "marker": MARKERS[(index + index // len(MARKERS)) % len(MARKERS)],
        "markersize": 4.5,
        "markerfacecolor": LIGHT["paper"] if dashed else colour,
    }


def _legend(curves: "Curves", ax: Any) -> None:
    if len(curves.names) < 2:
        return
    from matplotlib.lines import Line2D

    dashed = {line.name: line.dashed for line in reversed(curves.series)}
    handles = [Line2D([], [], label=name, **_look(i, dashed[name])) for i, name in enumerate(curves.names)]
    ax.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=2.4)
