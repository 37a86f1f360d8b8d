"""A graph with labels and its splits, checked once on the way in."""

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


@dataclass(frozen=True, eq=False)
class Dataset:
    """A graph of ``n`` nodes and the splits that belong to it.

    Args:
        name: The dataset's name, or the stem of the file it came from.
        graph: ``x [n, features]`` (float32), ``edge_index [2, edges]`` (int64, each column a message from its first
            node to its second), ``y [n]`` (int64, -1 where a node has no label; or float32, NaN where it has none) and,
            if the edges have weights, ``edge_weight [edges]`` (float32, positive).
        class_names: The name of class 0, 1, ...; the labels of ``y`` as the file wrote them.
        splits: How :meth:`split` draws its masks.
        node_ids: The nodes' names, where the file gave them.
        feature_names: The names of the columns of ``x``, where the file gave them.
        metric: What the dataset's protocol reports: ``accuracy``, ``roc_auc``, ``mae``, ...
        missing: The share of nodes outside the training set whose features :meth:`split` sets to zero.

    Targets of a regression are floating-point, ``y [n]``. In a collection of graphs, ``graph.batch [n]`` names the
    graph of each node; where ``y`` has one entry for each graph, so have the masks.
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
        """The number of classes; 0 for a graph without labels."""
        return len(self.class_names)

    @property
    def default_splits(self) -> tuple[int, ...]:
        """The seeds to use when the caller names none: all fixed splits, or ten random ones."""
        return self.splits.defaults

    @property
    def protocol(self) -> str:
        """The split protocol in words."""
        missing = f", features of {100 * self.missing:g}% of the other nodes missing" if self.missing else ""
        return self.splits.protocol + missing

    @property
    def num_outputs(self) -> int:
        """The width of a model's output: the number of classes, or 1 for a regression."""
        return 1 if self.graph.y.is_floating_point() else self.num_classes

    def with_labels(self, per_class: int) -> "Dataset":
        """The same dataset with ``per_class`` training nodes in each class."""
        if not isinstance(per_class, int) or per_class < 1:
            raise InputError(f"labels_per_class is {per_class!r}: give a whole number of at least 1")
        if self.graph.y.is_floating_point():
            raise InputError(f"labels_per_class is for classes, and {self.name} has numbers for targets: leave it out")
        return replace(self, splits=self.splits.with_labels(per_class))

    def with_missing_features(self, share: float) -> "Dataset":
        """The same dataset with the features of a ``share`` of the nodes outside the training set set to zero.

        The nodes are drawn by ``RandomState(seed)`` of the split; 1 takes all of them. :meth:`split` then also gives
        ``missing_mask [n]``.
        """
        if not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
            raise InputError(f"missing_features is {share!r}: give a share from 0 to 1")
        if len(self.graph.y) != self.graph.num_nodes:
            raise InputError(f"missing_features is for training nodes, and {self.name} trains on graphs: leave it out")
        return replace(self, missing=float(share))

    def split(self, seed: int) -> Data:
        """The graph with boolean ``train_mask``, ``val_mask`` and ``test_mask`` ``[n]`` of split ``seed``.

        The tensors of :attr:`graph` are shared, not copied. The same seed always gives the same masks. Where the
        dataset's metric is not the usual one of its targets, the graph has it as ``metric``.
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
            data.metric = self.metric  # which train.fit would otherwise not know
        return data

    @cached_property
    def homophily(self) -> float | None:
        """The share of edges, self-loops included, that join two nodes of one class.

        Edges with an unlabelled end do not count; ``None`` if no edge is left, and where nodes have no classes.
        """
        if self.graph.y.is_floating_point():
            return None
        ends = self.graph.y[self.graph.edge_index]
        ends = ends[:, (ends >= 0).all(dim=0)]
        return float((ends[0] == ends[1]).double().mean()) if ends.size(1) else None

    @cached_property
    def one_way(self) -> bool:
        """Whether there are edges between different nodes, and not one of them has its reverse."""
        source, target = self.graph.edge_index[:, self.graph.edge_index[0] != self.graph.edge_index[1]]
        n = self.graph.num_nodes
        return bool(source.numel()) and not bool(torch.isin(source * n + target, target * n + source).any())

    @cached_property
    def fingerprint(self) -> str:
        """A hash of features, edges, their weights, labels and fixed splits.

        Two datasets of one fingerprint hold the same data.
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
        """The same dataset with the reverse of every edge added, duplicates merged.

        The reverse gets the edge's weight. Weights of edges that are repeated in one direction add up, as they do in
        the models; of two directions with different weights both get the mean.
        """
        graph = copy(self.graph)
        if graph.edge_weight is None:
            graph.edge_index = to_undirected(graph.edge_index, num_nodes=graph.num_nodes)
        else:
            once = coalesce(graph.edge_index, graph.edge_weight, graph.num_nodes, reduce="sum")
            graph.edge_index, graph.edge_weight = to_undirected(*once, num_nodes=graph.num_nodes, reduce="mean")
        return replace(self, graph=graph)

    def largest_component(self) -> "Dataset":
        """The same dataset on the nodes of the largest (weakly) connected component alone, in their old order."""
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


