"""Matplotlib figures of opinion dynamics: bifurcation diagrams, agents on a graph, and opinions over time."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.report._drawing import drawing
from dissensus.report._theme import LIGHT

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_array

# The edges of graphs with more edges are not drawn, because they would be one grey area.
_MAX_EDGES = 20_000
# Graphs with more nodes are laid out on a disc, because a spring layout would take long.
_MAX_SPRING_NODES = 2500


@dataclass(frozen=True)
class Diagram:
    """A bifurcation diagram.

    Attributes:
        title: shown above.
        branches: (u, z, stable) for each branch, three arrays of the same length.
        critical: u*, marked on the axis, or None.
        reduced: branches of the one-dimensional equation, drawn thinly behind.
        marks: (label, u, z at the start, z at the end) of the simulations in the panels.
        points: (kind, u, z) of folds, pitchforks and the like.
        paths: (label, u, z) of curves with a direction, drawn with an arrow.
        label: label of the horizontal axis.
    """

    title: str
    branches: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
    critical: float | None
    reduced: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]] = ()
    marks: Sequence[tuple[str, float, float, float]] = ()
    points: Sequence[tuple[str, float, float]] = ()
    paths: Sequence[tuple[str, np.ndarray, np.ndarray]] = ()
    label: str = "attention u"


@dataclass(frozen=True)
class Panel:
    """One simulation.

    Attributes:
        title: shown above.
        times: [steps]
        states: one opinion per agent, [steps, n].
        note: a line below the title.
    """

    title: str
    times: np.ndarray
    states: np.ndarray = field(repr=False)
    note: str = ""


def draw_opinions(
    files: Sequence[Path],
    diagrams: Sequence[Diagram] = (),
    panels: Sequence[Panel] = (),
    matrix: csr_array | None = None,
    shape: str = "",
) -> Any:
    """Draw diagrams (in a column on the left) and panels (two per row on the right) as a matplotlib figure.

    Alone, diagrams are one journal column wide (3.5 inches), one panel 5 inches, and several two columns (7.16 inches).

    Args:
        files: where to write it; the suffix (PNG, SVG, PDF) is the format.
        diagrams: drawn with stable branches solid and unstable ones dashed.
        panels: each shows the agents on the graph, coloured by their last opinion, and all opinions over time.
        matrix: the communication matrix, [n, n]; negative entries are drawn dashed. Without it, panels show only the
            opinions over time.
        shape: ``grid``, ``cycle`` or ``complete`` if the graph is known to be one.
    """
    graph = None if matrix is None or not panels else (_edges_of(matrix), _layout(matrix, shape))
    rows = max(len(diagrams), (len(panels) + 1) // 2, 1)
    width, height = (3.5, 2.6) if not panels else (12.4 if diagrams else 7.16 if len(panels) > 1 else 5.0, 3.0)
    with drawing(files, (width, height * rows)) as figure:
        margins = {"top": 1.0 - 0.27 / (3.0 * rows), "bottom": 0.48 / (3.0 * rows), "hspace": 0.36}
        if diagrams:
            ends = {"left": 0.05, "right": 0.3} if panels else {"left": 0.19, "right": 0.97}
            grid = figure.add_gridspec(len(diagrams), 1, **ends, **margins)
            for row, diagram in enumerate(diagrams):
                _draw_diagram(figure.add_subplot(grid[row]), diagram)
        if panels:
            left = 0.34 if diagrams else 0.02 if graph else 0.12
            _draw_panels(figure, panels, *(graph or (None, None)), left=left, margins=margins)
    return figure


_SOLID: Any = {"linestyle": "-", "linewidth": 1.9, "color": LIGHT["s0"]}
_DASHED: Any = {"linestyle": (0, (3.2, 2)), "linewidth": 1.3, "color": LIGHT["muted"]}
_MARKERS = {"fold": "D", "hopf": "s", "pitchfork": "o", "transcritical": "X"}
_REDUCED: Any = {"linewidth": 3.4, "color": LIGHT["faint"]}


def _marker_style(kind: str) -> dict[str, Any]:
    """The marker of a kind of bifurcation point."""
    marker = {"marker": _MARKERS.get(kind, "v"), "markersize": 4, "linestyle": ""}
    return {**marker, "color": LIGHT["s0"], "markerfacecolor": "white"}


def _draw_diagram(ax: Any, diagram: Diagram) -> None:
    import numpy as np

    _plain(ax)
    ax.axhline(0.0, color=LIGHT["grid"], linewidth=0.8, zorder=0)
    if diagram.critical is not None:
        ax.axvline(diagram.critical, color=LIGHT["faint"], linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    for u, z, stable in diagram.reduced:
        for segment, solid in _segments(stable):
            ax.plot(u[segment], z[segment], linestyle="-" if solid else (0, (1.2, 0.8)), zorder=1, **_REDUCED)
    for u, z, stable in diagram.branches:
        for segment, solid in _segments(stable):
            ax.plot(u[segment], z[segment], zorder=2, **(_SOLID if solid else _DASHED))
    for kind, *where in diagram.points:
        ax.plot(*where, zorder=3, **_marker_style(kind))
    for number, (label, u, z) in enumerate(diagram.paths):
        ax.plot(u, z, color=LIGHT[f"s{number + 1}"], linewidth=1.2, label=label, zorder=4)
        middle = int(np.abs(np.diff(z)).argmax())
        arrow = {"arrowstyle": "-|>", "color": LIGHT[f"s{number + 1}"], "linewidth": 1.2}
        ax.annotate("", (u[middle + 1], z[middle + 1]), (u[middle], z[middle]), arrowprops=arrow, zorder=4)
    drawn = [*diagram.branches, *diagram.reduced]
    longest = max(float(branch[0].max()) for branch in drawn)
    highest = max([float(np.abs(branch[1]).max()) for branch in drawn] + [abs(mark[2]) for mark in diagram.marks])
    highest = highest if highest > 1e-9 else 1.0  # rounding is no scale
    for mark in diagram.marks:
        _draw_mark(ax, diagram, mark, longest, highest)
    ax.set_xlim(min(0.0, *(float(branch[0].min()) for branch in drawn)), longest)
    ax.set_ylim(-1.12 * highest, 1.12 * highest)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel(diagram.label)
    ax.set_ylabel("weighted average opinion z")
    ax.set_title(diagram.title, loc="left", fontsize=9)
    corner = {"textcoords": "offset points", "ha": "right", "va": "top"}
    if diagram.critical is not None:
        ax.annotate("u*", (diagram.critical, 1.12 * highest), (-3, 0), color=LIGHT["muted"], **corner)
    _legend(ax, diagram)


def _draw_mark(
    ax: Any, diagram: Diagram, mark: tuple[str, float, float, float], longest: float, highest: float
) -> None:
    """A dot at the start of a simulation, and an arrow to its end unless both are close."""
    label, u, start, end = mark
    if abs(end - start) > 0.04 * highest:
        arrow = {"arrowstyle": "-|>", "color": LIGHT["s1"], "linewidth": 1.1, "shrinkA": 3, "shrinkB": 0}
        ax.annotate("", (u, end), (u, start), arrowprops=arrow, zorder=4)
    ax.plot(u, start, "o", color=LIGHT["s1"], markersize=4.5, zorder=5)
    side = _label_side(diagram, u / longest, start / highest, longest, highest)
    place = {"xytext": (6 * side, 2), "textcoords": "offset points", "ha": "left" if side > 0 else "right"}
    ax.annotate(f"({label})", (u, start), color=LIGHT["s1"], fontweight="bold", zorder=6, **place)


def _label_side(diagram: Diagram, x: float, y: float, longest: float, highest: float) -> int:
    """The side of a point (-1 or 1) on which a label is farther from the branches; x and y are relative to the axes."""
    import numpy as np

    u = np.concatenate([branch[0] for branch in diagram.branches]) / longest
    z = np.concatenate([branch[1] for branch in diagram.branches]) / highest
    left, right = (float(np.hypot(u - x - side * 0.06, 0.5 * (z - y)).min()) for side in (-1, 1))
    return 1 if right >= left else -1


def _legend(ax: Any, diagram: Diagram) -> None:
    from matplotlib.lines import Line2D

    entries = [Line2D([], [], label="stable", **_SOLID), Line2D([], [], label="unstable", **_DASHED)]
    entries += [
        Line2D([], [], label=kind, **_marker_style(kind)) for kind in dict.fromkeys(p[0] for p in diagram.points)
    ]
    colours = [LIGHT[f"s{number + 1}"] for number in range(len(diagram.paths))]
    entries += [Line2D([], [], label=path[0], color=c) for path, c in zip(diagram.paths, colours, strict=True)]
    if diagram.reduced:
        entries.append(Line2D([], [], label="one-dimensional reduction", **_REDUCED))
    ax.legend(
        handles=entries,
        frameon=False,
        fontsize=7.5,
        labelspacing=0.3,
        borderaxespad=0.1,
        loc="upper left" if diagram.paths else "lower left",
    )


def _draw_panels(
    figure: Any,
    panels: Sequence[Panel],
    edges: np.ndarray | None,
    positions: np.ndarray | None,
    *,
    left: float,
    margins: dict[str, float],
) -> None:
    import numpy as np
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    # Grey in the middle, so that neutral agents are visible on white.
    shades = [LIGHT["s0"], "#4c93d9", "#cdd2d7", "#f08a52", LIGHT["s1"]]
    colours = LinearSegmentedColormap.from_list("opinion", shades)
    limit = max(float(np.abs(panel.states).max()) for panel in panels) or 1.0
    colour_map = ScalarMappable(Normalize(-limit, limit), colours)
    columns = min(2, len(panels))
    width = figure.get_figwidth()
    grid = figure.add_gridspec(
        (len(panels) + 1) // 2,
        columns,
        left=left,
        right=1.0 - 0.88 / width,
        wspace=0.1 if columns > 1 else 0.0,
        **margins,
    )
    for index, panel in enumerate(panels):
        place = grid[index // columns, index % columns]
        if positions is None or edges is None:
            curves = figure.add_subplot(place)
            note = panel.note.replace("\n", "; ")
            curves.set_title(f"{panel.title}: {note}" if note else panel.title, loc="left", fontsize=7.5)
        else:
            cell = place.subgridspec(1, 2, width_ratios=(1.2, 1.0), wspace=0.32 if width > 8 or columns == 1 else 0.55)
            _draw_agents(figure.add_subplot(cell[0]), panel, edges, positions, colour_map)
            curves = figure.add_subplot(cell[1])
        _draw_curves(curves, panel, limit, colour_map)
    height = margins["top"] - margins["bottom"]
    bar = figure.colorbar(
        colour_map,
        cax=figure.add_axes((1.0 - 0.72 / width, margins["bottom"] + 0.15 * height, 0.1 / width, 0.7 * height)),
    )
    bar.set_label("opinion", labelpad=1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, width=0.6)


def _draw_agents(ax: Any, panel: Panel, edges: np.ndarray, positions: np.ndarray, colour_map: Any) -> None:
    import numpy as np
    from matplotlib.collections import LineCollection

    n = len(positions)
    if edges.shape[1] <= _MAX_EDGES:
        friendly = edges[2] >= 0 if len(edges) > 2 else np.ones(edges.shape[1], dtype=bool)
        for chosen, style in ((friendly, "-"), (~friendly, (0, (2.5, 2)))):
            ends = positions[edges[:2, chosen].astype(int).T]
            width = float(np.clip(300.0 / max(edges.shape[1], 1), 0.1, 0.5))
            lines = LineCollection(list(ends), colors=LIGHT["faint"], linewidths=width, linestyles=style, zorder=1)
            ax.add_collection(lines)
    size = float(np.clip(3200.0 / n, 3.0, 60.0))
    order = np.argsort(np.abs(panel.states[-1]))  # strong opinions in front
    ax.scatter(
        *positions[order].T,
        s=size,
        c=colour_map.to_rgba(panel.states[-1][order]),
        edgecolors="white",
        linewidths=0.3 if n <= 500 else 0.0,
        zorder=2,
        clip_on=False,
    )
    # Widen the limits instead of shrinking the axes, so that title and note stay where they are.
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.06)
    ax.axis("off")
    ax.set_title(panel.title, loc="left", fontsize=9)
    ax.text(0.0, -0.03, panel.note, transform=ax.transAxes, color=LIGHT["muted"], va="top")


def _draw_curves(ax: Any, panel: Panel, limit: float, colour_map: Any) -> None:
    import numpy as np
    from matplotlib.collections import LineCollection

    _plain(ax)
    points = np.stack([np.broadcast_to(panel.times[:, None], panel.states.shape), panel.states], axis=-1)
    segments = np.stack([points[:-1], points[1:]], axis=2)  # [steps - 1, n, 2 ends, 2]
    middle = 0.5 * (panel.states[:-1] + panel.states[1:])
    lines = LineCollection(
        list(segments.reshape(-1, 2, 2)),
        colors=colour_map.to_rgba(middle.ravel()),
        linewidths=float(np.clip(30.0 / panel.states.shape[1], 0.5, 1.1)),
        capstyle="round",  # no visible gap or overlap between the segments of a line
        rasterized=True,
    )
    ax.axhline(0.0, color=LIGHT["grid"], linewidth=0.8, zorder=0)
    ax.add_collection(lines)
    first, last = float(panel.times[0]), float(panel.times[-1])
    if not np.allclose(np.diff(panel.times), (last - first) / (len(panel.times) - 1)):
        # Times that grow by a factor need a logarithmic axis, which cannot show the state at time zero.
        first = float(panel.times[panel.times > 0][0])
        ax.set_xscale("log")
        decades = 10.0 ** np.arange(np.ceil(np.log10(first)), np.floor(np.log10(last)) + 1)
        ax.set_xticks(decades, [f"{decade:g}" for decade in decades])
        ax.minorticks_off()
    ax.set_xlim(first, last)
    ax.set_ylim(-1.05 * limit, 1.05 * limit)
    ax.set_xlabel("time", labelpad=1)
    ax.set_ylabel("opinion", labelpad=0)
    ax.tick_params(labelsize=7.5)


def _plain(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=2.5, width=0.6)
    ax.locator_params(axis="y", nbins=5, steps=[1, 2, 5, 10])


def _segments(stable: np.ndarray) -> list[tuple[slice, bool]]:
    """Segments of equal stability, each with a flag. Between two points a branch is stable if it is at both."""
    pairs = (stable[:-1] & stable[1:]).tolist()
    segments, first = [], 0
    for index in range(1, len(pairs) + 1):
        if index == len(pairs) or pairs[index] != pairs[first]:
            segments.append((slice(first, index + 1), pairs[first]))
            first = index
    return segments


def _layout(matrix: csr_array, shape: str = "") -> np.ndarray:
    """Positions of the agents, [n, 2]: on a grid, by a spring layout, on a circle, or for large graphs on a disc.

    Args:
        matrix: the communication matrix, [n, n].
        shape: ``grid``, ``cycle`` or ``complete`` if the graph is known to be one.
    """
    import numpy as np
    from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

    n = matrix.shape[0]
    if shape == "grid":
        width = ceil(sqrt(n))
        return np.stack([np.arange(n) % width, -(np.arange(n) // width)], axis=1).astype(float)
    if n > _MAX_SPRING_NODES:
        # A sunflower spiral, in an order in which neighbours are close to each other.
        place = np.empty(n)
        place[reverse_cuthill_mckee(matrix)] = np.arange(n)
        angle, radius = place * np.pi * (3.0 - sqrt(5.0)), np.sqrt(place + 0.5)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    if shape not in ("cycle", "complete") and importlib.util.find_spec("networkx") is not None:
        import networkx

        # A weak attraction between all agents keeps the components of the graph together.
        pull = 0.0 if connected_components(matrix, directed=False)[0] == 1 else 0.1 * abs(matrix).max()
        weights = abs(matrix) if n > 500 else abs(matrix).toarray() + pull
        springs = networkx.from_scipy_sparse_array(weights) if n > 500 else networkx.from_numpy_array(weights)
        # Large graphs need fewer steps from the spectral layout.
        start = networkx.spectral_layout(springs, weight=None) if n > 500 else None
        places = networkx.spring_layout(springs, pos=start, seed=1, iterations=30 if n > 500 else 200)
        return np.array([places[k] for k in range(n)])
    angle = 2.0 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _edges_of(matrix: csr_array) -> np.ndarray:
    """Pairs of connected agents, each once, and the sum of their weights in both directions, [3, edges]."""
    import numpy as np

    row, col = (abs(matrix) + abs(matrix.T)).tocoo().coords
    once = row < col
    if not once.any():  # scipy gives a sparse array where no entries are asked for
        return np.empty((3, 0))
    return np.stack([row[once], col[once], (matrix + matrix.T)[row[once], col[once]]])
