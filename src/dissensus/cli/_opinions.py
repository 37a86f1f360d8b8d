"""What the commands on opinion dynamics share: the graph by name or file, parameters, and files to write."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError, unknown

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_array

    from dissensus.dynamics import Summary

# The weights of the edges by the names of their ends, target first.
Entries = dict[tuple[str, str], float]
SHAPES = ("grid", "path", "cycle", "complete", "star", "barabasi-albert")


def configure_graph(parser: argparse.ArgumentParser, agents: int) -> None:
    """Declare the graph and the parameters that both commands have."""
    parser.add_argument(
        "graph",
        nargs="?",
        default="grid",
        metavar="GRAPH",
        help=f"{', '.join(SHAPES)}, a dataset by name (karate, cora, ...), or a file: an edge list (.csv with the "
        "columns source, target and perhaps weight, a line for both directions unless --directed), with or without "
        "its nodes.csv, or what else 'dissensus train' reads",
    )
    parser.add_argument(
        "--agents", type=int, default=agents, metavar="N", help="number of agents of a graph by its shape"
    )
    parser.add_argument("--directed", action="store_true", help="an edge list's source is heard by its target alone")
    parser.add_argument("--largest-component", action="store_true", help="keep the largest connected component alone")
    parser.add_argument("--normalize", action="store_true", help="divide the weights of each agent by their sum")
    parser.add_argument("--damping", type=float, default=1.0, metavar="D", help="damping d")
    parser.add_argument(
        "--self-reinforcement", type=float, default=1.0, metavar="A", help="self-reinforcement alpha of the agents"
    )
    parser.add_argument(
        "--saturation",
        default="tanh",
        metavar="NAME",
        help="saturating function S: tanh, softsign or arctan; for comparison also linear, sigmoid, relu or gelu (to "
        "the last three u* means nothing)",
    )
    parser.add_argument("--seed", type=_seed, default=1, metavar="N", help="seed of the random initial opinions")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="a folder to write pictures (PNG, SVG) and tables (CSV) to; or one file, .png, .svg, .pdf or .csv",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of text")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: give a whole number from 0 on")
    return int(text)


def communication(args: argparse.Namespace) -> csr_array:
    """The communication matrix that the arguments ask for."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    from dissensus.data import names

    path, known = Path(args.graph), (*SHAPES, *names())
    if args.graph not in known and not path.suffix and len(path.parts) < 2 and not path.exists():
        raise InputError(f"{unknown('graph', args.graph, known)}; or give a path")
    matrix = read_graph(args)
    if not args.largest_component:
        return matrix
    component = connected_components(matrix, directed=False)[1]
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    return matrix[kept][:, kept]


def read_graph(args: argparse.Namespace) -> csr_array:
    """The communication matrix, from the arguments' graph."""
    from dissensus import data
    from dissensus.dynamics import as_matrix

    path = Path(args.graph)
    if args.graph in SHAPES:
        if args.agents < 2:
            raise InputError(f"--agents is {args.agents}: give at least 2")
        return as_matrix(_shape(args.graph, args.agents))
    folder = path.is_dir() and args.graph not in data.names()
    if not folder and path.suffix != ".csv":
        return as_matrix(data.load(args.graph).graph)
    with_nodes = folder or ("edges" in path.name and path.with_name(path.name.replace("edges", "nodes")).is_file())
    return as_matrix(_matrix(*_links(path, with_nodes), args.directed))


def _shape(name: str, n: int) -> csr_array:
    import numpy as np
    from scipy.sparse import coo_array

    i = np.arange(n)
    if name == "grid":
        width = ceil(sqrt(n))
        right, below = i[(i % width < width - 1) & (i + 1 < n)], i[i + width < n]
        pairs = np.concatenate([np.stack([right, right + 1]), np.stack([below, below + width])], axis=1)
    elif name == "path":
        pairs = np.stack([i[:-1], i[1:]])
    elif name == "cycle":
        pairs = np.stack([i, (i + 1) % n]) if n > 2 else np.array([[0], [1]])
    elif name == "complete":
        pairs = np.stack(np.triu_indices(n, 1))
    elif name == "star":
        pairs = np.stack([np.zeros(n - 1, dtype=int), i[1:]])
    else:
        pairs = _preferential(n, 2)
    matrix = coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(n, n)).tocsr()
    return matrix + matrix.T


def _preferential(n: int, m: int) -> np.ndarray:
    """Barabasi and Albert's graph: every new agent joins m others, drawn in proportion to their degrees. Fixed seed."""
    import numpy as np

    rng = np.random.default_rng(0)
    start = min(m, n - 1)
    pairs = [(k, start) for k in range(start)]
    ends = [end for pair in pairs for end in pair]
    for new in range(start + 1, n):
        chosen: set[int] = set()
        while len(chosen) < start:
            chosen.add(ends[rng.integers(len(ends))])
        for old in sorted(chosen):
            pairs.append((old, new))
            ends += [old, new]
    return np.array(pairs).T


