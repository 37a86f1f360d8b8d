"""Graphs from two tables, ``edges.csv`` and ``nodes.csv``."""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dissensus.data._dataset import MASKS, Dataset, code_labels, from_fields
from dissensus.errors import InputError

LABELS = ("label", "y")
_ENDS = ("source", "target")


def find_pair(path: Path) -> tuple[Path, Path]:
    """The paths of the edge table and the node table, given their folder or one of the two."""
    if path.is_dir():
        edges, nodes = path / "edges.csv", path / "nodes.csv"
    elif "edges" in path.name:
        edges, nodes = path, path.with_name(path.name.replace("edges", "nodes"))
    elif "nodes" in path.name:
        edges, nodes = path.with_name(path.name.replace("nodes", "edges")), path
    else:
        raise InputError(f"{path}: a graph is two tables: name them edges.csv and nodes.csv, in one folder")
    for file in (edges, nodes):
        if not file.is_file():
            raise InputError(f"{file} is missing: a graph is edges.csv and nodes.csv, in one folder")
    return edges, nodes


def read_csv(edges: Path, nodes: Path) -> Dataset:
    """Read a graph from two comma-separated tables in UTF-8, each with one header line.

    Columns of ``nodes``, which has one line per node:

    - ``id`` (or the first column): any text.
    - ``label`` or ``y`` (optional): the class as any text, or empty if unknown. If all labels are numbers and some have
      a fraction, they are the targets of a regression.
    - ``train_mask``, ``val_mask``, ``test_mask`` (optional): 0 or 1.
    - All other columns are features and must be numbers. The dataset keeps their names.

    Columns of ``edges``, which has one line per directed edge:

    - ``source`` and ``target`` (or the first two columns): ids of ``nodes``.
    - ``weight`` (optional): positive numbers.
    - All other columns are ignored.
    """
    table = _read_nodes(nodes)
    edge_index, weight = _read_edges(edges, nodes, table.ids)
    fields: dict[str, Any] = {"x": table.x, "edge_index": edge_index, "edge_weight": weight, **table.masks}
    class_names: Sequence[str] = ()
    if table.labels is not None:
        numbers = _targets(table.labels)
        fields["y"], class_names = code_labels(table.labels) if numbers is None else (numbers, ())
    name = edges.parent.resolve().name if edges.name == "edges.csv" else edges.stem
    return from_fields(
        fields, name=name, where=str(nodes), class_names=class_names, node_ids=table.ids, feature_names=table.features
    )


