"""Draw bifurcation diagrams of nonlinear opinion dynamics: equilibria over the attention, and agents on the graph.

The upper diagram is without input, a pitchfork at the critical attention u*; the lower one, its unfolding, with a share
of the initial opinions as input. Beside them four simulations from the same initial opinions: (a) less attention
than u*, (b) more, (c) u* itself, (d) u* with the input. The defaults draw the figure on nonlinear opinion dynamics of
"Resolving Oversmoothing with Opinion Dissensus". With -o FOLDER: the picture, and as tables branches and panels.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli._opinions import (
    communication,
    configure_graph,
    count,
    edges_of,
    layout,
    need_matplotlib,
    outputs,
    verdict,
    write_csv,
)
from dissensus.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from dissensus.dynamics import Bifurcation, Simulation, Summary
    from dissensus.report import Diagram


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    configure_graph(parser, agents=25)
    parser.add_argument(
        "--input",
        type=float,
        default=0.15,
        metavar="S",
        help="input of the lower diagram, relative to initial opinions",
    )
    parser.add_argument(
        "--average", type=float, default=0.3, metavar="Z", help="weighted average of the initial opinions, positive"
    )
    parser.add_argument("--low", type=float, default=0.6, metavar="R", help="attention of (a), relative to u*")
    parser.add_argument("--high", type=float, default=1.75, metavar="R", help="attention of (b), relative to u*")
    parser.add_argument("--range", type=float, default=2.0, metavar="R", help="end of the diagrams, relative to u*")
    parser.add_argument("--time", type=float, default=1000.0, metavar="T", help="end of the simulations")


@dataclass(frozen=True)
class _Run:
    """One of the four simulations: attention and input relative to u* and to the initial opinions."""

    label: str
    attention: float
    input: float
    simulation: "Simulation"
    summary: "Summary"

    @property
    def limit(self) -> "np.ndarray":
        """Where the opinions tend to, [n, 1]: what fades without an end to see is zero there."""
        final = self.simulation.final.numpy()
        return 0.0 * final if self.summary.neutral else final

    @property
    def residual(self) -> float:
        """The largest change of an opinion in a unit of time at the limit: zero but for a simulation too short."""
        system = self.simulation.system
        assert system is not None
        return float(abs(system.flow().evaluate(self.limit, 1.0).f).max())


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    pictures, tables = outputs(args.output, "bifurcation", ["branches", "panels"])
    need_matplotlib(pictures)
    _check(args)
    from scipy.sparse.csgraph import connected_components

    from dissensus import dynamics

    matrix = communication(args)
    parameters = {
        "damping": args.damping,
        "self_reinforcement": args.self_reinforcement,
        "saturation": args.saturation,
        "normalize": args.normalize,
    }
    critical = float(dynamics.System(matrix, **parameters).attention)
    print(f"following branches of {count(matrix.shape[0], 'agent')}, u* = {critical:.6g}", file=sys.stderr)
    if connected_components(matrix, connection="strong")[0] > 1:
        print(
            "not all agents hear one another: the branches are those of the part that loses stability first, and there "
            "are more",
            file=sys.stderr,
        )
    plain = dynamics.bifurcation(matrix, u_max=args.range * critical, **parameters)
    start = _initial(args, plain)
    unfolded = dynamics.bifurcation(matrix, u_max=args.range * critical, input=args.input * start, **parameters)
    runs = [
        _simulate(args, label, attention, strength, critical, matrix, start, parameters)
        for label, attention, strength in (
            ("a", args.low, 0.0),
            ("b", args.high, 0.0),
            ("c", 1.0, 0.0),
            ("d", 1.0, args.input),
        )
    ]
    diagrams = {"0": plain, "b": unfolded}
    if pictures:
        _draw(args, pictures, diagrams, runs, matrix)
    if "branches" in tables:
        write_csv(tables["branches"], _BRANCH_COLUMNS, _branch_rows(diagrams))
    if "panels" in tables:
        write_csv(tables["panels"], ("panel", "time", "agent", "opinion"), _opinion_rows(runs))
    files = [str(path) for path in (*pictures, *tables.values())]
    if args.json:
        print(json.dumps({**_answer(args, diagrams, runs, start), "files": files}))
        return 0
    _print(diagrams, runs)
    for file in files:
        print(f"wrote {file}", file=sys.stderr)
    return 0


def _check(args: argparse.Namespace) -> None:
    if not 0 < args.low < 1 < args.high <= args.range < inf:
        raise InputError(
            f"0 < --low < 1 < --high <= --range < inf must hold: got {args.low:g}, {args.high:g}, {args.range:g}"
        )
    if not (0 < args.input < inf and 0 < args.average < inf):
        raise InputError(f"--input {args.input:g} and --average {args.average:g}: both must be positive and finite")
    if not 1 < args.time < inf:
        raise InputError(f"--time is {args.time:g}: give more than 1, and an end")


def _initial(args: argparse.Namespace, plain: "Bifurcation") -> "np.ndarray":
    """Uniform random opinions, moved by a constant to the wanted weighted average."""
    import numpy as np

    x = np.random.default_rng(args.seed).uniform(-1.0, 1.0, plain.weights.shape)
    if abs(plain.weights.sum()) < 1e-6:
        return x + (args.average - (plain.weights * x).sum()) * plain.direction
    return x + (args.average - (plain.weights * x).sum()) / plain.weights.sum()


def _simulate(
    args: argparse.Namespace,
    label: str,
    attention: float,
    strength: float,
    critical: float,
    matrix: Any,
    start: "np.ndarray",
    parameters: dict[str, Any],
) -> _Run:
    import numpy as np

    from dissensus import dynamics

    times = np.concatenate([[0.0], np.geomspace(0.1, args.time, 160)])
    system = dynamics.System(matrix, attention=attention * critical, input=strength * start, **parameters)
    simulation = dynamics.simulate(system, start, times=times)
    return _Run(label, attention, strength, simulation, simulation.summary())


def _describe(run: _Run) -> str:
    spread = "" if run.summary.verdict == "consensus" else f", variance {run.summary.variance[0]:.2g}"
    return f"{verdict(run.summary)}{spread}"


def _draw(
    args: argparse.Namespace, pictures: list[Path], diagrams: dict[str, "Bifurcation"], runs: list[_Run], matrix: Any
) -> None:
    from dissensus.report import Panel, draw_bifurcation

    weights = diagrams["0"].weights
    marks = [
        (
            run.label,
            run.attention * diagrams["0"].critical,
            *((weights * x).sum() for x in (run.simulation.states[0].numpy(), run.limit)),
        )
        for run in runs
    ]
    pictured = [
        _diagram(
            "b = 0: pitchfork", diagrams["0"], [mark for mark, run in zip(marks, runs, strict=True) if not run.input]
        ),
        _diagram("b > 0: unfolding", diagrams["b"], [mark for mark, run in zip(marks, runs, strict=True) if run.input]),
    ]
    panels = [
        Panel(
            f"({run.label})  {_place(run)}",
            run.simulation.times.numpy(),
            run.simulation.states[:, :, 0].numpy(),
            _describe(run),
        )
        for run in runs
    ]
    draw_bifurcation(pictures, pictured, panels, edges_of(matrix), layout(args, matrix))


def _place(run: _Run) -> str:
    sign = "=" if run.attention == 1.0 else "<" if run.attention < 1.0 else ">"
    return f"u {sign} u*, b {'> 0' if run.input else '= 0'}"


def _diagram(title: str, found: "Bifurcation", marks: list[Any]) -> "Diagram":
    from dissensus.report import Diagram

    def curves(branches: Any) -> list[Any]:
        return [(branch.parameter, branch.z, branch.stable) for branch in branches]

    reduced = [] if found.reduced is None else curves(found.reduced.branches)
    folds = [(point.parameter, point.z) for point in found.folds]
    return Diagram(title, curves(found.branches), found.critical, reduced, marks, folds)


_BRANCH_COLUMNS = ("diagram", "system", "branch", "name", "attention", "z", "stable", "eigenvalue")


def _branch_rows(diagrams: dict[str, "Bifurcation"]) -> Iterator[tuple[Any, ...]]:
    """Every point of every branch: of the whole system, and of the equation reduced to one dimension."""
    for diagram, found in diagrams.items():
        for system, part in (("full", found), ("reduced", found.reduced)):
            for number, branch in enumerate(part.branches if part is not None else ()):
                columns = (branch.parameter, branch.z, branch.stable.astype(int), branch.eigenvalues.real)
                for row in zip(*(column.tolist() for column in columns), strict=True):
                    yield "b=0" if diagram == "0" else "b>0", system, number, branch.name, *row


def _opinion_rows(runs: list[_Run]) -> Iterator[tuple[str, float, int, float]]:
    for item in runs:
        for time, state in zip(item.simulation.times.tolist(), item.simulation.states[:, :, 0].tolist(), strict=True):
            for agent, opinion in enumerate(state):
                yield item.label, time, agent, opinion


def _answer(
    args: argparse.Namespace, diagrams: dict[str, "Bifurcation"], runs: list[_Run], start: "np.ndarray"
) -> dict[str, Any]:
    weights = diagrams["0"].weights
    return {
        "graph": args.graph,
        "agents": len(weights),
        "critical_attention": diagrams["0"].critical,
        "diagrams": [
            {
                "input": 0.0 if name == "0" else float((weights * args.input * start).sum()),
                "points": [{"kind": p.kind, "attention": p.parameter, "z": p.z} for p in found.points],
                "branches": [
                    {
                        "name": branch.name,
                        "attention": branch.parameter.tolist(),
                        "z": branch.z.tolist(),
                        "stable": branch.stable.tolist(),
                    }
                    for branch in found.branches
                ],
            }
            for name, found in diagrams.items()
        ],
        "panels": [
            {
                "panel": item.label,
                "attention": item.attention * diagrams["0"].critical,
                "verdict": item.summary.verdict,
                "neutral": item.summary.neutral,
                "z_start": float((weights * start).sum()),
                "z": float((weights * item.limit).sum()),
                "mean": item.summary.mean[0],
                "variance": item.summary.variance[0],
                "residual": item.residual,
            }
            for item in runs
        ],
    }


def _print(diagrams: dict[str, "Bifurcation"], runs: list[_Run]) -> None:
    print(f"critical attention u* = {diagrams['0'].critical:.6g}")
    for name, found in diagrams.items():
        branches = ", ".join(branch.name for branch in found.branches)
        points = ", ".join(dict.fromkeys(f"{point.kind} at u = {point.parameter:.6g}" for point in found.points))
        print(f"{'without' if name == '0' else 'with'} input: branches {branches}; {points or 'no points of interest'}")
    for item in runs:
        print(f"({item.label}) {_place(item)}: {_describe(item)}")
