"""Random graphs with a known structure."""

import math
from collections.abc import Callable

import numpy as np

from dissensus.data._dataset import Dataset, from_fields
from dissensus.data._splits import FixedSplits, mask_of
from dissensus.errors import InputError

ARXIV_NODES, ARXIV_EDGES, ARXIV_FEATURES, ARXIV_CLASSES = 169_343, 1_166_243, 128, 40
ARXIV_SPLIT = (90_941, 29_799, 48_603)


def csbm(
    *,
    nodes: int = 2000,
    classes: int = 4,
    features: int = 32,
    homophily: float = 0.8,
    degree: float = 10.0,
    noise: float = 1.0,
    seed: int = 0,
) -> Dataset:
    """A contextual stochastic block model with exactly the given homophily and mean degree.

    All classes have the same size. There are ``nodes * degree / 2`` undirected edges. A share ``homophily`` of them
    connects random nodes of the same class, and the others connect random nodes of different classes. Features are
    ``x_i = m_{y_i} + noise z_i`` with a random unit vector ``m_c`` for each class and standard normal ``z_i``. A
    million nodes take seconds.

    Args:
        nodes: Number of nodes n.
        classes: Number of classes, at least 1.
        features: Number of features.
        homophily: Share of edges within a class, from 0 to 1. With ``1 / classes`` edges carry no information.
        degree: Mean number of neighbours.
        noise: Standard deviation of each feature around the mean of its class.
        seed: Random seed for labels, edges and features.
    """
    at_least("csbm", nodes=(nodes, 2), classes=(classes, 1), features=(features, 1), seed=(seed, 0))
    if classes > nodes:
        raise InputError(f"csbm: {classes} classes for {nodes} nodes: give at least one node per class")
    for name, number, most in (("homophily", homophily, 1.0), ("degree", degree, math.inf), ("noise", noise, math.inf)):
        if not isinstance(number, (int, float)) or not 0 <= number <= most or math.isinf(number):
            raise InputError(
                f"csbm: {name} is {number!r}: give a number " + ("from 0 to 1" if most == 1 else "of at least 0")
            )
    random = np.random.default_rng(seed)
    edges = round(nodes * degree / 2)
    y, x, edge_index = _blocks(random, nodes, classes, features, edges, homophily, noise)
    names = tuple(str(label) for label in range(classes))
    return from_fields({"x": x, "edge_index": edge_index, "y": y}, name="csbm", where="csbm", class_names=names)


def arxiv_synthetic(*, seed: int = 0) -> Dataset:
    """NOT real data: a generated graph of the size of ogbn-arxiv, to measure speed and memory without a download.

    It has 169,343 nodes, 1,166,243 undirected edges (stored in both directions), 128 features, 40 classes and a split
    of 90,941 / 29,799 / 48,603 nodes, as in ogbn-arxiv. Edges are drawn as in :func:`csbm` with homophily 0.65, but the
    probability of node i is proportional to ``(r_i + 10)^(-2/3)`` for a random ranking r, so that degrees follow a
    power law with exponent 2.5. Accuracies on this graph say nothing about arXiv.
    """
    at_least("arxiv-synthetic", seed=(seed, 0))
    random = np.random.default_rng(seed)
    weights = (random.permutation(ARXIV_NODES) + 10.0) ** (-2 / 3)
    y, x, edge_index = _blocks(
        random, ARXIV_NODES, ARXIV_CLASSES, ARXIV_FEATURES, ARXIV_EDGES, homophily=0.65, noise=0.5, weights=weights
    )
    parts = np.split(random.permutation(ARXIV_NODES), np.cumsum(ARXIV_SPLIT)[:-1])
    masks = (mask_of(part, ARXIV_NODES)[:, None] for part in parts)
    splits = FixedSplits(*masks, protocol="one random split of OGB's sizes")
    return from_fields(
        {"x": x, "edge_index": edge_index, "y": y}, name="arxiv-synthetic", where="arxiv-synthetic", splits=splits
    )


