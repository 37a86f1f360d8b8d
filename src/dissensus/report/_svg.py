"""Curves as SVG elements inside a page: complete without a script, coloured by the page's stylesheet."""

from collections.abc import Callable, Sequence
from html import escape
from math import cos, pi, sin

from dissensus.report._axis import Axis
from dissensus.report._curves import Curves, Shape, look, marked

_FONT = 12.0


def chart(curves: Curves, width: int, height: int, kind: str) -> str:
    """One drawing of ``width`` x ``height`` units; ``kind`` is the class by which the stylesheet chooses it."""
    x, y = curves.axes(x_count=max(4, width // 85), y_count=max(4, height // 65))
    left = 14 + max(len(label) for _, label in y.ticks) * _FONT * 0.58
    frame = Frame(x, y, left, 30, width - 14, height - 46)
    drawn = "".join(_series(curves, index, frame) for index in range(len(curves.series)))
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(describe(curves))}"'
        f' data-x="{_scale(x, frame.across)}" data-y="{_scale(y, frame.down)}">'
        f"{_grid(frame)}{_labels(curves, frame, height)}{drawn}"
        '<g class="cursor"></g></svg>'
    )


def describe(curves: Curves) -> str:
    """The chart in one sentence, for readers who cannot see it."""
    axes = f"{curves.y_label or 'y'} over {curves.x_label or 'x'}"
    return f"{curves.title or 'Line chart'}: {axes}; {', '.join(curves.names)}"


def swatch(index: int, dashed: bool) -> str:
    """The legend's sample of a line and its marker."""
    colour, shape = look(index)
    dash = " dashed" if dashed else ""
    return (
        f'<svg class="swatch c{colour}" viewBox="0 0 30 12" aria-hidden="true"><path class="line{dash}" d="M1 6H29"/>'
        f'<path class="mark{dash}" d="{_OUTLINES[shape]}" transform="translate(15 6)"/></svg>'
    )


class Frame:
    """The plotting rectangle, and the way into it."""

    # Room between the rectangle's edge and the ends of the domain, so that end markers do not sit on the axis.
    inset = 8.0

    def __init__(self, x: Axis, y: Axis, left: float, top: float, right: float, bottom: float) -> None:
        self.x, self.y = x, y
        self.left, self.top, self.right, self.bottom = left, top, right, bottom

    def across(self, value: float) -> float:
        return self.left + self.inset + self.x.place(value) * (self.right - self.left - 2 * self.inset)

    def down(self, value: float) -> float:
        return self.bottom - self.y.place(value) * (self.bottom - self.top)


def _scale(axis: Axis, place: Callable[[float], float]) -> str:
    """The axis for the page's script: both ends of the domain, both places, and 1 if it is logarithmic."""
    return f"{axis.low!r} {axis.high!r} {_n(place(axis.low))} {_n(place(axis.high))} {axis.log:d}"


def _grid(frame: Frame) -> str:
    lines = "".join(f"M{_n(frame.left)} {_n(frame.down(v))}H{_n(frame.right)}" for v, _ in frame.y.ticks)
    lines += "".join(f"M{_n(frame.across(v))} {_n(frame.bottom)}v5" for v, _ in frame.x.ticks)
    return (
        f'<path class="grid" d="{lines}"/>'
        f'<path class="axis" d="M{_n(frame.left)} {_n(frame.bottom)}H{_n(frame.right)}"/>'
    )


def _labels(curves: Curves, frame: Frame, height: int) -> str:
    out = [
        f'<text x="{_n(frame.left - 8)}" y="{_n(frame.down(value) + 4)}" text-anchor="end">{escape(label)}</text>'
        for value, label in frame.y.ticks
    ]
    out += [
        f'<text x="{_n(frame.across(value))}" y="{_n(frame.bottom + 19)}" text-anchor="middle">{escape(label)}</text>'
        for value, label in frame.x.ticks
    ]
    out.append(f'<text class="label" x="2" y="13">{escape(curves.y_label)}</text>')
    middle = (frame.left + frame.right) / 2
    out.append(
        f'<text class="label" x="{_n(middle)}" y="{height - 6}" text-anchor="middle">{escape(curves.x_label)}</text>'
    )
    return "".join(out)


def _series(curves: Curves, index: int, frame: Frame) -> str:
    line = curves.series[index]
    place = curves.names.index(line.name)
    colour, shape = look(place)
    dash = " dashed" if line.dashed else ""
    bands, paths, marks = "", "", ""
    if line.low is not None and line.high is not None:
        for run in curves.bands(line):
            upper = [(frame.across(line.x[i]), frame.down(line.high[i])) for i in run]
            lower = [(frame.across(line.x[i]), frame.down(line.low[i])) for i in reversed(run)]
            bands += f'<path class="band" d="{_path(upper + lower)}Z"/>'
    for run in curves.runs(line):
        points = [(frame.across(line.x[i]), frame.down(line.y[i])) for i in run]
        paths += _path(points)
        for i in marked(run):
            spot = f"{_n(frame.across(line.x[i]))} {_n(frame.down(line.y[i]))}"
            marks += f'<path class="mark{dash}" d="{_OUTLINES[shape]}" transform="translate({spot})"/>'
    return f'<g class="series c{colour}" data-series="{place}">{bands}<path class="line{dash}" d="{paths}"/>{marks}</g>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    steps = [f"{_n(x)} {_n(y)}" for x, y in points]
    # Long series have many points within a tenth of a unit; repeating them only makes the page larger.
    kept = [step for before, step in zip([None, *steps], steps, strict=False) if step != before]
    return "M" + "L".join(kept)


def _polygon(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points) + "Z"


def _ring(count: int, radii: Sequence[float], turn: float) -> list[tuple[float, float]]:
    angles = [turn + 2 * pi * k / count for k in range(count)]
    return [(radii[k % len(radii)] * cos(a), radii[k % len(radii)] * sin(a)) for k, a in enumerate(angles)]


def _cross(turn: float) -> list[tuple[float, float]]:
    arm, half = 4.4, 1.5
    corner = [(arm, -half), (arm, half), (half, half)]
    return [
        (
            x * cos(turn + q * pi / 2) - y * sin(turn + q * pi / 2),
            x * sin(turn + q * pi / 2) + y * cos(turn + q * pi / 2),
        )
        for q in range(4)
        for x, y in corner
    ]


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_OUTLINES: dict[Shape, str] = {
    "circle": "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0Z",
    "square": _polygon(_ring(4, [4.7], pi / 4)),
    "up": _polygon(_ring(3, [4.9], -pi / 2)),
    "diamond": _polygon(_ring(4, [4.8], 0)),
    "down": _polygon(_ring(3, [4.9], pi / 2)),
    "cross": _polygon(_cross(pi / 4)),
    "plus": _polygon(_cross(0)),
    "star": _polygon(_ring(10, [5.2, 2.4], -pi / 2)),
}