def _targets(labels: Sequence[str]) -> np.ndarray | None:
    """The targets of a regression with NaN for unknown ones, or ``None`` if the labels are classes."""
    if not all(not label or _is_number(label) for label in labels):
        return None
    numbers = np.array([float(label) if label else math.nan for label in labels])
    fraction = ~np.isnan(numbers) & (numbers != np.floor(numbers))
    return numbers if fraction.any() else None


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and all rows that are not blank with their line numbers, and check the number of cells."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            width = 0
            for row in reader:
                if not row:
                    continue
                width = width or len(row)
                if len(row) != width:
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(row)} cells, but the first line has {width}: "
                        "make them equal (quote text that contains a comma)"
                    )
                yield reader.line_num, [cell.strip() for cell in row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as CSV ({error}): save it as comma-separated text in UTF-8") from error


def _header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    _, header = next(rows, (0, []))
    if not header:
        raise InputError(f"{path} is empty: start it with a header line")
    column, count = Counter(header).most_common(1)[0]
    if count > 1:
        raise InputError(f"{path}, line 1: two columns have the name {column!r}: rename one")
    return header


class _Nodes(NamedTuple):
    """The node table: ids, labels (``None`` if there is no such column), masks by name, feature names and ``x``."""

    ids: list[str]
    labels: list[str] | None
    masks: dict[str, np.ndarray]
    features: list[str]
    x: np.ndarray


def _read_nodes(path: Path) -> _Nodes:
    """The node table."""
    rows = _rows(path)
    header = _header(path, rows)
    key = header.index("id") if "id" in header else 0
    label = [i for i, column in enumerate(header) if column in LABELS and i != key]
    if len(label) > 1:
        raise InputError(f"{path}, line 1: both 'label' and 'y' are there: keep one as the class")
    marks = [i for i, column in enumerate(header) if column in MASKS and i != key]
    numeric = [i for i in range(len(header)) if i not in (key, *label, *marks)]
    if not numeric:
        raise InputError(f"{path}, line 1: there is no feature column: add at least one column of numbers")
    lines: dict[str, int] = {}
    labels: list[str] = []
    marked: list[list[bool]] = []
    features: list[np.ndarray] = []
    for line, row in rows:
        if row[key] in lines:
            raise InputError(f"{path}, line {line}: node {row[key]!r} is already in line {lines[row[key]]}: drop one")
        if not row[key]:
            raise InputError(f"{path}, line {line}: the node has no id: fill column {header[key]!r}")
        lines[row[key]] = line
        labels += [row[i] for i in label]
        marked.append([_mark(row[i], f"{path}, line {line}, column {header[i]!r}") for i in marks])
        features.append(_numbers(row, numeric, header, f"{path}, line {line}"))
    if not lines:
        raise InputError(f"{path} has a header but no nodes: add one line per node")
    masks = np.array(marked, dtype=np.bool_).reshape(len(lines), len(marks))
    by_name = {header[i]: np.ascontiguousarray(masks[:, j]) for j, i in enumerate(marks)}
    return _Nodes(list(lines), labels if label else None, by_name, [header[i] for i in numeric], np.stack(features))


def _numbers(row: Sequence[str], columns: Sequence[int], header: Sequence[str], where: str) -> np.ndarray:
    try:
        numbers = np.array([float(row[i]) for i in columns])
        if np.abs(numbers).max() <= np.finfo(np.float32).max:
            return numbers.astype(np.float32)
    except ValueError:
        pass
    wrong = next(i for i in columns if not _is_number(row[i]))
    raise InputError(
        f"{where}, column {header[wrong]!r}: {_short(row[wrong])} is not a finite number: "
        "fill it in, encode it as numbers, or drop the column"
    )


def _is_number(text: str) -> bool:
    try:
        return math.fabs(float(text)) <= float(np.finfo(np.float32).max)
    except ValueError:
        return False


def _mark(text: str, where: str) -> bool:
    values = {"0": False, "1": True, "false": False, "true": True, "": False}
    if text.lower() not in values:
        raise InputError(f"{where}: {_short(text)} is neither 0 nor 1: write 1 for nodes in the mask and 0 for others")
    return values[text.lower()]


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _read_edges(path: Path, nodes: Path, ids: Sequence[str]) -> tuple[np.ndarray, np.ndarray | None]:
    """The edge table as ``edge_index [2, edges]`` and weights ``[edges]`` (``None`` if there is no such column)."""
    rows = _rows(path)
    header = _header(path, rows)
    index = {name: i for i, name in enumerate(ids)}
    if len(header) < 2:
        raise InputError(f"{path}, line 1: an edge needs two columns: name them source and target")
    if header[0] in index and header[1] in index:
        raise InputError(f"{path}, line 1 is an edge, not a header: put the line 'source,target' before it")
    columns, weight = _columns(header)
    found: list[int] = []
    weights: list[float] = []
    for line, row in rows:
        for column in columns:
            node = index.get(row[column])
            if node is None:
                name = _short(row[column])
                raise InputError(f"{path}, line {line}: node {name} is not in {nodes.name}: add it or drop the edge")
            found.append(node)
        if weight is not None:
            weights.append(_weight(row[weight], f"{path}, line {line}, column 'weight'"))
    return np.array(found, dtype=np.int64).reshape(-1, 2).T, None if weight is None else np.array(weights)


def _columns(header: Sequence[str]) -> tuple[list[int], int | None]:
    """The columns of source and target, and of the weight if there is one."""
    ends = [header.index(end) for end in _ENDS] if set(_ENDS) <= set(header) else [0, 1]
    return ends, next((i for i, column in enumerate(header) if column == "weight" and i not in ends), None)


def _weight(text: str, where: str) -> float:
    if _is_number(text) and np.float32(float(text)) > 0:
        return float(text)
    raise InputError(
        f"{where}: {_short(text)} is not a positive number: correct it, drop the edge, or "
        "rename the column if it is not a weight"
    )