def at_least(name: str, **values: tuple[int, int]) -> None:
    """Raise an error unless each value of a dataset is a whole number of at least its bound."""
    for key, (value, least) in values.items():
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name}: {key} is {value!r}: give an integer of at least {least}")


def _blocks(
    random: np.random.Generator,
    nodes: int,
    classes: int,
    features: int,
    edges: int,
    homophily: float,
    noise: float,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``y [n]``, ``x [n, features]`` and a symmetric ``edge_index``. ``weight`` sets how often a node is drawn.

    Internally nodes are numbered class by class, so that each class is a range; ``order`` shuffles them at the end.
    """
    bounds = np.arange(classes + 1) * nodes // classes
    sizes = np.diff(bounds)
    within = round(homophily * edges)
    pairs = int((sizes * (sizes - 1) // 2).sum())
    for count, possible, which in (
        (within, pairs, "one class"),
        (edges - within, nodes * (nodes - 1) // 2 - pairs, "different classes"),
    ):
        if count > possible // 2:
            raise InputError(
                f"{count} edges between nodes of {which} are needed, but at most half of the {possible} pairs can be "
                "used: reduce the degree, change the homophily, or use more nodes"
            )
    label = np.repeat(np.arange(classes), sizes)
    cumulative = np.arange(nodes + 1.0) if weights is None else np.concatenate([[0.0], np.cumsum(weights)])
    first, last = cumulative[bounds[:-1]], cumulative[bounds[1:]]

    def node_at(position: np.ndarray) -> np.ndarray:
        found = position.astype(np.int64) if weights is None else np.searchsorted(cumulative, position, "right") - 1
        return np.minimum(found, nodes - 1)

    def same(count: int) -> tuple[np.ndarray, np.ndarray]:
        one = node_at(random.random(count) * cumulative[-1])
        start, end = first[label[one]], last[label[one]]
        return one, node_at(start + random.random(count) * (end - start))

    def different(count: int) -> tuple[np.ndarray, np.ndarray]:
        one = node_at(random.random(count) * cumulative[-1])
        start, end = first[label[one]], last[label[one]]
        position = random.random(count) * (cumulative[-1] - (end - start))
        return one, node_at(np.where(position < start, position, position + (end - start)))

    keys = np.concatenate(
        [
            _distinct(random, lambda count: _of_kind(*same(count), label, True), within, nodes),
            _distinct(random, lambda count: _of_kind(*different(count), label, False), edges - within, nodes),
        ]
    )
    order = random.permutation(nodes)
    x = random.standard_normal((nodes, features), dtype=np.float32)
    x *= noise
    means = random.standard_normal((classes, features))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    for c in range(classes):
        x[order[bounds[c] : bounds[c + 1]]] += means[c].astype(np.float32)
    y = np.empty(nodes, dtype=np.int64)
    y[order] = label
    one, other = order[keys // nodes], order[keys % nodes]
    both = np.concatenate([one * nodes + other, other * nodes + one])
    both.sort()
    return y, x, np.stack([both // nodes, both % nodes])


def _of_kind(one: np.ndarray, other: np.ndarray, label: np.ndarray, same: bool) -> tuple[np.ndarray, np.ndarray]:
    """Keep the pairs of the right kind, because rounding at the border of a class may have drawn another class."""
    kept = (label[one] == label[other]) == same
    return one[kept], other[kept]


def _distinct(
    random: np.random.Generator, draw: Callable[[int], tuple[np.ndarray, np.ndarray]], count: int, nodes: int
) -> np.ndarray:
    """``count`` distinct pairs i < j, coded as ``i * nodes + j``; duplicates are drawn again."""
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        one, other = draw(count - len(keys) + count // 50 + 16)
        new = np.minimum(one, other) * nodes + np.maximum(one, other)
        keys = np.concatenate([keys, new[one != other]])
        # Sorting and comparing neighbours is much faster than the hash table of np.unique.
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) > 0]
    surplus = len(keys) - count
    return np.delete(keys, random.choice(len(keys), surplus, replace=False)) if surplus else keys
