"""Draw bifurcation diagrams of nonlinear opinion dynamics: equilibria over the attention, and agents on the graph.

    dissensus bifurcation star --agents 12 -o diagram.png
    dissensus bifurcation edges.csv -o bifurcation/

The upper diagram is without input: a pitchfork at the critical attention u*. The lower one, its unfolding, has a share
of the initial opinions as input. Beside them are simulations from the same initial opinions: (a) with less attention
than u*, (b) with more, (c) at u*, (d) at u* with the input, and (e) as (b) from the reversed opinions.

The defaults draw the figure on nonlinear opinion dynamics of "Resolving Oversmoothing with Opinion Dissensus". With
-o FOLDER, the picture and tables of branches and panels are written there.
"""

import argparse

from dissensus.cli._common import say
from dissensus.cli._opinions import communication, configure_graph, finish, outputs, parameters


def configure(parser: argparse.ArgumentParser) -> None:
    configure_graph(parser, agents=25)
    for name, default, words in (
        ("input", 0.15, "input of the lower diagram, relative to initial opinions"),
        ("average", 0.3, "weighted average of the initial opinions, positive"),
        ("low", 0.6, "attention of (a), relative to u*"),
        ("high", 1.75, "attention of (b), relative to u*"),
        ("range", 2.0, "end of the diagrams, relative to u*"),
        ("time", 1000.0, "end of the simulations"),
    ):
        parser.add_argument(f"--{name}", type=float, default=default, metavar="X", help=words)


def run(args: argparse.Namespace) -> int:
    files = outputs(args.output, ["bifurcation.png", "bifurcation.svg", "branches.csv", "panels.csv"])
    from scipy.sparse.csgraph import connected_components

    from dissensus import dynamics

    matrix = communication(args)
    say(f"following branches, agents: {matrix.shape[0]}")
    if connected_components(matrix, connection="strong")[0] > 1:
        say("the graph is not strongly connected: it has further branches than those that start at u*")
    names = ("input", "average", "low", "high", "range", "time", "seed")
    found = dynamics.regimes(matrix, **{name: getattr(args, name) for name in names}, **parameters(args))
    return finish(args, found, {"agents": matrix.shape[0], **found.summary()}, str(found), files)