def _links(path: Path, with_nodes: bool) -> tuple[list[str], Entries]:
    """Agents and edges of an edge list; agents are numbered as in its nodes.csv, if it has one."""
    from dissensus.data._csv import read_edge_list, read_links

    names, edge_index, weights = read_links(path) if with_nodes else read_edge_list(path)
    values = [1.0] * edge_index.shape[1] if weights is None else weights.tolist()
    edges = zip(*edge_index.tolist(), values, strict=True)
    return names, {(names[target], names[source]): weight for source, target, weight in edges}


def _matrix(names: Sequence[str], entries: Entries, directed: bool) -> csr_array:
    """Agents and edges as a matrix, with the way back of every edge unless ``directed``."""
    import numpy as np
    from scipy.sparse import coo_array

    if not directed:
        # A line of its own for the way back has the last word.
        entries = {(i, k): weight for (k, i), weight in entries.items()} | entries
    index = {name: k for k, name in enumerate(names)}
    places = np.array([(index[target], index[source]) for target, source in entries], dtype=int).reshape(-1, 2).T
    return coo_array((list(entries.values()), (places[0], places[1])), shape=(len(names), len(names))).tocsr()


def verdict(summary: Summary) -> str:
    """In words: neutral consensus, consensus, dissensus or polarised."""
    return f"{'neutral ' * summary.neutral}{summary.verdict}"


def count(number: int, thing: str) -> str:
    """So many things: ``1 agent``, ``2 agents``."""
    return f"{number} {thing}{'s' * (number != 1)}"


def layout(args: argparse.Namespace, matrix: csr_array) -> np.ndarray:
    """Where to draw the agents, [n, 2]: a grid as a grid, small graphs by springs or on a circle, others on a disc."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

    n = matrix.shape[0]
    if args.graph == "grid":
        width = ceil(sqrt(n))
        return np.stack([np.arange(n) % width, -(np.arange(n) // width)], axis=1).astype(float)
    if n > 500:
        # A sunflower, with agents that are joined near each other.
        place = np.empty(n)
        place[reverse_cuthill_mckee(matrix)] = np.arange(n)
        angle, radius = place * np.pi * (3.0 - sqrt(5.0)), np.sqrt(place + 0.5)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    if args.graph not in ("cycle", "complete"):
        try:
            import networkx
        except ImportError:
            pass
        else:
            # A weak pull between all agents keeps separate parts from flying apart.
            pull = 0.0 if connected_components(matrix, directed=False)[0] == 1 else 0.1 * abs(matrix).max()
            springs = networkx.from_numpy_array(abs(matrix).toarray() + pull)
            places = networkx.spring_layout(springs, seed=1, iterations=200)
            return np.array([places[k] for k in range(n)])
    angle = 2.0 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def edges_of(matrix: csr_array) -> np.ndarray:
    """Pairs of joined agents, each once, and their weights in both directions together, [3, edges]."""
    import numpy as np

    row, col = (abs(matrix) + abs(matrix.T)).tocoo().coords
    once = row < col
    if not once.any():  # scipy gives a sparse array where no entries are asked for
        return np.empty((3, 0))
    return np.stack([row[once], col[once], (matrix + matrix.T)[row[once], col[once]]])


def outputs(text: str | None, stem: str, tables: Sequence[str]) -> tuple[list[Path], dict[str, Path]]:
    """Files for pictures, and for each table, from the -o argument; refused before any work where they cannot be."""
    if text is None:
        return [], {}
    path = Path(text)
    single = path.suffix in (".png", ".svg", ".pdf", ".csv")
    folder = path.parent if single else path
    if not single and not path.is_dir() and (path.suffix or path.exists()):
        raise InputError(f"-o {path} has none of the endings .png, .svg, .pdf and .csv: use one, or name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"-o {path}: the folder {folder} cannot be made ({error.strerror}): name another") from error
    if path.suffix == ".csv":
        return [], {tables[0]: path}
    if single:
        return [path], {}
    return [path / f"{stem}.png", path / f"{stem}.svg"], {name: path / f"{name}.csv" for name in tables}


def need_matplotlib(pictures: Sequence[Path]) -> None:
    """Refuse pictures before any work where they cannot be drawn."""
    from importlib.util import find_spec

    from dissensus.errors import missing_extra

    if pictures and find_spec("matplotlib") is None:
        raise missing_extra("matplotlib", "plot")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table in full precision, with one header line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