def from_pyg(data: Data, *, name: str = "graph") -> Dataset:
    """A :class:`Dataset` from a PyG ``Data`` with ``x``, ``edge_index`` and, if it has labels, ``y``.

    ``y`` is ``[n]`` or ``[n, 1]``: integers are classes, negative where unlabelled; numbers, some of them
    with a fraction, are the targets of a regression, NaN where unknown. ``train_mask``, ``val_mask`` and ``test_mask``,
    ``[n]`` or ``[n, k]`` for k splits, become the fixed splits; without them splits are random. ``edge_weight``,
    ``[edges]`` or ``[edges, 1]``, positive numbers, are the weights of the edges. Other attributes, ``edge_attr`` among
    them, are left out: a weight that is there must be copied to ``edge_weight``.
    """
    return from_fields(data.to_dict(), name=name, where="the graph")


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
    """A checked :class:`Dataset` from arrays or tensors by name; errors begin with ``where``.

    ``class_names`` names the classes 0, 1, ... of a ``y`` that is coded so already; otherwise its values name them.
    """
    x = _features(fields.get("x"), where)
    edge_index = _edges(fields.get("edge_index"), x.size(0), where)
    edge_weight = _weights(fields.get("edge_weight"), edge_index, where)
    y, found = _labels(fields.get("y"), x.size(0), where)
    if class_names is None:
        class_names = found
    given = [key for key in MASKS if fields.get(key) is not None]
    if given and splits is None:
        splits = _fixed(fields, given, y, where)
    return Dataset(
        name=name,
        graph=Data(x=x, edge_index=edge_index, y=y, edge_weight=edge_weight),
        class_names=tuple(class_names),
        splits=splits or (node_splits(y) if y.is_floating_point() else ScaledSplits()),
        node_ids=None if node_ids is None else tuple(node_ids),
        feature_names=None if feature_names is None else tuple(feature_names),
        metric=metric or ("mae" if y.is_floating_point() else "accuracy"),
    )


def _array(value: Any, key: str, where: str) -> np.ndarray:
    """``value`` as a NumPy array of numbers, booleans or text."""
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.device.type == "meta":
            raise InputError(f"{where}: {key} is not a plain dense tensor: store {key}.to_dense()")
        value = value.detach().resolve_conj().resolve_neg().cpu()
        try:
            value = value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
        except (TypeError, RuntimeError):
            raise InputError(f"{where}: {key} holds {value.dtype}: store it as float32 or int64") from None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUS":
        kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise InputError(f"{where}: {key} holds {kind}, not plain numbers: store it as a numeric array")
    return value


def _features(value: Any, where: str) -> Tensor:
    if value is None:
        raise InputError(f"{where}: there is no x: add the node features as an array [nodes, features]")
    x = _array(value, "x", where)
    if x.dtype.kind in "US" or x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"{where}: x is {x.dtype} of shape {list(x.shape)}: store numbers [nodes, features], none empty"
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
        raise InputError(f"{where}: there is no edge_index: add it as integers [2, edges], one column an edge")
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
    """Positive weights ``[edges]``; ``None`` where there are none."""
    if value is None:
        return None
    weights = _array(value, "edge_weight", where)
    edges = edge_index.size(1)
    if weights.dtype.kind in "US" or weights.shape not in ((edges,), (edges, 1)):
        raise InputError(
            f"{where}: edge_weight is {weights.dtype} of shape {list(weights.shape)}, but there are {edges} edges: "
            "give one number an edge, or leave it out"
        )
    with np.errstate(over="ignore", under="ignore"):
        weights = np.ascontiguousarray(weights.reshape(edges), dtype=np.float32)
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        edge = int(wrong.argmax())
        source, target = edge_index[:, edge].tolist()
        raise InputError(
            f"{where}: edge {edge}, from node {source} to {target}, has the weight {weights[edge]}, not a positive "
            f"number of float32, {int(wrong.sum())} edges in all: drop them, or give them positive weights (of "
            "either sign, 'dissensus simulate' reads them from an edge list, .csv)"
        )
    return torch.from_numpy(_owned(weights))


def _labels(value: Any, nodes: int, where: str) -> tuple[Tensor, tuple[str, ...]]:
    """Labels coded 0, 1, ... in their sorted order (-1: none) and their names; or numbers (NaN: none) without names."""
    if value is None:
        return torch.full((nodes,), -1), ()
    y = _array(value, "y", where)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (nodes,):
        raise InputError(f"{where}: y has shape {list(y.shape)}, but x has {nodes} rows: give one label a node")
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
            raise InputError(f"{where}: y[{row}] is {y[row]}, too large for float32: give a number, or NaN for none")
        y = np.where(np.isnan(y), -1, y)
        # Classes become floating-point where NaN marks the unknown ones.
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
    """Text labels coded 0, 1, ... in sorted order and their names; an empty text is no label (-1).

    If all of them are whole numbers they sort as such, and negative ones are no label.

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
    """``text`` as a whole number, also if a program wrote it as ``3.0``."""
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
        raise InputError(f"{where}: {key} holds other values than 0 and 1: give booleans, not node numbers")
    return _owned(np.ascontiguousarray(mask, dtype=np.bool_))


def _owned(array: np.ndarray) -> np.ndarray:
    """``array``, or a copy where it cannot be written to, which a tensor must be."""
    return array if array.flags.writeable else array.copy()
