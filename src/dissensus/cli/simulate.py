"""Simulate opinions on a graph: nonlinear opinion dynamics, DeGroot's model, or continuous-time consensus.

Without --attention the nonlinear model runs at the critical attention u*, above which the neutral opinion is unstable;
there opinions without input fade to neutral consensus, but so slowly (at best like 1/sqrt(t)) that some are left to
see. In DeGroot's model every agent also listens to itself, with weight one before the rows are normalised. Initial
opinions are uniform in [-1, 1]. With -o FOLDER: opinions over time and on the graph as a picture, and all opinions as a
table.
"""

import argparse
import json
import sys
from collections.abc import Iterator
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
from dissensus.errors import InputError, SolverError

if TYPE_CHECKING:
    import numpy as np

    from dissensus.dynamics import Simulation, Summary


# The parameters of the nonlinear model alone, and what they are where they were not given.
_NONLINEAR = {
    "attention": None,
    "relative_attention": None,
    "input": "0",
    "option_weight": 0.0,
    "damping": 1.0,
    "self_reinforcement": 1.0,
    "saturation": "tanh",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    configure_graph(parser, agents=100)
    parser.add_argument("--model", default="nonlinear", metavar="NAME", help="nonlinear, degroot or consensus")
    parser.add_argument("--attention", type=float, metavar="U", help="attention u (default: the critical one)")
    parser.add_argument("--relative-attention", type=float, metavar="R", help="attention as a multiple of u*")
    parser.add_argument("--options", type=int, default=1, metavar="N", help="number of options")
    parser.add_argument(
        "--option-weight", type=float, default=0.0, metavar="W", help="weight between any two options, of either sign"
    )
    parser.add_argument(
        "--input",
        default="0",
        metavar="B",
        help="input b: a number for all; 'initial' for the initial opinions, 'initial*0.2' for a share of them; or a "
        ".csv file with a line of numbers an agent",
    )
    parser.add_argument(
        "--initial",
        default="random",
        metavar="X",
        help="initial opinions: 'random', or a .csv file with a line an agent",
    )
    parser.add_argument("--time", type=float, default=50.0, metavar="T", help="end of the simulation")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    pictures, tables = outputs(args.output, "opinions", ["opinions"])
    need_matplotlib(pictures)
    if args.options < 1:
        raise InputError(f"--options is {args.options}: give at least 1")
    if args.attention is not None and args.relative_attention is not None:
        raise InputError("--attention and --relative-attention say the same thing: leave one out")
    import scipy.sparse

    from dissensus import dynamics

    matrix = communication(args)
    start = _initial(args, matrix.shape[0])
    parameters, critical = _parameters(args, matrix, start)
    if args.model == "degroot":
        # Without a weight on the own opinion, agents of a bipartite graph such as the grid swap opinions for ever.
        matrix = dynamics.as_matrix(matrix + scipy.sparse.eye_array(matrix.shape[0]))
    try:
        simulation = dynamics.simulate(matrix, start, model=args.model, time=args.time, **parameters)
    except SolverError as error:
        reason, cure = str(error).partition(":")[0], "--attention" if args.model == "nonlinear" else "the weights"
        raise SolverError(f"the end cannot be reached ({reason}): lower --time or {cure}") from error
    summary = simulation.summary()
    answer = _answer(args, simulation, summary, critical)
    if pictures:
        _draw(args, pictures, simulation, summary, matrix)
    for path in tables.values():
        write_csv(path, ("time", "agent", "option", "opinion"), _rows(simulation))
    files = [str(path) for path in (*pictures, *tables.values())]
    if args.json:
        print(json.dumps({**answer, "files": files}))
        return 0
    print(f"{count(answer['agents'], 'agent')}, {count(answer['options'], 'option')}, model {args.model}")
    if answer["attention"] is not None:
        print(f"attention {answer['attention']:.6g}, critical {'none' if critical is None else f'{critical:.6g}'}")
    print(verdict(summary))
    for option, (mean, variance) in enumerate(zip(summary.mean, summary.variance, strict=True)):
        print(f"option {option} at time {answer['time']:g}: mean {mean:.4g}, variance {variance:.4g}")
    for file in files:
        print(f"wrote {file}", file=sys.stderr)
    return 0


def _initial(args: argparse.Namespace, agents: int) -> "np.ndarray":
    import numpy as np

    if args.initial != "random":
        return _table(Path(args.initial), agents, args.options)
    return np.random.default_rng(args.seed).uniform(-1.0, 1.0, (agents, args.options))


def _table(path: Path, agents: int, options: int) -> "np.ndarray":
    import numpy as np

    try:
        values = np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as numbers ({error}): write a line an agent, no header") from error
    if values.shape != (agents, options):
        raise InputError(
            f"{path} has {values.shape[0]} lines of {values.shape[1]} numbers: give {agents} lines, one an agent, of "
            f"{options} numbers, one an option"
        )
    return values


def _parameters(args: argparse.Namespace, matrix: Any, start: "np.ndarray") -> tuple[dict[str, Any], float | None]:
    """The keywords of :func:`dissensus.dynamics.simulate` and, of the nonlinear model, the critical attention."""
    import numpy as np

    from dissensus import dynamics

    if args.model != "nonlinear":
        wrong = [f"--{name.replace('_', '-')}" for name, unset in _NONLINEAR.items() if getattr(args, name) != unset]
        if wrong:
            verb = "belongs" if len(wrong) == 1 else "belong"
            raise InputError(
                f"{', '.join(wrong)} {verb} to the nonlinear model, not to {args.model}: leave out, or take "
                "--model nonlinear"
            )
        return {"normalize": args.normalize or args.model == "degroot"}, None
    n = args.options
    parameters = {
        "options": np.full((n, n), args.option_weight) - args.option_weight * np.eye(n) if n > 1 else None,
        "damping": args.damping,
        "self_reinforcement": args.self_reinforcement,
        "input": _input(args.input, start),
        "saturation": args.saturation,
        "normalize": args.normalize,
    }
    try:
        critical = float(dynamics.System(matrix, **parameters).attention)
    except InputError:
        # There may be none. What else is wrong, the simulation says.
        if args.attention is None:
            raise
        return {**parameters, "attention": args.attention}, None
    attention = critical * (1.0 if args.relative_attention is None else args.relative_attention)
    return {**parameters, "attention": attention if args.attention is None else args.attention}, critical


def _input(text: str, start: "np.ndarray") -> Any:
    if text.endswith(".csv"):
        return _table(Path(text), *start.shape)
    head, _, share = text.partition("*")
    try:
        if head == "initial":
            return start * float(share or 1.0)
        return float(text)
    except ValueError:
        raise InputError(f"--input is {text!r}: give a number, 'initial', 'initial*0.2', or a .csv file") from None


def _answer(
    args: argparse.Namespace, simulation: "Simulation", summary: "Summary", critical: float | None
) -> dict[str, Any]:
    system = simulation.system
    return {
        "graph": args.graph,
        "agents": simulation.states.shape[1],
        "options": simulation.states.shape[2],
        "model": args.model,
        "attention": None if system is None else float(system.attention),
        "critical_attention": critical,
        "time": float(simulation.times[-1]),
        "verdict": summary.verdict,
        "neutral": summary.neutral,
        "mean": list(summary.mean),
        "variance": list(summary.variance),
        "spread": list(summary.spread),
    }


def _rows(simulation: "Simulation") -> Iterator[tuple[float, int, int, float]]:
    for time, state in zip(simulation.times.tolist(), simulation.states.tolist(), strict=True):
        for agent, opinions in enumerate(state):
            for option, opinion in enumerate(opinions):
                yield time, agent, option, opinion


def _draw(
    args: argparse.Namespace, pictures: list[Path], simulation: "Simulation", summary: "Summary", matrix: Any
) -> None:
    from dissensus.report import Panel, draw_simulation

    times, states = simulation.times.numpy(), simulation.states.numpy()
    panels = [
        Panel(
            f"option {option}" if states.shape[2] > 1 else f"{args.model} opinion dynamics",
            times,
            states[:, :, option],
            f"{verdict(summary)}\nmean {summary.mean[option]:.2g}, variance {summary.variance[option]:.2g}",
        )
        for option in range(states.shape[2])
    ]
    draw_simulation(pictures, panels, edges_of(matrix), layout(args, matrix))
