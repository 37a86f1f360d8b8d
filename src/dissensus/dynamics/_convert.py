"""Any kind of graph as a communication matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dissensus.dynamics._edges import from_edges, read_edges
from dissensus.errors import InputError
from dissensus.graph import check_edge_index

# A networkx graph, a PyG Data, an integer edge_index, an edge list or its CSV file, or a square matrix: NumPy, scipy
# sparse, torch dense or sparse.
AnyGraph = Any


def as_matrix(
    graph: AnyGraph,
    *,
    num_nodes: int | None = None,
    directed: bool = False,
    self_loops: bool = True,
    normalize: bool = False,
) -> scipy.sparse.csr_array:
    """A graph of any kind as the float64 matrix A, ``A[i, k]`` being the weight with which agent i listens to agent k.

    Args:
        graph: a networkx graph (edge attribute ``weight``, else 1; an arrow from k to i is entry (i, k)); a PyG
            ``Data`` (``edge_index``, ``edge_weight`` or ``weight`` if there); an ``edge_index``, an int32 or int64
            tensor [2, edges] from source k to target i; or a square matrix: nested lists, NumPy, scipy sparse, or a
            torch tensor, dense or sparse (a tensor of integers of shape [2, 2] is an ``edge_index``). Duplicate edges
            are one entry, or the sum of their weights. Or an edge list: a list of tuples (source, target) or (source,
            target, weight), or the path of a ``.csv`` file with columns of these names, or of a folder with
            ``edges.csv`` and ``nodes.csv``. Agents are numbered by their names, if these are 0 to n - 1, and else as
            they appear.
        num_nodes: n, for an ``edge_index`` whose last nodes have no edges.
        directed: the source of an edge in an edge list is heard by its target alone; otherwise both hear each other.
        self_loops: keep the diagonal.
        normalize: divide every row by the sum of its absolute values; rows without entries stay empty.

    Returns:
        [n, n], without explicit zeros, columns sorted within each row.
    """
    matrix = _matrix(graph, num_nodes, directed)
    if not self_loops:
        matrix = scipy.sparse.csr_array(matrix - scipy.sparse.diags_array(matrix.diagonal()))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if normalize:
        totals = abs(matrix).sum(axis=1)
        matrix = scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / np.where(totals > 0, totals, 1.0)) @ matrix)
        matrix.sort_indices()
    return matrix


def _matrix(graph: AnyGraph, num_nodes: int | None, directed: bool) -> scipy.sparse.csr_array:
    if any(kind.__module__.split(".")[0] == "networkx" for kind in type(graph).__mro__):
        import networkx

        if len(graph) == 0:
            raise InputError("the graph has no nodes: add some")
        try:
            matrix = networkx.to_scipy_sparse_array(graph, dtype=np.dtype(np.float64)).T
        except (TypeError, ValueError):
            raise InputError("an edge's weight is not a number: set its attribute 'weight' to one") from None
        return to_scipy(matrix, "communication")
    if isinstance(graph, Path) or (isinstance(graph, str) and (graph.endswith(".csv") or "/" in graph)):
        return to_scipy(read_edges(Path(graph), directed=directed), "communication")
    if _is_edge_list(graph):
        return to_scipy(from_edges(graph, directed=directed), "communication")
    if hasattr(graph, "edge_index"):
        weight = getattr(graph, "edge_weight", None)
        # PyG's from_networkx keeps networkx's name.
        weight = getattr(graph, "weight", None) if weight is None else weight
        return _from_edges(graph.edge_index, weight, graph.num_nodes)
    if _is_edge_index(graph):
        if num_nodes is None:
            num_nodes = int(graph.max()) + 1 if graph.numel() else 0
        return _from_edges(graph, None, num_nodes)
    if not (is_one_graph(graph) or isinstance(graph, Tensor | np.ndarray) or scipy.sparse.issparse(graph)):
        raise InputError(
            f"the graph is a {type(graph).__name__}: give a networkx graph, a PyG Data, an edge_index, or a square "
            "matrix (nested lists, NumPy, scipy sparse or torch), a list of tuples, or the path of a .csv edge list"
        )
    return to_scipy(graph, "communication")


def _is_edge_list(graph: Any) -> bool:
    """Whether it is a list of tuples; a matrix is a list of lists, or a tuple of tuples."""
    return isinstance(graph, list) and len(graph) > 0 and all(isinstance(edge, tuple) for edge in graph)


def is_one_graph(graph: Any) -> bool:
    """Whether a list or tuple is a matrix or an edge list, not one of graphs."""
    return isinstance(graph, list | tuple) and len(graph) > 0 and all(_is_row(row) for row in graph)


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple | np.ndarray | Tensor) and all(np.ndim(entry) == 0 for entry in row)


def _is_edge_index(graph: AnyGraph) -> bool:
    """Whether it is a dense tensor of integers, unless that is square; one of shape [2, 2] is an edge_index."""
    if not (isinstance(graph, Tensor) and graph.dtype in (torch.int32, torch.int64) and graph.layout == torch.strided):
        return False
    return graph.dim() != 2 or graph.shape[0] != graph.shape[1] or graph.shape[0] == 2


def _from_edges(edge_index: Tensor, weight: Tensor | None, num_nodes: int) -> scipy.sparse.csr_array:
    if num_nodes == 0:
        raise InputError("the graph has no nodes: add edges, or say num_nodes")
    check_edge_index(edge_index, num_nodes)
    source, target = edge_index.cpu().numpy()
    values = np.ones(len(source)) if weight is None else weight.detach().cpu().double().numpy().reshape(-1)
    if len(values) != len(source):
        raise InputError(f"edge_weight has {len(values)} entries for {len(source)} edges: give one weight an edge")
    matrix = to_scipy(scipy.sparse.coo_array((values, (target, source)), shape=(num_nodes, num_nodes)), "communication")
    if weight is None:
        matrix.data[:] = 1.0
    return matrix


def as_option_matrix(options: Any) -> scipy.sparse.csr_array:
    """The option graph as a matrix [o, o]; zeros for a number of uncorrelated options, and for None, one option."""
    if not isinstance(options, int | None):
        return to_scipy(options, "options")
    count = 1 if options is None else options
    if count < 1:
        raise InputError(f"options is {count}: at least one option is needed")
    return scipy.sparse.csr_array((count, count))


def to_scipy(matrix: Any, name: str) -> scipy.sparse.csr_array:
    """A square matrix of any kind as a float64 scipy CSR array."""
    if isinstance(matrix, Tensor):
        if matrix.layout != torch.strided:
            coo = matrix.detach().cpu().to_sparse_coo().coalesce()
            indices = coo.indices().numpy()
            matrix = scipy.sparse.coo_array((coo.values().numpy(), (indices[0], indices[1])), shape=tuple(matrix.shape))
        else:
            matrix = matrix.detach().cpu().numpy()
    try:
        matrix = matrix if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    except ValueError:
        raise InputError(f"the rows of the {name} matrix differ in length: it must be square") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError(f"the {name} matrix has shape {tuple(matrix.shape)}: it must be square and not empty")
    try:
        csr = scipy.sparse.csr_array(matrix)
        csr = csr if np.iscomplexobj(csr) else csr.astype(np.float64)
    except (TypeError, ValueError):
        csr = None
    if csr is None or np.iscomplexobj(csr):
        raise InputError(f"the {name} matrix has entries that are not real numbers: convert them")
    if not np.isfinite(csr.data).all():
        raise InputError(f"the {name} matrix has NaN or infinite entries: remove them")
    return csr
