"""Simulate opinions on a graph: nonlinear opinion dynamics, DeGroot's model, or continuous-time consensus.

    dissensus simulate karate --relative-attention 1.2
    dissensus simulate edges.csv --model degroot --normalize -o opinions/

Initial opinions are uniform in [-1, 1]. Without --attention, the nonlinear model runs at the critical attention u*,
above which the neutral opinion is unstable. At u*, opinions without input only slowly approach neutral consensus (at
best like 1/sqrt(t)). In DeGroot's model every agent also listens to itself, with weight one before the rows are
normalised.

With -o FOLDER, opinions over time and on the graph are written there, as a picture and as a table.
"""

import argparse
from typing import Any

from dissensus.cli._opinions import communication, configure_graph, finish, outputs, parameters
from dissensus.errors import InputError, SolverError


def configure(parser: argparse.ArgumentParser) -> None:
    configure_graph(parser, agents=100)
    given: Any = {"default": argparse.SUPPRESS}
    add = parser.add_argument
    add("--model", default="nonlinear", metavar="NAME", help="nonlinear, degroot or consensus (altafini)")
    add("--attention", type=float, metavar="U", help="attention u (default: the critical one)", **given)
    add("--relative-attention", type=float, metavar="R", help="attention as a multiple of u*", **given)
    add("--options", type=int, default=1, metavar="N", help="number of options")
    add("--option-weight", type=float, metavar="W", help="weight between any two options (default: 0)", **given)
    words = "a number; 'initial' for the initial opinions, 'initial*0.2' for a fifth; or a .csv file (default: 0)"
    add("--input", metavar="B", help=words, **given)
    add("--initial", default="random", metavar="X", help="'random', or a .csv file with one line per agent")
    add("--time", type=float, default=50.0, metavar="T", help="end of the simulation")


def run(args: argparse.Namespace) -> int:
    files = outputs(args.output, ["opinions.png", "opinions.svg", "opinions.csv"])
    given = parameters(args, "attention", "relative_attention", "option_weight", "input")
    if args.options < 1:
        raise InputError(f"--options is {args.options}: give at least 1")
    if {"attention", "relative_attention"} <= set(given):
        raise InputError("--attention and --relative-attention both set the attention: leave one out")
    import numpy as np
    import scipy.sparse

    from dissensus import dynamics

    matrix = communication(args)
    start = np.random.default_rng(args.seed).uniform(-1.0, 1.0, (matrix.shape[0], args.options))
    start = start if args.initial == "random" else _table(args.initial)
    weight, ratio = given.pop("option_weight", 0.0), given.pop("relative_attention", None)
    given |= {"options": weight * (1.0 - np.eye(args.options)) if weight else args.options}
    if "input" in given:
        given["input"] = _input(given["input"], start)
    if args.model == "degroot":
        # Without a weight on the own opinion, agents of a bipartite graph such as the grid swap opinions for ever.
        matrix = dynamics.as_matrix(matrix + scipy.sparse.eye_array(matrix.shape[0]))
        given["normalize"] = True
    if ratio is not None:
        given["attention"] = ratio * float(dynamics.System(matrix, **given).attention)
    try:
        found = dynamics.simulate(matrix, start, model=args.model, time=args.time, **given)
    except SolverError as error:
        reason, cure = str(error).partition(":")[0], "--attention" if args.model == "nonlinear" else "the weights"
        raise SolverError(f"the simulation cannot be finished ({reason}): lower --time or {cure}") from error
    return finish(args, found, found.report(), str(found), files)


def _input(text: str, start: Any) -> Any:
    """A number, a share of the initial opinions, or values from a file."""
    if text.endswith(".csv"):
        return _table(text)
    head, _, share = text.partition("*")
    try:
        return start * float(share or 1.0) if head == "initial" else float(text)
    except ValueError:
        raise InputError(f"--input is {text!r}: give a number, 'initial', 'initial*0.2', or a .csv file") from None


def _table(path: str) -> Any:
    import numpy as np

    try:
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as numbers ({error}): give one line per agent, no header") from error
