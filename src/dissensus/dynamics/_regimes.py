"""The figure of nonlinear opinion dynamics: pitchfork, unfolding, and simulations below, at and above u*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from dissensus.dynamics._bifurcation import bifurcation
from dissensus.dynamics._convert import AnyGraph
from dissensus.dynamics._diagram import Bifurcation
from dissensus.dynamics._files import Columns, write_csv
from dissensus.dynamics._simulate import simulate
from dissensus.dynamics._simulation import Simulation
from dissensus.dynamics._system import system
from dissensus.errors import InputError
from dissensus.report import Panel, draw_opinions


@dataclass(frozen=True)
class Regimes:
    """Two diagrams, and simulations from one start.

    Attributes:
        plain: without input, a pitchfork.
        unfolded: with input.
        runs: ``a``, less attention than u*; ``b``, more; ``c``, u* itself; ``d``, u* with the input; ``e``, as b from
            the reversed start.
        attention: of each run, relative to u*.
    """

    plain: Bifurcation
    unfolded: Bifurcation
    runs: dict[str, Simulation] = field(repr=False)
    attention: dict[str, float]

    @property
    def diagrams(self) -> dict[str, Bifurcation]:
        """Both diagrams by their input."""
        return {"b=0": self.plain, "b>0": self.unfolded}

    def summary(self) -> dict[str, Any]:
        """u*, the diagrams and what every run came to, as JSON has it; what fades without an end is zero there."""
        return {
            "critical_attention": self.plain.critical,
            "diagrams": [{"input": name, **found.summary()} for name, found in self.diagrams.items()],
            "panels": [self._panel(label) for label in self.runs],
        }

    def _panel(self, label: str) -> dict[str, Any]:
        run, weights = self.runs[label], self.plain.weights
        summary, final = run.summary(), run.final.numpy()
        limit = 0.0 * final if summary.neutral else final
        assert run.system is not None
        spread = "" if summary.verdict == "consensus" else f", variance {summary.variance[0]:.2g}"
        return {
            "panel": label,
            "attention": self.attention[label] * self.plain.critical,
            "words": f"{summary}{spread}",
            "z_start": float((weights * run.states[0].numpy()).sum()),
            "z": float((weights * limit).sum()),
            **{name: value[0] if isinstance(value, tuple) else value for name, value in asdict(summary).items()},
            "residual": float(abs(run.system.flow().rates(limit, 1.0)).max()),
        }

    def __str__(self) -> str:
        lines = [f"critical attention u* = {self.plain.critical:.6g}"]
        for words, found in zip(("without", "with"), self.diagrams.values(), strict=True):
            branches = ", ".join(dict.fromkeys(branch.name for branch in found.branches))
            points = dict.fromkeys(f"{p.criticality} {p.kind} at u = {p.parameter:.6g}".strip() for p in found.points)
            lines.append(f"{words} input: branches {branches}; {', '.join(points) or 'no points of interest'}")
        return "\n".join([*lines, *(f"({k}) {self._place(k)}: {self._panel(k)['words']}" for k in self.runs)])

    def _place(self, label: str) -> str:
        ratio = self.attention[label]
        sign = "=" if ratio == 1.0 else "<" if ratio < 1.0 else ">"
        return f"u {sign} u*, b {'> 0' if label == 'd' else '= 0'}{', reversed' * (label == 'e')}"

    def plot(self, path: str | Path | Sequence[Path] | None = None, *, shape: str = "") -> Any:
        """Both diagrams beside the runs on their graph; see :meth:`Simulation.plot`."""
        panels = {label: self._panel(label) for label in self.runs}
        marks = [(label, p["attention"], p["z_start"], p["z"]) for label, p in panels.items()]
        pictured = [
            self.plain.diagram("b = 0: pitchfork", [mark for mark in marks if mark[0] != "d"]),
            self.unfolded.diagram("b > 0: unfolding", [mark for mark in marks if mark[0] == "d"]),
        ]
        drawn = [
            Panel(f"({k})  {self._place(k)}", run.times.numpy(), run.states[:, :, 0].numpy(), panels[k]["words"])
            for k, run in self.runs.items()
        ]
        system = self.runs["a"].system
        assert system is not None
        files = [] if path is None else [Path(path)] if isinstance(path, str | Path) else list(path)
        return draw_opinions(files, pictured, drawn, system.communication, shape)

    def save(self, path: str | Path) -> None:
        """Write a ``.csv`` file: the opinions over time where it is called ``panels.csv``, else the branches.

        Branches are those of the whole system, with all opinions, and of its one-dimensional reduction, without.
        """
        if Path(path).name == "panels.csv":
            tables: list[Columns] = [{"panel": label, **run.columns()} for label, run in self.runs.items()]
            return write_csv(path, tables)
        parts: list[Columns] = []
        for name, found in self.diagrams.items():
            for whole, part in (("full", found), ("reduced", found.reduced)):
                if part is not None:
                    columns = {c: v for c, v in part.columns().items() if part is found or c[0] != "x"}
                    parts.append({"diagram": name, "system": whole, **dict.fromkeys(found.columns(), ""), **columns})
        return write_csv(path, parts)


def regimes(
    graph: AnyGraph,
    x0: Any = None,
    *,
    input: Any = 0.15,
    average: float = 0.3,
    low: float = 0.6,
    high: float = 1.75,
    range: float = 2.0,
    time: float = 1000.0,
    seed: int = 1,
    **parameters: Any,
) -> Regimes:
    """What agents do below, at and above the critical attention, with and without input, on one option.

    Args:
        graph: of any kind that :func:`as_matrix` takes.
        x0: initial opinions, [n]; None draws them uniformly from [-1, 1] and moves them by a constant to the weighted
            average ``average``.
        input: of the unfolding and of run d: an array [n], or, as a number, the share of the initial opinions.
        average: see ``x0``.
        low, high: attention of runs a and b, relative to u*.
        range: end of the diagrams, relative to u*; at most 50.
        time: end of the simulations; their times are spread evenly on a logarithmic scale.
        seed: of the initial opinions.
        **parameters: see :class:`System`; no attention and no input.
    """
    if not 0 < low < 1 < high <= range <= 50:
        raise InputError(f"0 < low < 1 < high <= range <= 50 must hold: got {low:g}, {high:g}, {range:g}")
    if not (1 < time < inf and 0 < average < inf):
        raise InputError(
            f"time is {time:g} and average {average:g}: time must be above 1, average above 0, both finite"
        )
    critical = system(graph, **parameters).flow().critical()
    if x0 is None:
        start = np.random.default_rng(seed).uniform(-1.0, 1.0, critical.weights.shape)
        missing, total = average - (critical.weights * start).sum(), critical.weights.sum()
        # Camps of equal weight have an average of zero under any constant: moved along the critical direction.
        start = start + (missing * critical.direction if abs(total) < 1e-6 else missing / total)
    else:
        start = np.asarray(x0, dtype=np.float64).reshape(-1, 1)
    source = np.asarray(input, dtype=np.float64)
    if not (np.isfinite(source).all() and source.any()):
        raise InputError("the input is zero or not finite: give another, for the unfolding")
    source = source * start if source.ndim == 0 else source.reshape(-1, 1)
    plain, unfolded = (
        bifurcation(graph, u_max=range * critical.attention, max_branches=3, **{**parameters, "input": b})
        for b in (0.0, source)
    )
    times = np.concatenate([[0.0], np.geomspace(0.1, time, 160)])
    attention = {"a": low, "b": high, "c": 1.0, "d": 1.0, "e": high}
    runs = {}
    for label, ratio in attention.items():
        given = {**parameters, "attention": ratio * plain.critical, "input": source if label == "d" else 0.0}
        runs[label] = simulate(graph, -start if label == "e" else start, times=times, **given)
    return Regimes(plain, unfolded, runs, attention)
