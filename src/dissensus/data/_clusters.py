"""Partitions of the nodes of a graph into clusters, and mini-batches of clusters."""

from collections.abc import Iterator

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data

from dissensus.data import PARTITIONERS
from dissensus.errors import InputError, one_of, optional

# Clusters of the greedy partition exceed the mean size by at most this share.
_SLACK = 0.05
_SWEEPS = 10
# Blocks per sweep. Nodes in the same block move together, without seeing each other's moves.
_ROUNDS = 16


def partition(edge_index: Tensor, num_nodes: int, parts: int, *, seed: int = 0, method: str = "greedy") -> Tensor:
    """Partition the nodes into clusters of about equal size with few edges between them.

    ``greedy`` splits a breadth-first order into pieces and then sweeps over the nodes several times, moving each to the
    cluster c with the largest ``neighbours in c * (1 - size(c) / limit)``. The limit is 1.05 times the mean size
    (rounded up), and no cluster exceeds it. The time is linear in the number of edges.

    ``metis`` calls METIS (extra ``partition``), which cuts fewer edges of sparse graphs. It is never chosen
    automatically, so that the same arguments give the same clusters on every machine.

    Args:
        edge_index: [2, edges]; directions, self-loops and duplicates do not matter.
        num_nodes: n.
        parts: number of clusters, from 1 to n. No cluster is empty.
        seed: random seed for the order in which nodes are moved.
        method: ``greedy`` or ``metis``.

    Returns:
        The cluster of each node, [n], int64, from 0 to parts - 1.
    """
    one_of("partitioner", method, PARTITIONERS)
    if not isinstance(parts, int) or not 1 <= parts <= num_nodes:
        raise InputError(f"{parts!r} clusters of {num_nodes} nodes: give an integer from 1 to {num_nodes}")
    divide = _metis if method == "metis" else _greedy
    links = _links(edge_index.cpu().numpy(), num_nodes)
    part = np.zeros(num_nodes, dtype=np.int64) if parts == 1 else divide(links, parts, seed)
    return torch.from_numpy(_none_empty(part, parts))


def _links(edge_index: np.ndarray, n: int) -> csr_array:
    """The symmetric matrix [n, n] of the number of edges between two nodes in both directions, without self-loops."""
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
    """Move all ``nodes`` that score higher in another cluster, in order of their scores, as long as there is room."""
    n, sizes = len(part), np.bincount(part, minlength=parts)
    # links @ indicator: the number of neighbours of each node in each cluster.
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
    pymetis = optional("pymetis", "partition")
    neighbours = pymetis.CSRAdjacency(adj_starts=links.indptr, adjacent=links.indices)
    _, part = pymetis.part_graph(parts, neighbours, options=pymetis.Options(seed=seed))
    return np.asarray(part, dtype=np.int64)


def _none_empty(part: np.ndarray, parts: int) -> np.ndarray:
    """Give every empty cluster one node of the largest cluster."""
    for empty in np.flatnonzero(np.bincount(part, minlength=parts) == 0):
        part[np.flatnonzero(part == np.bincount(part).argmax())[0]] = empty
    return part


class Clusters:
    """An iterable of mini-batches of clusters, grouped differently in each pass; see :func:`clusters`.

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
        """Number of batches per pass."""
        return -(-len(self._nodes) // self._batch_clusters) // self._workers

    def __iter__(self) -> Iterator[Data]:
        drawn = torch.randperm(len(self._nodes), generator=self._random)
        for group in drawn.split(self._batch_clusters)[self._rank :: self._workers]:
            yield self._subgraph(group.tolist())

    @staticmethod
    def check_share(parts: int, batch_clusters: int, workers: int) -> None:
        """Raise an error if a batch has more clusters than there are, or if workers cannot share batches evenly."""
        if not isinstance(batch_clusters, int) or not 1 <= batch_clusters <= parts:
            raise InputError(
                f"{batch_clusters!r} clusters per batch: give an integer from 1 to {parts}, the number of clusters"
            )
        batches = -(-parts // batch_clusters)
        if workers < 1 or batches % workers:
            raise InputError(
                f"{parts} clusters, {batch_clusters} per batch, make {batches} batches, which {workers} workers cannot "
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
    """Mini-batches of a graph as in `"Cluster-GCN" <https://arxiv.org/abs/1905.07953>`_ (Chiang et al., 2019).

    The nodes are partitioned once. Each pass over the result joins the clusters to random groups and yields the
    subgraph induced by each group, including the edges between its clusters. In every pass each node is in exactly one
    batch. A batch has the node and edge attributes of ``graph``, including masks, and ``n_id``, the indices of its
    nodes in ``graph`` in ascending order.

    Args:
        graph: a PyG ``Data`` with ``edge_index``, such as ``dataset.split(1)``.
        parts: number of clusters.
        batch_clusters: number of clusters per batch; the last batch may have fewer.
        seed: random seed for the partition and the groups.
        method: see :func:`partition`.
        rank: index of this worker, from 0. Each worker gets its own share of the batches.
        workers: number of workers, which must divide the number of batches.

    >>> from dissensus.data import clusters, load
    >>> sum(batch.num_nodes for batch in clusters(load("karate").split(1), 4, batch_clusters=2))
    34
    """
    Clusters.check_share(parts, batch_clusters, workers)
    if not 0 <= rank < workers:
        raise InputError(f"rank is {rank} with {workers} workers: give a rank from 0 to {workers - 1}")
    part = partition(graph.edge_index, graph.num_nodes, parts, seed=seed, method=method)
    return Clusters(graph, part, batch_clusters, seed, rank, workers)


def _by_cluster(part: Tensor, parts: int = 0) -> list[Tensor]:
    """The nodes of each cluster, in ascending order."""
    sizes = torch.bincount(part, minlength=parts).tolist()
    return list(torch.argsort(part, stable=True).split(sizes))
