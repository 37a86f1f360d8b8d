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
    _scale(ax.yaxis, ax.set_yscale, ax.set_ylim, ys, curves.y_log, _named_ticks(curves, ys))
    ax.grid(color=LIGHT["grid"], linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(which="both", length=2.5, width=0.6)
    for line in curves.series:
        _draw_line(curves, line, ax, min(ys))
    _legend(curves, ax)
    ax.set_xlabel(curves.x_label)
    ax.set_ylabel(curves.y_label)
    ax.set_title(curves.title, loc="left")


def _draw_line(curves: "Curves", line: "Series", ax: Any, lowest: float) -> None:
    style = _line_style(curves.names.index(line.name), line.dashed)
    if line.low is not None and line.high is not None:
        for segment in curves.bands(line):
            low = [max(curves.place(line.low[i]), lowest) for i in segment]
            high = [curves.place(line.high[i]) for i in segment]
            ax.fill_between([line.x[i] for i in segment], low, high, color=style["color"], alpha=0.15, linewidth=0)
    for segment in curves.segments(line):
        ys = [curves.place(line.y[i]) for i in segment]
        ax.plot([line.x[i] for i in segment], ys, markevery=curves.markers(line), **style)


def _extent(curves: "Curves") -> tuple[list[float], list[float]]:
    """All values drawn on the x and the y axis, including the ends of bands."""
    xs: list[float] = []
    ys: list[float] = []
    for line in curves.series:
        for segment in curves.segments(line):
            xs += [line.x[i] for i in segment]
            ys += [curves.place(line.y[i]) for i in segment]
        for segment in curves.bands(line):
            ends = [end[i] for end in (line.low, line.high) if end is not None for i in segment]
            ys += [end for end in map(curves.place, ends) if end > 0 or not curves.y_log]
    return xs, ys


def _named_ticks(curves: "Curves", ys: Sequence[float]) -> dict[float, str]:
    """The ticks for zero and for values below the floor, if there are any such values."""
    if curves.y_floor is None:
        return {}
    names = {curves.place(0.0): "0", curves.y_floor: f"< {_tick_label(curves.y_floor)}"}
    return {place: name for place, name in names.items() if place in ys}


def _scale(
    axis: Any,
    set_scale: Any,
    set_limits: Any,
    values: Sequence[float],
    log: bool,
    named_ticks: Mapping[float, str] = MappingProxyType({}),
) -> None:
    low, high = min(values), max(values)
    if not log:
        margin = 0.03 * (high - low) or 0.1 * abs(low) or 1.0
        set_limits(low - margin, high + margin)
        return
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    set_scale("log")
    start, end = log10(low), log10(high)
    margin = 0.03 * (end - start) or 0.3
    # The limits must stay within the range of double precision.
    set_limits(10 ** max(start - margin, -323), 10 ** min(end + margin, 308))
    different = sorted(set(values))
    if 2 <= len(different) <= 16 and all(log2(value).is_integer() for value in different):
        axis.set_major_locator(FixedLocator(different))
    else:
        ticks = LogLocator(subs=(1.0, 2.0, 5.0) if end - start < 1.5 else (1.0,), numticks=8)
        # Ticks close to a named one would overlap it.
        least = 1e3 * max(named_ticks, default=0.0)
        above = [value for value in ticks.tick_values(low, high) if least < value <= high]
        axis.set_major_locator(FixedLocator([*named_ticks, *above]) if named_ticks else ticks)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: named_ticks.get(value) or _tick_label(value)))


def _tick_label(value: float) -> str:
    exponent = log10(value) if value > 0 else 0.0
    if abs(exponent - round(exponent)) < 1e-9 and not -3 < exponent < 5:
        return power(round(exponent))
    return f"{value:.6g}"


def _line_style(index: int, dashed: bool) -> dict[str, Any]:
    """The style of the ``index``-th name. Pairs of colour and marker repeat only after 64 names."""
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
    handles = [Line2D([], [], label=name, **_line_style(i, dashed[name])) for i, name in enumerate(curves.names)]
    ax.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=2.4)
