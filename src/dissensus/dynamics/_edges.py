"""Edge lists: CSV files and tuples."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from dissensus.errors import InputError

_ENDS = ("source", "target")


def read_edges(path: Path, *, directed: bool) -> scipy.sparse.csr_array:
    """The matrix of a CSV edge list, or of a folder with ``edges.csv`` and ``nodes.csv``.

    The columns are ``source``, ``target`` and perhaps ``weight``; without a header line they stand in this order.
    Agents are numbered as in the column ``id`` (else the first) of a ``nodes.csv`` beside an ``edges.csv``; without
    one by their names, if these are 0 to n - 1, and else as they appear.
    """
    edges = path / "edges.csv" if path.is_dir() else path
    nodes = edges.with_name(edges.name.replace("edges", "nodes"))
    agents: list[Hashable] | None = None
    if "edges" in edges.name and (path.is_dir() or nodes.is_file()):
        (_, header), *rows = _rows(nodes) or [(1, ["id"])]
        place = header.index("id") if "id" in header else 0
        agents = [row[place] for _, row in rows]
    return from_edges(_edges(edges, empty=agents is not None), agents, directed=directed, where=str(nodes))


def from_edges(
    edges: Iterable[tuple[Any, ...]],
    agents: Sequence[Hashable] | None = None,
    *,
    directed: bool,
    where: str = "the agents",
) -> scipy.sparse.csr_array:
    """The matrix of tuples (source, target) or (source, target, weight): entry (target, source) is the weight.

    The way back of an edge has the same weight unless it is ``directed``, or an edge of its own.
    """
    entries: dict[tuple[Hashable, Hashable], float] = {}
    for edge in edges:
        if not 2 <= len(edge) <= 3:
            raise InputError(f"{edge!r} is not an edge: give (source, target) or (source, target, weight)")
        try:
            weight = float(edge[2]) if len(edge) > 2 else 1.0
        except (TypeError, ValueError):
            raise InputError(f"the weight of the edge {edge!r} is not a number: give one") from None
        entries[edge[1], edge[0]] = weight
    names = list(dict.fromkeys(name for target, source in entries for name in (source, target)))
    if not directed:
        entries = {(i, k): weight for (k, i), weight in entries.items()} | entries
    if agents is not None:
        if missing := sorted(str(name) for name in set(names) - set(agents)):
            raise InputError(f"{missing[0]!r} is an end of an edge, but not in {where}: add it, or drop the edge")
        names = list(agents)
    elif {str(name) for name in names} == {str(k) for k in range(len(names))}:
        names.sort(key=lambda name: int(str(name)))
    index = {name: k for k, name in enumerate(names)}
    places = np.array([(index[i], index[k]) for i, k in entries], dtype=np.int64).reshape(-1, 2).T
    shape = len(names), len(names)
    return scipy.sparse.coo_array((list(entries.values()), (places[0], places[1])), shape=shape).tocsr()


def _edges(path: Path, *, empty: bool) -> list[tuple[Any, ...]]:
    """The edges in a CSV file."""
    rows = _rows(path)
    columns = ["source", "target", "weight"]
    if rows and set(_ENDS) <= set(rows[0][1]):
        columns, rows = rows[0][1], rows[1:]
    elif rows and (len(rows[0][1]) not in (2, 3) or not all(map(_is_number, rows[0][1][2:]))):
        raise InputError(
            f"{path}, line {rows[0][0]}: {','.join(rows[0][1])!r} is not an edge: write source,target,weight, or begin "
            "with a line that names these columns"
        )
    if not (rows or empty):
        raise InputError(f"{path} has no edges: write one per line, as 'source,target' or 'source,target,weight'")
    found = []
    for line, row in rows:
        edge = dict(zip(columns, row, strict=False))
        if not (edge["source"] and edge["target"]):
            raise InputError(f"{path}, line {line}: {','.join(row)!r} is not an edge: name both of its ends")
        if not _is_number(edge.get("weight", "1")):
            raise InputError(
                f"{path}, line {line}, column 'weight': {edge['weight']!r} is not a finite number: correct it, drop "
                "the edge, or rename the column if it is no weight"
            )
        found.append((edge["source"], edge["target"], float(edge.get("weight", 1.0))))
    return found


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, each with its line number; all have the same number of cells."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: check the path") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as CSV ({error}): save it as comma-separated text in UTF-8") from error
    for line, row in rows:
        if len(row) != len(rows[0][1]):
            raise InputError(
                f"{path}, line {line}: {len(row)} cells where the first line has {len(rows[0][1])}: make them equal "
                "(quote text that holds a comma)"
            )
    return rows


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False
