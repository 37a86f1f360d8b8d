"""Bifurcation diagrams: branches of equilibria and their points of interest, as tables, files and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dissensus.dynamics._files import load_arrays, save_arrays, write_csv
from dissensus.dynamics._flow import Array
from dissensus.errors import optional
from dissensus.report import Diagram, draw_opinions


@dataclass(frozen=True)
class Branch:
    """One curve of equilibria, in the order in which it was followed.

    Attributes:
        name: ``neutral`` (x = 0); ``connected`` (from zero attention, under input); ``upper`` and ``lower`` (the two
            that leave it first); ``primary`` (others that leave it); ``secondary`` (those that leave other branches);
            ``disconnected`` (found from stable states at the end of the range); or ``all`` (hysteresis).
        parameter: the attention u, or the input strength, [points].
        z: weighted average opinion, [points].
        states: equilibria, [points, n, o].
        eigenvalues: of the Jacobian, the one of largest real part, [points], complex.
        stable: it is not positive, [points]; a branch point itself, where it is zero, counts as stable.
    """

    name: str
    parameter: Array = field(repr=False)
    z: Array = field(repr=False)
    states: Array = field(repr=False)
    eigenvalues: Array = field(repr=False)
    stable: Array = field(repr=False)


@dataclass(frozen=True)
class Point:
    """A point of interest on a branch.

    Attributes:
        kind: ``pitchfork`` (branches leave to one side), ``transcritical`` (to both sides), ``fold`` (the branch turns
            back), ``hopf`` (an oscillation leaves), or ``crossing`` (a branch point from which none was followed).
        parameter: the attention u, or the input strength.
        z: weighted average opinion.
        state: [n, o]
        criticality: ``supercritical`` where what leaves lies on the side on which this branch is less stable (so a
            stable branch hands over gently), ``subcritical`` on the other (opinions jump); empty where neither is said.
        dimension: of the kernel of the Jacobian, more than one by symmetry; 2 at a Hopf point.
    """

    kind: str
    parameter: float
    z: float
    state: Array = field(repr=False)
    criticality: str = ""
    dimension: int = 1


@dataclass(frozen=True)
class Bifurcation:
    """Equilibria over the attention.

    Attributes:
        critical: u* of the system without input, as :func:`critical_attention` has it.
        weights: w of the ordinate ``z = <w, x>``, [n, o]: the leading left eigenvector, of absolute sum one.
        direction: the leading right eigenvector v, [n, o], with ``<w, v> = 1`` where it is unique.
        branches: the curves.
        points: pitchforks, folds and the like, in the order in which they were found.
        reduced: the same diagram of the one-dimensional equation ``y' = -d y + S(u m y) + <w, b>``, whose y stands for
            z; m = alpha + 3 for right-stochastic matrices. None in a reduced diagram, and where an oscillation leads or
            the critical direction is not unique.
    """

    critical: float
    weights: Array = field(repr=False)
    direction: Array = field(repr=False)
    branches: tuple[Branch, ...]
    points: tuple[Point, ...]
    reduced: Bifurcation | None = field(default=None, repr=False)

    @property
    def folds(self) -> tuple[Point, ...]:
        """The points at which a branch turns back."""
        return tuple(point for point in self.points if point.kind == "fold")

    def __getitem__(self, name: str) -> Branch:
        """The first branch of that name."""
        for branch in self.branches:
            if branch.name == name:
                return branch
        raise KeyError(f"no branch {name!r}; there are: {', '.join(branch.name for branch in self.branches)}")

    def plot(self, path: str | Path | None = None, title: str = "") -> Any:
        """Branches, stable ones solid, with their points of interest; a matplotlib figure of one journal column.

        Args:
            path: also write the figure there: ``.png``, ``.svg`` or ``.pdf``.
            title: shown above.
        """
        return draw_opinions([] if path is None else [Path(path)], [self.diagram(title)])

    def diagram(self, title: str, marks: Sequence[tuple[str, float, float, float]] = ()) -> Diagram:
        """What a drawing needs; ``marks`` are (label, u, z at the start, z at the end) of simulations."""
        curves, reduced = (
            [(branch.parameter, branch.z, branch.stable) for branch in part.branches] if part is not None else []
            for part in (self, self.reduced)
        )
        points = [(point.kind, point.parameter, point.z) for point in self.points]
        return Diagram(title, curves, self.critical, reduced, marks, points)

    def summary(self) -> dict[str, Any]:
        """Points of interest and branches, without their states, as JSON has them."""
        points = [
            {"kind": p.kind, "criticality": p.criticality, "attention": p.parameter, "z": p.z} for p in self.points
        ]
        branches = [
            {"name": b.name, "attention": b.parameter.tolist(), "z": b.z.tolist(), "stable": b.stable.tolist()}
            for b in self.branches
        ]
        return {"points": points, "branches": branches}

    def columns(self) -> dict[str, Array]:
        """The columns of a table with a line per point: branch, name, attention, z, stable, eigenvalue, opinions."""
        counts = [len(branch.z) for branch in self.branches]
        states = np.concatenate([branch.states for branch in self.branches])
        table = {
            "branch": np.repeat(np.arange(len(counts)), counts),
            "name": np.repeat([branch.name for branch in self.branches], counts),
            "attention": np.concatenate([branch.parameter for branch in self.branches]),
            "z": np.concatenate([branch.z for branch in self.branches]),
            "stable": np.concatenate([branch.stable for branch in self.branches]).astype(int),
            "eigenvalue": np.concatenate([branch.eigenvalues.real for branch in self.branches]),
        }
        return table | {f"x{i}_{j}": states[:, i, j] for i, j in np.ndindex(states.shape[1:])}

    def to_dataframe(self) -> Any:
        """A pandas table of :meth:`columns`."""
        return optional("pandas", "pandas").DataFrame(self.columns())

    def save(self, path: str | Path) -> None:
        """Write everything to an ``.npz`` file, for :meth:`load`; or :meth:`columns` to a ``.csv`` file."""
        if Path(path).suffix == ".csv":
            return write_csv(path, [self.columns()])
        arrays: dict[str, Any] = {}
        return save_arrays(path, "bifurcation", {"diagram": _describe(self, "", arrays)}, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Bifurcation:
        """A diagram that :meth:`save` wrote."""
        about, arrays = load_arrays(path, "bifurcation")
        return _restore(about["diagram"], "", arrays)


_ARRAYS = ("parameter", "z", "states", "eigenvalues", "stable")


def _describe(found: Bifurcation, prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """What JSON can hold of a diagram; the rest goes to ``arrays``."""
    arrays |= {f"{prefix}weights": found.weights, f"{prefix}direction": found.direction}
    for k, branch in enumerate(found.branches):
        arrays |= {f"{prefix}branch{k}.{name}": getattr(branch, name) for name in _ARRAYS}
    if found.points:
        arrays[f"{prefix}points"] = np.stack([point.state for point in found.points])
    points = [[p.kind, p.parameter, p.z, p.criticality, p.dimension] for p in found.points]
    reduced = None if found.reduced is None else _describe(found.reduced, "reduced.", arrays)
    names = [branch.name for branch in found.branches]
    return {"critical": found.critical, "branches": names, "points": points, "reduced": reduced}


def _restore(about: dict[str, Any], prefix: str, arrays: Any) -> Bifurcation:
    branches = tuple(
        Branch(name, *(arrays[f"{prefix}branch{k}.{column}"] for column in _ARRAYS))
        for k, name in enumerate(about["branches"])
    )
    points = tuple(
        Point(kind, p, z, arrays[f"{prefix}points"][k], criticality, dimension)
        for k, (kind, p, z, criticality, dimension) in enumerate(about["points"])
    )
    reduced = None if about["reduced"] is None else _restore(about["reduced"], "reduced.", arrays)
    weights, direction = arrays[f"{prefix}weights"], arrays[f"{prefix}direction"]
    return Bifurcation(about["critical"], weights, direction, branches, points, reduced)
