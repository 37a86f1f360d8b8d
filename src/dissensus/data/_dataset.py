"""A graph with labels and splits, checked when it is created."""

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, subgraph, to_undirected

from dissensus.data._splits import FixedSplits, GraphSplits, ScaledSplits, Splits, node_splits
from dissensus.errors import InputError

MASKS = ("train_mask", "val_mask", "test_mask")
_FIELDS = ("x", "edge_index", "y", "edge_weight", *MASKS)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A graph with ``n`` nodes and its splits. Create one with :func:`load` or :func:`from_pyg`.

    Args:
        name: Name of the dataset, or of the file without its suffix.
        graph: A PyG ``Data`` with ``x [n, features]`` (float32), ``edge_index [2, edges]`` (int64, from source to
            target), ``y [n]`` (int64, -1 for nodes without a label; or float32, NaN for nodes without one) and, for
            weighted edges, ``edge_weight [edges]`` (float32, positive).
        class_names: Names of the classes 0, 1, ..., as they are in the file.
        splits: How :meth:`split` draws its masks.
        node_ids: Names of the nodes, if the file has them.
        feature_names: Names of the columns of ``x``, if the file has them.
        metric: Metric of the dataset's protocol: ``accuracy``, ``roc_auc``, ``mae``, ...
        missing: Share of the nodes outside the training set whose features :meth:`split` sets to zero.

    The targets of a regression are floating-point numbers in ``y [n]``. In a collection of graphs, ``graph.batch [n]``
    is the index of each node's graph; if ``y`` has one entry per graph, so do the masks.
    """

    name: str
    graph: Data
    class_names: tuple[str, ...]
    splits: Splits
    node_ids: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    metric: str = "accuracy"
    missing: float = 0.0

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 for a graph without labels."""
        return len(self.class_names)

    @property
    def per_graph(self) -> bool:
        """Whether there is one target per graph of a collection instead of one per node."""
        return self.graph.batch is not None and len(self.graph.y) != self.graph.num_nodes

    @property
    def default_splits(self) -> tuple[int, ...]:
        """The seeds used by default: all fixed splits, or ten random ones."""
        return self.splits.defaults

    @property
    def protocol(self) -> str:
        """Description of the split protocol."""
        missing = f", features of {100 * self.missing:g}% of the other nodes missing" if self.missing else ""
        return self.splits.protocol + missing

    @property
    def num_outputs(self) -> int:
        """Number of output channels that a model needs: the number of classes, or 1 for a regression."""
        return 1 if self.graph.y.is_floating_point() else self.num_classes

    def with_labels(self, per_class: int) -> "Dataset":
        """The same dataset with ``per_class`` training nodes in each class."""
        if not isinstance(per_class, int) or per_class < 1:
            raise InputError(f"labels_per_class is {per_class!r}: give an integer of at least 1")
        if self.graph.y.is_floating_point():
            raise InputError(f"labels_per_class is for classes, but {self.name} is a regression: leave it out")
        return replace(self, splits=self.splits.with_labels(per_class))

    def with_missing_features(self, share: float) -> "Dataset":
        """The same dataset with zero features at a ``share`` of the nodes outside the training set.

        The nodes are drawn by ``RandomState(seed)`` of the split; a share of 1 means all of them. The result of
        :meth:`split` then also has ``missing_mask [n]``.
        """
        if not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
            raise InputError(f"missing_features is {share!r}: give a number from 0 to 1")
        if self.per_graph:
            raise InputError(f"missing_features is for training nodes, but {self.name} trains on graphs: leave it out")
        return replace(self, missing=float(share))

    def split(self, seed: int) -> Data:
        """The graph with boolean ``train_mask``, ``val_mask`` and ``test_mask`` ``[n]`` of split ``seed``.

        The same seed always gives the same masks. The tensors of :attr:`graph` are shared, not copied. If the metric of
        the dataset is not the default one for its targets, the graph has it as ``metric``.
        """
        data = copy(self.graph)
        masks = self.splits.masks(self.graph.y, self.class_names, seed)
        data.train_mask, data.val_mask, data.test_mask = masks
        if self.missing:
            others = (~masks[0]).nonzero().view(-1).numpy()
            chosen = np.random.RandomState(seed).permutation(others)[: round(self.missing * len(others))]
            data.missing_mask = torch.zeros(len(masks[0]), dtype=torch.bool)
            data.missing_mask[chosen] = True
            data.x = data.x.masked_fill(data.missing_mask[:, None], 0.0)
        if self.metric != ("mae" if self.graph.y.is_floating_point() else "accuracy"):
            data.metric = self.metric  # for train.fit
        return data

    @cached_property
    def homophily(self) -> float | None:
        """Share of edges, including self-loops, between nodes of the same class.

        Edges of unlabelled nodes do not count. The value is ``None`` if no edge is left or if nodes have no classes.
        """
        if self.graph.y.is_floating_point() or self.per_graph:
            return None
        ends = self.graph.y[self.graph.edge_index]
        ends = ends[:, (ends >= 0).all(dim=0)]
        return float((ends[0] == ends[1]).double().mean()) if ends.size(1) else None

    @cached_property
    def one_way(self) -> bool:
        """Whether there are edges between different nodes, but none of them in both directions."""
        source, target = self.graph.edge_index[:, self.graph.edge_index[0] != self.graph.edge_index[1]]
        n = self.graph.num_nodes
        return bool(source.numel()) and not bool(torch.isin(source * n + target, target * n + source).any())

    @cached_property
    def fingerprint(self) -> str:
        """A hash of features, edges, edge weights, labels and fixed splits.

        Two datasets with the same fingerprint have the same data.
        """
        digest = hashlib.blake2b(digest_size=16)
        tensors = [self.graph.x, self.graph.edge_index, self.graph.y]
        if self.graph.edge_weight is not None:
            tensors.append(self.graph.edge_weight)
        if self.graph.batch is not None:
            tensors.append(self.graph.batch)
        if isinstance(self.splits, FixedSplits):
            tensors += [self.splits.train, self.splits.val, self.splits.test]
        for tensor in tensors:
            digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            digest.update(memoryview(tensor.contiguous().numpy()).cast("B") if tensor.numel() else b"")
        digest.update(repr((self.class_names, self.protocol)).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        graph = self.graph
        return (
            f"Dataset({self.name!r}, nodes={graph.num_nodes}, edges={graph.num_edges}, "
            f"features={graph.num_features}, classes={self.num_classes}, splits={self.protocol!r})"
        )

    def undirected(self) -> "Dataset":
        """The same dataset with the reverse of every edge added and duplicates merged.

        A reverse edge has the weight of the edge. Weights of duplicate edges add up, as in the models. If the two
        directions have different weights, both get the mean.
        """
        graph = copy(self.graph)
        if graph.edge_weight is None:
            graph.edge_index = to_undirected(graph.edge_index, num_nodes=graph.num_nodes)
        else:
            once = coalesce(graph.edge_index, graph.edge_weight, graph.num_nodes, reduce="sum")
            graph.edge_index, graph.edge_weight = to_undirected(*once, num_nodes=graph.num_nodes, reduce="mean")
        return replace(self, graph=graph)

    def largest_component(self) -> "Dataset":
        """The same dataset restricted to the largest (weakly) connected component; the order of nodes is kept."""
        graph = self.graph
        if graph.batch is not None:
            raise InputError(f"{self.name} is a collection of graphs: leave largest_component out")
        row, col = graph.edge_index.numpy()
        links = coo_array((np.ones(len(row), dtype=np.int8), (row, col)), shape=(graph.num_nodes, graph.num_nodes))
        _, component = connected_components(links, directed=True, connection="weak")
        keep = torch.from_numpy(np.flatnonzero(component == np.bincount(component).argmax()))
        edge_index, edge_weight = subgraph(
            keep, graph.edge_index, graph.edge_weight, relabel_nodes=True, num_nodes=graph.num_nodes
        )
        return replace(
            self,
            graph=Data(x=graph.x[keep], edge_index=edge_index, y=graph.y[keep], edge_weight=edge_weight),
            splits=self.splits.subset(keep) if isinstance(self.splits, FixedSplits | GraphSplits) else self.splits,
            node_ids=None if self.node_ids is None else tuple(self.node_ids[i] for i in keep.tolist()),
        )


def from_pyg(data: Data | Sequence[Data], *, name: str = "graph") -> Dataset:
    """Create a :class:`Dataset` from a PyG ``Data`` with ``x``, ``edge_index`` and, optionally, ``y``.

    - ``y`` is ``[n]`` or ``[n, 1]``. Integers are classes, and negative ones mean no label. Numbers of which some have
      a fraction are the targets of a regression, and NaN means no target.
    - ``train_mask``, ``val_mask`` and ``test_mask``, ``[n]`` or ``[n, k]`` for k splits, become fixed splits. Without
      them, splits are random.
    - ``edge_weight``, ``[edges]`` or ``[edges, 1]``, has the weights of the edges as positive numbers.

    A list of such graphs, or a PyG ``Batch``, is a collection. There ``y`` and the masks may have one entry per graph,
    and random splits have 60% of the graphs for training, 20% for validation and 20% for testing.

    All other attributes are ignored, including ``edge_attr``: copy weights to ``edge_weight``.

    >>> from torch_geometric.data import Data
    >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> graphs = [Data(x=torch.rand(4, 2), edge_index=ring, y=torch.tensor([i % 2])) for i in range(10)]
    >>> from_pyg(graphs).split(1).train_mask.sum()
    tensor(6)
    """
    fields = data.to_dict() if isinstance(data, Data) else joined(data, "the graphs")
    return from_fields(fields, name=name, where="the graph" if isinstance(data, Data) else "the graphs")


def joined(graphs: Sequence[Data], where: str) -> dict[str, Any]:
    """The arrays of several graphs as those of one, and ``batch``, the index of the graph of each node."""
    parts: dict[str, list[np.ndarray]] = {}
    first: set[str] = set()
    nodes = 0
    for i, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise InputError(f"{where}: item {i} is {type(graph).__name__}: give PyG Data, one for each graph")
        here = f"{where}: graph {i}"
        fields = {key: value for key in _FIELDS if (value := graph.to_dict().get(key)) is not None}
        first = first or set(fields)
        if odd := sorted(first ^ set(fields)):
            raise InputError(
                f"{here} {'lacks' if odd[0] in first else 'has'} {odd[0]}, unlike graph 0: make them alike"
            )
        x = _features(fields.get("x"), here)
        if parts and x.size(1) != parts["x"][0].shape[1]:
            raise InputError(f"{here} has {x.size(1)} features, and graph 0 {parts['x'][0].shape[1]}: make them alike")
        arrays = {key: _array(value, key, here) for key, value in fields.items() if key not in ("x", "edge_index")}
        arrays = {key: value[None] if value.ndim == 0 else value for key, value in arrays.items()}
        arrays |= {"x": x.numpy(), "batch": np.full(len(x), i)}
        arrays["edge_index"] = _edges(fields.get("edge_index"), len(x), here).numpy() + nodes
        for key, value in arrays.items():
            parts.setdefault(key, []).append(value)
        nodes += len(x)
    if not parts:
        raise InputError(f"{where}: the list is empty: give at least one graph")
    try:
        return {key: np.concatenate(found, axis=int(key == "edge_index")) for key, found in parts.items()}
    except ValueError as error:
        raise InputError(f"{where} have arrays that do not fit together ({error}): make them alike") from error


def from_fields(
    fields: Mapping[str, Any],
    *,
    name: str,
    where: str,
    class_names: Sequence[str] | None = None,
    node_ids: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    splits: Splits | None = None,
    metric: str | None = None,
) -> Dataset:
    """Check arrays or tensors by name and create a :class:`Dataset`. Error messages begin with ``where``.

    With ``batch``, the index of the graph of each node, it is a collection of graphs. ``class_names`` has the names of
    the classes 0, 1, ... in ``y``. Without it, the values of ``y`` are the names.
    """
    x = _features(fields.get("x"), where)
    edge_index = _edges(fields.get("edge_index"), x.size(0), where)
    edge_weight = _weights(fields.get("edge_weight"), edge_index, where)
    batch = _batch(fields.get("batch"), x.size(0), edge_index, where)
    y, found = _labels(fields.get("y"), x.size(0), None if batch is None else int(batch[-1]) + 1, where)
    if class_names is None:
        class_names = found
    given = [key for key in MASKS if fields.get(key) is not None]
    if given and splits is None:
        splits = _fixed(fields, given, y, where)
    return Dataset(
        name=name,
        graph=Data(x=x, edge_index=edge_index, y=y, edge_weight=edge_weight, batch=batch),
        class_names=tuple(class_names),
        splits=splits or _random_splits(y, batch),
        node_ids=None if node_ids is None else tuple(node_ids),
        feature_names=None if feature_names is None else tuple(feature_names),
        metric=metric or ("mae" if y.is_floating_point() else "accuracy"),
    )


def _random_splits(y: Tensor, batch: Tensor | None) -> Splits:
    if batch is None:
        return node_splits(y) if y.is_floating_point() else ScaledSplits()
    known = ~y.isnan() if y.is_floating_point() else y >= 0
    if len(y) == len(batch):
        return GraphSplits(batch, known)
    return GraphSplits(torch.where(known, known.cumsum(0) - 1, 0), known)


def _batch(value: Any, nodes: int, edge_index: Tensor, where: str) -> Tensor | None:
    """The index of the graph of each node, ``[nodes]`` in ascending order, or ``None`` for a single graph."""
    if value is None:
        return None
    batch = _array(value, "batch", where)
    if batch.shape != (nodes,) or batch.dtype.kind not in "iu":
        raise InputError(
            f"{where}: batch is {batch.dtype} of shape {list(batch.shape)}, but x has {nodes} rows: give the index of "
            "the graph of each node, or leave it out"
        )
    index = torch.from_numpy(_owned(np.ascontiguousarray(batch, dtype=np.int64)))
    steps = index.diff()
    if int(index[0]) != 0 or bool(((steps != 0) & (steps != 1)).any()):
        raise InputError(f"{where}: batch must be 0, ..., 0, 1, ..., 1, 2, ...: put the nodes of each graph together")
    across = (index[edge_index[0]] != index[edge_index[1]]).nonzero().view(-1)
    if len(across):
        source, target = edge_index[:, int(across[0])].tolist()
        raise InputError(f"{where}: edge {int(across[0])}, from node {source} to {target}, joins two graphs: drop it")
    return index


def _array(value: Any, key: str, where: str) -> np.ndarray:
    """``value`` as a NumPy array of numbers, booleans or text."""
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.device.type == "meta":
            raise InputError(f"{where}: {key} is not a plain dense tensor: store {key}.to_dense()")
        value = value.detach().resolve_conj().resolve_neg().cpu()
        try:
            value = value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
        except (TypeError, RuntimeError):
            raise InputError(f"{where}: {key} has dtype {value.dtype}: store it as float32 or int64") from None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUS":
        kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise InputError(f"{where}: {key} has {kind}, not plain numbers: store it as a numeric array")
    return value


def _features(value: Any, where: str) -> Tensor:
    if value is None:
        raise InputError(f"{where}: there is no x: add the node features as an array [nodes, features]")
    x = _array(value, "x", where)
    if x.dtype.kind in "US" or x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"{where}: x is {x.dtype} of shape {list(x.shape)}: store numbers [nodes, features], at least one of each"
        )
    with np.errstate(over="ignore"):
        x = np.ascontiguousarray(x, dtype=np.float32)
    wrong = ~np.isfinite(x).all(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        column = int((~np.isfinite(x[row])).argmax())
        raise InputError(
            f"{where}: x[{row}, {column}] is {x[row, column]} (NaN, infinite or too large for float32), "
            f"{int(wrong.sum())} rows in all: fill or drop them"
        )
    return torch.from_numpy(_owned(x))


def _edges(value: Any, nodes: int, where: str) -> Tensor:
    if value is None:
        raise InputError(f"{where}: there is no edge_index: add it as integers [2, edges], one column per edge")
    edges = _array(value, "edge_index", where)
    if edges.size == 0 and edges.ndim == 2 and 2 in edges.shape:
        return torch.empty(2, 0, dtype=torch.long)
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or edges.shape[0] != 2:
        turned = edges.dtype.kind in "iu" and edges.ndim == 2 and edges.shape[1] == 2
        hint = "transpose it" if turned else "store one edge a column, as integers"
        raise InputError(
            f"{where}: edge_index is {edges.dtype} of shape {list(edges.shape)}, not integers [2, E]: {hint}"
        )
    wrong = ((edges < 0) | (edges >= nodes)).any(axis=0)
    if wrong.any():
        column = int(wrong.argmax())
        raise InputError(
            f"{where}: edge {column} joins nodes {edges[0, column]} and {edges[1, column]}, but x has rows "
            f"0-{nodes - 1}: number the nodes from 0, or drop the edge"
        )
    return torch.from_numpy(_owned(np.ascontiguousarray(edges, dtype=np.int64)))


def _weights(value: Any, edge_index: Tensor, where: str) -> Tensor | None:
    """Positive weights ``[edges]``, or ``None`` if there are none."""
    if value is None:
        return None
    weights = _array(value, "edge_weight", where)
    edges = edge_index.size(1)
    if weights.dtype.kind in "US" or weights.shape not in ((edges,), (edges, 1)):
        raise InputError(
            f"{where}: edge_weight is {weights.dtype} of shape {list(weights.shape)}, but there are {edges} edges: "
            "give one number per edge, or leave it out"
        )
    with np.errstate(over="ignore", under="ignore"):
        weights = np.ascontiguousarray(weights.reshape(edges), dtype=np.float32)
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        edge = int(wrong.argmax())
        source, target = edge_index[:, edge].tolist()
        raise InputError(
            f"{where}: edge {edge}, from node {source} to {target}, has the weight {weights[edge]}, which is not a "
            f"positive float32 number ({int(wrong.sum())} such edges in all): drop them, or give them positive weights "
            "(only 'dissensus simulate' accepts negative weights, from an edge list, .csv)"
        )
    return torch.from_numpy(_owned(weights))


def _labels(value: Any, nodes: int, graphs: int | None, where: str) -> tuple[Tensor, tuple[str, ...]]:
    """Classes 0, 1, ... in sorted order (-1 for none) with their names, or numbers (NaN for none) without names."""
    if value is None:
        return torch.full((nodes,), -1), ()
    y = _array(value, "y", where)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape not in ((nodes,), (graphs,)):
        either = "" if graphs is None else f", or one for each of the {graphs} graphs"
        raise InputError(
            f"{where}: y has shape {list(y.shape)}, but x has {nodes} rows: give one label per node{either}"
        )
    if y.dtype.kind in "US":
        try:
            text = y.astype(np.str_)
        except UnicodeDecodeError:
            raise InputError(f"{where}: y holds bytes that are not ASCII: store it as text") from None
        return code_labels(text.tolist())
    if y.dtype.kind == "f":
        with np.errstate(over="ignore"):
            numbers = np.ascontiguousarray(y, dtype=np.float32)
        if np.isinf(numbers).any():
            row = int(np.isinf(numbers).argmax())
            raise InputError(
                f"{where}: y[{row}] is {y[row]}, which is too large for float32: give a smaller number, or NaN"
            )
        y = np.where(np.isnan(y), -1, y)
        # Classes are floating-point numbers if NaN marks unknown ones.
        if (y != np.floor(y)).any() or (np.abs(y) > 2**53).any():
            return torch.from_numpy(_owned(numbers)), ()
    if y.dtype.kind == "u":
        values, codes = np.unique(y, return_inverse=True)
    else:
        y = np.maximum(y.astype(np.int64), -1)
        values, codes = np.unique(y, return_inverse=True)
        if values[0] == -1:
            values, codes = values[1:], codes - 1
    return torch.from_numpy(codes.astype(np.int64)), tuple(str(value) for value in values.tolist())


def code_labels(labels: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Turn text labels into classes 0, 1, ... in sorted order, with their names. An empty text means no label (-1).

    If all labels are integers, they are sorted as numbers, and negative ones mean no label.

    >>> code_labels(["10", "", "9"])
    (tensor([ 1, -1,  0]), ('9', '10'))
    """
    known = sorted({label for label in labels if label})
    numbers = [_whole(label) for label in known]
    if None in numbers:
        code = {label: i for i, label in enumerate(known)}
        names = known
    else:
        value = dict(zip(known, (number for number in numbers if number is not None), strict=True))
        classes = sorted({number for number in value.values() if number >= 0})
        position = {number: i for i, number in enumerate(classes)}
        code = {label: position.get(number, -1) for label, number in value.items()}
        names = [str(number) for number in classes]
    return torch.tensor([code.get(label, -1) for label in labels], dtype=torch.long), tuple(names)


def _whole(text: str) -> int | None:
    """``text`` as an integer, also if it is written as ``3.0``, or None."""
    digits = text.removesuffix(".0")
    unsigned = digits.removeprefix("-")
    return int(digits) if unsigned.isascii() and unsigned.isdigit() and len(unsigned) < 19 else None


def _fixed(fields: Mapping[str, Any], given: Sequence[str], y: Tensor, where: str) -> FixedSplits:
    missing = [key for key in MASKS if key not in given]
    if missing:
        raise InputError(f"{where}: there is {given[0]} but no {missing[0]}: give all three masks, or none")
    masks = [_mask(fields[key], key, len(y), where) for key in MASKS]
    if len({mask.shape for mask in masks}) > 1:
        shapes = ", ".join(str(list(mask.shape)) for mask in masks)
        raise InputError(f"{where}: the masks differ in shape ({shapes}): give each as [nodes] or [nodes, splits]")
    for key, mask in zip(MASKS, masks, strict=True):
        empty = ~mask.any(axis=0)
        if empty.any():
            raise InputError(f"{where}: {key} of split {int(empty.argmax())} is empty: mark at least one node in it")
        bare = mask.any(axis=1) & (torch.isnan(y) if y.is_floating_point() else y < 0).numpy()
        if bare.any():
            raise InputError(f"{where}: {key} marks node {int(bare.argmax())}, which has no label: label or unmark it")
    twice = sum(mask.astype(np.int8) for mask in masks) > 1
    if np.any(twice):
        node, split = np.argwhere(twice)[0].tolist()
        raise InputError(f"{where}: node {node} is in two masks of split {split}: leave it in one")
    return FixedSplits(*(torch.from_numpy(mask) for mask in masks))


def _mask(value: Any, key: str, nodes: int, where: str) -> np.ndarray:
    mask = _array(value, key, where)
    if mask.ndim == 1:
        mask = mask[:, None]
    if mask.ndim != 2 or mask.shape[0] != nodes or not mask.shape[1] or mask.dtype.kind in "US":
        raise InputError(
            f"{where}: {key} is {mask.dtype} of shape {list(mask.shape)}, but x has {nodes} rows: "
            "give booleans [nodes] or [nodes, splits]"
        )
    if not np.isin(mask, (0, 1)).all():
        raise InputError(f"{where}: {key} has other values than 0 and 1: give booleans, not node indices")
    return _owned(np.ascontiguousarray(mask, dtype=np.bool_))


def _owned(array: np.ndarray) -> np.ndarray:
    """``array``, or a copy if it is read-only, which tensors cannot be."""
    return array if array.flags.writeable else array.copy()
