"""Graphs in pieces: a partition of the nodes, and batches of the clusters that it makes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data

from dissensus.data import PARTITIONERS
from dissensus.errors import InputError, missing_extra, one_of

# No cluster of the greedy partition is larger than the mean by more than this share.
_SLACK = 0.05
_SWEEPS = 10
# Of a sweep: nodes that move together do not see each other's moves.
_ROUNDS = 16


def partition(edge_index: Tensor, num_nodes: int, parts: int, *, seed: int = 0, method: str = "greedy") -> Tensor:
    """A cluster for every node: clusters of about equal size, with few edges between them.

    ``greedy`` starts from pieces of a breadth-first order and moves nodes, in some sweeps over the graph, to the
    cluster c of the largest ``neighbours in c * (1 - size(c) / limit)``, where the limit is 1.05 times the mean size
    (rounded up); no cluster grows beyond it. Time is linear in the edges. ``metis`` calls METIS (extra ``partition``),
    which cuts fewer edges of sparse graphs. The choice is the caller's alone, so that the same arguments give the same
    clusters wherever METIS happens to be installed.

    Args:
        edge_index: [2, edges]; directions, self-loops and duplicates do not matter.
        num_nodes: n.
        parts: number of clusters, from 1 to n; none is empty.
        seed: of the order in which nodes are moved.
        method: ``greedy`` or ``metis``.

    Returns:
        [n], int64, from 0 to parts - 1.
    """
    one_of("partitioner", method, PARTITIONERS)
    if not isinstance(parts, int) or not 1 <= parts <= num_nodes:
        raise InputError(f"{parts!r} clusters of {num_nodes} nodes: give a whole number from 1 to {num_nodes}")
    divide = _metis if method == "metis" else _greedy
    links = _links(edge_index.cpu().numpy(), num_nodes)
    part = np.zeros(num_nodes, dtype=np.int64) if parts == 1 else divide(links, parts, seed)
    return torch.from_numpy(_none_empty(part, parts))


def _links(edge_index: np.ndarray, n: int) -> csr_array:
    """The number of edges between two nodes, in either direction, without self-loops: symmetric [n, n]."""
    row, col = edge_index[:, edge_index[0] != edge_index[1]]
    once = coo_array((np.ones(len(row), dtype=np.float32), (row, col)), shape=(n, n)).tocsr()
    return csr_array(once + once.T)


def _greedy(links: csr_array, parts: int, seed: int) -> np.ndarray:
    n, random = links.shape[0], np.random.default_rng(seed)
    limit = np.ceil((1.0 + _SLACK) * n / parts)
    part = np.empty(n, dtype=np.int64)
    part[reverse_cuthill_mckee(links, symmetric_mode=True)] = np.arange(n) * parts // n
    for _ in range(_SWEEPS):
        for nodes in np.array_split(random.permutation(n), min(_ROUNDS, n)):
            _move(links[nodes], nodes, part, parts, limit)
    return part


def _move(links: csr_array, nodes: np.ndarray, part: np.ndarray, parts: int, limit: float) -> None:
    """Move those of ``nodes`` that score higher elsewhere, the highest scores first, as far as there is room."""
    n, sizes = len(part), np.bincount(part, minlength=parts)
    # links @ indicator: how many neighbours each node has in each cluster.
    near = csr_array(links @ csr_array((np.ones(n, dtype=np.float32), part, np.arange(n + 1)), shape=(n, parts)))
    which = np.repeat(np.arange(len(nodes)), np.diff(near.indptr))
    score = near.data * (1.0 - sizes / limit)[near.indices]
    order = np.lexsort((near.indices, score, which))
    best = order[np.flatnonzero(np.diff(which[order], append=-1))]
    best = best[(score[best] > 0.0) & (near.indices[best] != part[nodes[which[best]]])]
    best = best[np.lexsort((-score[best], near.indices[best]))]
    target = near.indices[best]
    rank = np.arange(len(target)) - np.searchsorted(target, target)
    fits = rank < (limit - sizes)[target]
    part[nodes[which[best[fits]]]] = target[fits]


def _metis(links: csr_array, parts: int, seed: int) -> np.ndarray:
    pymetis = import_metis()
    neighbours = pymetis.CSRAdjacency(adj_starts=links.indptr, adjacent=links.indices)
    _, part = pymetis.part_graph(parts, neighbours, options=pymetis.Options(seed=seed))
    return np.asarray(part, dtype=np.int64)


def import_metis() -> Any:
    """The package ``pymetis``, or the error that names the extra which brings it."""
    try:
        import pymetis
    except ImportError as error:
        raise missing_extra("pymetis", "partition") from error
    return pymetis


def _none_empty(part: np.ndarray, parts: int) -> np.ndarray:
    """The partition with one node of the largest cluster given to every empty one."""
    for empty in np.flatnonzero(np.bincount(part, minlength=parts) == 0):
        part[np.flatnonzero(part == np.bincount(part).argmax())[0]] = empty
    return part


class Clusters:
    """Batches of clusters; every pass over it groups the clusters anew. Made by :func:`clusters`.

    Attributes:
        part: the cluster of each node, [n].
    """

    def __init__(self, graph: Data, part: Tensor, batch_clusters: int, seed: int, rank: int, workers: int) -> None:
        self.part = part
        self._graph, self._batch_clusters, self._rank, self._workers = graph, batch_clusters, rank, workers
        self._random = torch.Generator().manual_seed(seed)
        self._nodes = _by_cluster(part)
        self._edges = _by_cluster(part[graph.edge_index[0]], len(self._nodes))
        self._local = torch.full((len(part),), -1)

    def __len__(self) -> int:
        """Batches in a pass."""
        return -(-len(self._nodes) // self._batch_clusters) // self._workers

    def __iter__(self) -> Iterator[Data]:
        drawn = torch.randperm(len(self._nodes), generator=self._random)
        for group in drawn.split(self._batch_clusters)[self._rank :: self._workers]:
            yield self._subgraph(group.tolist())

    @staticmethod
    def check_share(parts: int, batch_clusters: int, workers: int) -> None:
        """Refuse batches of more clusters than there are, and batches that the workers cannot share evenly."""
        if not isinstance(batch_clusters, int) or not 1 <= batch_clusters <= parts:
            raise InputError(
                f"{batch_clusters!r} clusters a batch: give a whole number from 1 to {parts}, the clusters"
            )
        batches = -(-parts // batch_clusters)
        if workers < 1 or batches % workers:
            raise InputError(
                f"{parts} clusters, {batch_clusters} a batch, are {batches} batches, which {workers} workers cannot "
                "share evenly: change the number of clusters"
            )

    def _subgraph(self, group: list[int]) -> Data:
        graph, local = self._graph, self._local
        nodes = torch.cat([self._nodes[cluster] for cluster in group]).sort().values
        edges = torch.cat([self._edges[cluster] for cluster in group])
        local[nodes] = torch.arange(len(nodes))
        ends = local[graph.edge_index[:, edges]]
        local[nodes] = -1
        inside = ends[1] >= 0
        batch = Data(edge_index=ends[:, inside], n_id=nodes, num_nodes=len(nodes))
        for key in graph.node_attrs():
            batch[key] = graph[key][nodes]
        for key in graph.edge_attrs():
            if key != "edge_index":
                batch[key] = graph[key][edges[inside]]
        return batch


def clusters(
    graph: Data,
    parts: int,
    *,
    batch_clusters: int = 1,
    seed: int = 0,
    method: str = "greedy",
    rank: int = 0,
    workers: int = 1,
) -> Clusters:
    """Mini-batches of a graph as `"Cluster-GCN" <https://arxiv.org/abs/1905.07953>`_ (Chiang et al., 2019) makes them.

    The nodes are partitioned once. Each pass over the result joins the clusters into random groups and yields the
    subgraph that each group induces, so edges between clusters of one group are kept. In a pass every node is in
    exactly one batch. A batch has the node and edge attributes of ``graph``, masks among them, and ``n_id``: the number
    of each of its nodes in ``graph``, ascending.

    Args:
        graph: a PyG ``Data`` with ``edge_index``, such as ``dataset.split(1)``.
        parts: number of clusters.
        batch_clusters: clusters of one batch; the last may have fewer.
        seed: of the partition and of the groups.
        method: of :func:`partition`.
        rank: which of the workers this is, from 0; it gets its share of the batches alone.
        workers: number of workers that share the batches, which must come out even.

    >>> from dissensus.data import clusters, load
    >>> sum(batch.num_nodes for batch in clusters(load("karate").split(1), 4, batch_clusters=2))
    34
    """
    Clusters.check_share(parts, batch_clusters, workers)
    if not 0 <= rank < workers:
        raise InputError(f"rank {rank} of {workers} workers: count them from 0")
    part = partition(graph.edge_index, graph.num_nodes, parts, seed=seed, method=method)
    return Clusters(graph, part, batch_clusters, seed, rank, workers)


def _by_cluster(part: Tensor, parts: int = 0) -> list[Tensor]:
    """The members of each cluster, ascending."""
    sizes = torch.bincount(part, minlength=parts).tolist()
    return list(torch.argsort(part, stable=True).split(sizes))
