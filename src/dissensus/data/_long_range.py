"""Generated tasks that depend on distant nodes: distances in collections of graphs, and transfer on rings."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.csgraph import shortest_path as graph_distances
from torch import Tensor
from torch_geometric.data import Data

from dissensus.data._dataset import Dataset
from dissensus.data._splits import GraphSplits
from dissensus.data._synthetic import at_least
from dissensus.errors import one_of

Edges = np.ndarray  # [edges, 2], each pair once


def _line(random: np.random.Generator, n: int) -> Edges:
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def _grid(random: np.random.Generator, n: int) -> Edges:
    # As square as possible; the last row may be incomplete.
    width = max(2, round(np.sqrt(n)))
    node = np.arange(n)
    right, below = node[(node % width < width - 1) & (node + 1 < n)], node[node + width < n]
    return np.concatenate([np.stack([right, right + 1], axis=1), np.stack([below, below + width], axis=1)])


def _tree(random: np.random.Generator, n: int) -> Edges:
    # A random recursive tree: every node is connected to a random earlier one.
    return np.stack([(random.random(n - 1) * np.arange(1, n)).astype(np.int64), np.arange(1, n)], axis=1)


def _barabasi_albert(random: np.random.Generator, n: int) -> Edges:
    # Every node is connected to two earlier ones, drawn with probabilities proportional to their degrees.
    ends, edges = [0, 1], [(0, 1)]
    for new in range(2, n):
        chosen = {ends[random.integers(len(ends))] for _ in range(2)}
        edges += [(old, new) for old in sorted(chosen)]
        ends += [*sorted(chosen), *[new] * len(chosen)]
    return np.array(edges)


def _caveman(random: np.random.Generator, n: int) -> Edges:
    # A chain of cliques of five nodes.
    node = np.arange(n)
    i, j = np.nonzero(np.triu(node[:, None] // 5 == node[None, :] // 5, 1))
    links = np.stack([np.arange(4, n - 1, 5), np.arange(5, n, 5)], axis=1)
    return np.concatenate([np.stack([i, j], axis=1), links])


def _erdos_renyi(random: np.random.Generator, n: int) -> Edges:
    # Mean degree 3. A chain of single edges connects the components.
    i, j = np.nonzero(np.triu(random.random((n, n)) < 3.0 / (n - 1), 1))
    count, component = connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)
    heads = np.array([random.choice(np.flatnonzero(component == c)) for c in range(count)], dtype=np.int64)
    return np.concatenate([np.stack([i, j], axis=1), np.stack([heads[:-1], heads[1:]], axis=1)])


FAMILIES: dict[str, Callable[[np.random.Generator, int], Edges]] = {
    "line": _line,
    "grid": _grid,
    "tree": _tree,
    "barabasi-albert": _barabasi_albert,
    "caveman": _caveman,
    "erdos-renyi": _erdos_renyi,
}


def shortest_path(*, family: str = "all", graphs: int = 240, nodes: int = 40, seed: int = 0) -> Dataset:
    """Single-source shortest paths: predict each node's distance in hops from the one marked node of its graph.

    Features ``x [n, 2]`` are the mark of the source and a constant. The targets are ``y [n]``; the metric is the mean
    absolute error.

    Args:
        family: ``line``, ``grid``, ``tree``, ``barabasi-albert``, ``caveman`` or ``erdos-renyi``, or ``all`` to
            alternate between them.
        graphs: Number of graphs: 60% for training, 20% for validation and 20% for testing.
        nodes: Maximum number of nodes of a graph. Sizes are uniform between half of it and this number.
        seed: Random seed for graphs and sources.
    """

    def task(random: np.random.Generator, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        source = int(random.integers(len(distance)))
        x = np.ones((len(distance), 2))
        x[:, 0] = np.arange(len(distance)) == source
        return x, distance[source]

    return _collection("shortest-path", family, graphs, nodes, seed, task)


def eccentricity(*, family: str = "all", graphs: int = 240, nodes: int = 40, seed: int = 0) -> Dataset:
    """Eccentricity: predict each node's distance in hops to the farthest node of its graph.

    Features ``x [n, 2]`` are a constant and the degree. The targets are ``y [n]``; the metric is the mean absolute
    error. The arguments are those of :func:`shortest_path`.
    """
    return _collection("eccentricity", family, graphs, nodes, seed, lambda random, d: (_degrees(d), d.max(1)))


def diameter(*, family: str = "all", graphs: int = 240, nodes: int = 40, seed: int = 0) -> Dataset:
    """Diameter: predict each graph's largest distance between two nodes, in hops.

    Features ``x [n, 2]`` are a constant and the degree. The targets are ``y [graphs]``; the metric is the mean absolute
    error. The arguments are those of :func:`shortest_path`.
    """
    return _collection(
        "diameter", family, graphs, nodes, seed, lambda random, d: (_degrees(d), d.max(keepdims=True)[0])
    )


def ring_transfer(*, distance: int = 10, classes: int = 5, graphs: int = 300, seed: int = 0) -> Dataset:
    """Transfer on rings: predict at the target node the class that is given at the opposite node of a ring.

    A ring has ``2 * distance`` nodes, so the class is ``distance`` hops away. Features ``x [n, classes + 2]`` are the
    one-hot class at the source (zero elsewhere), the mark of the source and the mark of the target. The label is the
    class at the target and -1 elsewhere.

    Args:
        distance: Number of hops from source to target, at least 2.
        classes: Number of classes.
        graphs: Number of rings: 60% for training, 20% for validation and 20% for testing.
        seed: Random seed for the classes.
    """
    at_least("ring-transfer", distance=(distance, 2), classes=(classes, 2), graphs=(graphs, 5), seed=(seed, 0))
    n = 2 * distance
    label = torch.from_numpy(np.random.default_rng(seed).permutation(np.arange(graphs) % classes))
    x = torch.zeros(graphs, n, classes + 2)
    x[torch.arange(graphs), 0, label] = 1.0
    x[:, 0, classes], x[:, distance, classes + 1] = 1.0, 1.0
    node = torch.arange(n)
    ring = torch.cat([torch.stack([node, (node + 1) % n]), torch.stack([(node + 1) % n, node])], dim=1)
    edges = (ring[:, None, :] + n * torch.arange(graphs)[None, :, None]).reshape(2, -1)
    y = torch.full((graphs, n), -1)
    y[:, distance] = label
    batch = torch.arange(graphs).repeat_interleave(n)
    return Dataset(
        name="ring-transfer",
        graph=Data(x=x.view(-1, classes + 2), edge_index=edges, y=y.view(-1), batch=batch),
        class_names=tuple(str(c) for c in range(classes)),
        splits=GraphSplits(batch, y.view(-1) >= 0),
    )


def _collection(
    name: str,
    family: str,
    graphs: int,
    nodes: int,
    seed: int,
    task: Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Dataset:
    """A collection of graphs. ``task`` turns the distances [n, n] in a graph into features [n, k] and targets."""
    one_of("family", family, ("all", *FAMILIES))
    at_least(name, graphs=(graphs, 5), nodes=(nodes, 12), seed=(seed, 0))
    random = np.random.default_rng(seed)
    makers = list(FAMILIES.values()) if family == "all" else [FAMILIES[family]]
    xs: list[np.ndarray] = []
    ys: list[np.ndarray] = []
    edges: list[np.ndarray] = []
    sizes: list[int] = []
    for i in range(graphs):
        n = int(random.integers(nodes // 2, nodes + 1))
        pairs = makers[i % len(makers)](random, n)
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
        x, y = task(random, graph_distances(links, directed=False, unweighted=True))
        xs.append(x)
        ys.append(y)
        edges.append(np.concatenate([pairs, pairs[:, ::-1]]) + sum(sizes))
        sizes.append(n)
    batch = torch.arange(graphs).repeat_interleave(torch.tensor(sizes))
    targets = _tensor(ys)
    owner = batch if len(targets) == len(batch) else torch.arange(graphs)
    return Dataset(
        name=name,
        graph=Data(
            x=_tensor(xs), edge_index=torch.from_numpy(np.concatenate(edges)).T.contiguous(), y=targets, batch=batch
        ),
        class_names=(),
        splits=GraphSplits(owner, torch.ones(len(owner), dtype=torch.bool)),
        metric="mae",
    )


def _tensor(parts: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)).float()


def _degrees(distance: np.ndarray) -> np.ndarray:
    return np.stack([np.ones(len(distance)), (distance == 1).sum(1)], axis=1)
