"""Curves by matplotlib, for print."""

from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import missing_extra
from dissensus.report._curves import SHAPES, look, marked
from dissensus.report._theme import LIGHT, series_colours

if TYPE_CHECKING:
    from dissensus.report._curves import Curves

_MARKERS = dict(zip(SHAPES, ("o", "s", "^", "D", "v", "X", "P", "*"), strict=True))
_STYLE: Any = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.linewidth": 0.6,
    "axes.edgecolor": LIGHT["faint"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.titleweight": "bold",
    "text.parse_math": False,  # a "$" in a name is a "$"
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "svg.hashsalt": "dissensus",  # without it every file has new identifiers, and committed figures change each time
}


def save(curves: "Curves", stem: Path) -> tuple[Path, Path]:
    """Draw ``curves`` and write ``stem.png`` and ``stem.svg``."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib", "plot") from error

    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.6, 3.5), layout="constrained")
        _draw(curves, figure.subplots())
        figure.savefig(png, dpi=300, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None})
    return png, svg


def _draw(curves: "Curves", ax: Any) -> None:
    x, y = curves.axes(x_count=7, y_count=6)
    for axis, scale, limits, put in (
        (x, ax.set_xscale, ax.set_xlim, ax.set_xticks),
        (y, ax.set_yscale, ax.set_ylim, ax.set_yticks),
    ):
        scale("log" if axis.log else "linear")
        limits(*_margin(axis.low, axis.high, axis.log))
        put([value for value, _ in axis.ticks], [label for _, label in axis.ticks])
    ax.minorticks_off()
    ax.grid(color=LIGHT["grid"], linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=2.5, width=0.6)
    for line in curves.series:
        style = _style(curves.names.index(line.name), line.dashed)
        if line.low is not None and line.high is not None:
            for run in curves.bands(line):
                low = [max(line.low[i], y.low) for i in run]
                high = [line.high[i] for i in run]
                ax.fill_between([line.x[i] for i in run], low, high, color=style["color"], alpha=0.15, linewidth=0)
        for run in curves.runs(line):
            places = [run.index(i) for i in marked(run)]
            ax.plot([line.x[i] for i in run], [line.y[i] for i in run], markevery=places, **style)
    _legend(curves, ax)
    ax.set_xlabel(curves.x_label)
    ax.set_ylabel(curves.y_label)
    ax.set_title(curves.title, loc="left")


def _margin(low: float, high: float, log: bool, share: float = 0.03) -> tuple[float, float]:
    """The limits with a little room, so that markers at the ends are not cut."""
    if log:
        room = share * (log10(high) - log10(low))
        # Beyond the smallest and the largest number there is no room left to give.
        return 10 ** max(log10(low) - room, -323), 10 ** min(log10(high) + room, 308)
    return low - share * (high - low), high + share * (high - low)


def _style(index: int, dashed: bool) -> dict[str, Any]:
    colour, shape = look(index)
    paint = series_colours(LIGHT)[colour]
    return {
        "color": paint,
        "linestyle": (0, (4, 2)) if dashed else "-",
        "linewidth": 1.4,
        "marker": _MARKERS[shape],
        "markersize": 4.5,
        "markerfacecolor": "white" if dashed else paint,
    }


def _legend(curves: "Curves", ax: Any) -> None:
    if len(curves.names) < 2:
        return
    from matplotlib.lines import Line2D

    dashed = {line.name: line.dashed for line in reversed(curves.series)}
    handles = [Line2D([], [], label=name, **_style(i, dashed[name])) for i, name in enumerate(curves.names)]
    ax.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=2.4)
