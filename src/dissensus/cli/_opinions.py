"""Functions that the commands on opinion dynamics share: the graph, the parameters, and the output files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli._common import print_json, say
from dissensus.errors import InputError, optional, unknown

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHAPES = ("grid", "path", "cycle", "complete", "star", "barabasi-albert")
_PICTURES = (".png", ".svg", ".pdf")


def configure_graph(parser: argparse.ArgumentParser, agents: int) -> None:
    """Declare the arguments for the graph and the parameters of both commands."""
    add = parser.add_argument
    words = (
        f"{', '.join(SHAPES)}; the name of a dataset (cora, karate, ..., without weights); or a file: an edge list "
        "(.csv with the columns source, target and, if there are weights, weight; one line for both directions unless "
        "--directed), a folder with edges.csv, or any other graph that 'dissensus train' reads"
    )
    add("graph", nargs="?", default="grid", metavar="GRAPH", help=words)
    add("--agents", type=int, default=agents, metavar="N", help="number of agents, if GRAPH is a shape such as grid")
    add("--directed", action="store_true", help="the edges of an edge list lead from source to target only")
    add("--largest-component", action="store_true", help="keep only the largest connected component")
    given: Any = {"default": argparse.SUPPRESS}
    add("--normalize", action="store_true", help="divide the weights of each agent by their sum", **given)
    add("--damping", type=float, metavar="D", help="damping d (default: 1)", **given)
    add("--self-reinforcement", type=float, metavar="A", help="self-reinforcement alpha (default: 1)", **given)
    words = "tanh (the default), softsign, arctan, sigmoid, relu, gelu, linear"
    add("--saturation", metavar="NAME", help=words, **given)
    add("--seed", type=_seed, default=1, metavar="N", help="seed of the random initial opinions")
    add("-o", "--output", metavar="PATH", help="a folder for pictures and tables; or a .png, .svg, .pdf or .csv file")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: give an integer of at least 0")
    return int(text)


def parameters(args: argparse.Namespace, *more: str) -> dict[str, Any]:
    """The parameters of the model that were given on the command line."""
    names = ("normalize", "damping", "self_reinforcement", "saturation", *more)
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def communication(args: argparse.Namespace) -> csr_array:
    """The communication matrix of the graph that the arguments name."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    from dissensus import data
    from dissensus.dynamics import as_matrix

    path, known = Path(args.graph), (*SHAPES, *data.names())
    if args.graph in SHAPES:
        if args.agents < 2:
            raise InputError(f"--agents is {args.agents}: give at least 2")
        matrix = as_matrix(_shape(args.graph, args.agents))
    elif args.graph not in known and not path.suffix and len(path.parts) < 2 and not path.exists():
        raise InputError(f"{unknown('graph', args.graph, known)}; or give a path")
    elif path.suffix == ".csv" or (path.is_dir() and args.graph not in known):
        matrix = as_matrix(path, directed=args.directed)
    else:
        matrix = as_matrix(data.load(args.graph).graph)
    if not args.largest_component:
        return matrix
    component = connected_components(matrix, directed=False)[1]
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    return matrix[kept][:, kept]


def _shape(name: str, n: int) -> Any:
    import networkx

    if name == "grid":
        width = ceil(sqrt(n))
        grid = networkx.grid_2d_graph(ceil(n / width), width)
        return grid.subgraph(list(grid)[:n])
    if name == "barabasi-albert":
        return networkx.barabasi_albert_graph(n, min(2, n - 1), seed=0)
    return getattr(networkx, f"{name}_graph")(n - 1 if name == "star" else n)


def outputs(text: str | None, names: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Pictures and tables to write, from the -o argument. Raises an error if they cannot be written."""
    if text is None:
        return [], []
    path = Path(text)
    single = path.suffix in (*_PICTURES, ".csv")
    folder = path.parent if single else path
    if not single and not path.is_dir() and (path.suffix or path.exists()):
        raise InputError(f"-o {path} has none of the endings .png, .svg, .pdf and .csv: use one, or give a folder")
    files = [path] if single else [path / name for name in names]
    pictures = [file for file in files if file.suffix in _PICTURES]
    if pictures:
        optional("matplotlib", "plot")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"-o: {folder} cannot be created ({error.strerror}): give another folder") from error
    return pictures, [file for file in files if file.suffix == ".csv"]


def finish(args: argparse.Namespace, found: Any, answer: dict[str, Any], text: str, files: Any) -> int:
    """Write the files of a result, and print the answer, as one JSON object or as text."""
    pictures, tables = files
    if pictures:
        found.plot(pictures, shape=args.graph)
    for path in tables:
        found.save(path)
    written = [str(path) for path in (*pictures, *tables)]
    if args.json:
        print_json({"graph": args.graph, **answer, "files": written})
        return 0
    print(text)
    for path in written:
        say(f"wrote {path}")
    return 0
