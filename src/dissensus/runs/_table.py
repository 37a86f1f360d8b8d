"""Runs as tables: flat rows, exported files, and means over groups of runs."""

import csv
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from dissensus.errors import InputError, one_of, optional, unknown
from dissensus.files import atomic_write
from dissensus.report import Table
from dissensus.runs._config import ABSENT, canonical, leaves, lookup
from dissensus.runs._store import Record

Row = dict[str, Any]
FORMATS = (".csv", ".parquet", ".jsonl")


def flat(record: Record) -> Row:
    """A record as one row: ``config.<path>`` and ``result.<path>`` columns, lists as JSON text."""
    row: Row = {"key": record.key, "target": record.target, "status": record.status}
    row |= {f"config.{path}": _cell(entry) for path, entry in leaves(record.config)}
    row |= {f"result.{path}": _cell(entry) for path, entry in leaves(record.result or {})}
    row |= {"error": record.error, "seconds": record.seconds, "started": record.started, "finished": record.finished}
    return row | {f"provenance.{path}": _cell(entry) for path, entry in leaves(record.provenance)}


def as_json(value: Any) -> Any:
    """Plain values in strict JSON, in which NaN and infinity become null."""
    return json.loads(json.dumps(value), parse_constant=lambda name: None)


def export(records: Iterable[Record], path: str | os.PathLike[str]) -> int:
    """Write runs to a ``.csv``, ``.parquet`` or ``.jsonl`` file and return how many.

    CSV and Parquet have one flat row per run (Parquet needs the extra ``parquet``). JSON lines have nested values and
    the tracebacks of failed runs. An existing file is replaced, and only once the new one is complete.
    """
    target = Path(path)
    suffix = one_of("export format", target.suffix.lower(), FORMATS)
    records = list(records)
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}: create it first")
    with atomic_write(target) as temporary:
        {".csv": _csv, ".parquet": _parquet, ".jsonl": _jsonl}[suffix](records, temporary)
    return len(records)


def aggregate(records: Iterable[Record], field: str, by: Sequence[str] = ()) -> list[Row]:
    """Mean and standard deviation of a result over groups of runs that are done.

    Args:
        records: from :meth:`Store.query` or :class:`Summary`.
        field: dotted path of a number in the result.
        by: dotted paths in the configuration; runs with equal values there form a group (a missing value is None).

    Returns:
        One row per group, sorted: the ``by`` values, the number of ``runs``, ``mean`` and ``std``, the sample standard
        deviation (None for a single run).
    """
    done = [record for record in records if record.status == "done"]
    groups: dict[str, tuple[list[Any], list[float]]] = {}
    for record in done:
        value = lookup(record.result or {}, field)
        if value is ABSENT:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{field!r} is {value!r} in the run {record.key[:12]}: only numbers have a mean")
        group = [None if (entry := lookup(record.config, path)) is ABSENT else entry for path in by]
        groups.setdefault(canonical(group), (group, []))[1].append(value)
    if done and not groups:
        raise unknown(
            "result field", field, sorted({path for record in done for path, _ in leaves(record.result or {})})
        )
    for path in by:
        if done and all(lookup(record.config, path) is ABSENT for record in done):
            raise unknown("configuration key", path, sorted({p for record in done for p, _ in leaves(record.config)}))
    return [
        dict(zip(by, group, strict=True)) | {"runs": len(values), "mean": fmean(values), "std": _std(values)}
        for group, values in sorted(groups.values(), key=lambda entry: [_sort_key(part) for part in entry[0]])
    ]


def _std(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    return stdev(values) if all(map(math.isfinite, values)) else math.nan


def _sort_key(part: Any) -> tuple[bool, float, str]:
    """Sorts numbers by size, then everything else by its text."""
    number = isinstance(part, int | float) and not isinstance(part, bool)
    return (not number, part if number else 0.0, canonical(part))


def _cell(entry: Any) -> Any:
    return json.dumps(as_json(entry)) if isinstance(entry, list | dict) else entry


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """All columns of the rows; those with the same prefix before the first dot are side by side."""
    names = dict.fromkeys(name for row in rows for name in row)
    kinds = list(dict.fromkeys(name.partition(".")[0] for name in names))
    return sorted(names, key=lambda name: kinds.index(name.partition(".")[0]))


def _csv(records: list[Record], path: Path) -> None:
    rows = [flat(record) for record in records]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _columns(rows) or ["key"])
        writer.writeheader()
        writer.writerows(rows)


def _jsonl(records: list[Record], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(as_json(asdict(record))) + "\n" for record in records)


def _parquet(records: list[Record], path: Path) -> None:
    pyarrow, parquet = optional("pyarrow", "parquet"), optional("pyarrow", "parquet", "pyarrow.parquet")
    rows = [flat(record) for record in records]
    columns = {name: _uniform([row.get(name) for row in rows]) for name in _columns(rows) or ["key"]}
    parquet.write_table(pyarrow.table(columns), path)


def _uniform(values: list[Any]) -> list[Any]:
    """A column of a single type, as Parquet requires: floats for mixed numbers, JSON texts for other mixed types."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else json.dumps(value) for value in values]


def listing(records: Sequence[Record]) -> str:
    """Runs as a table in plain text, with the settings that differ between them and their results."""
    rows = [flat(record) for record in records]
    columns = {name: [row.get(name) for row in rows] for name in _columns(rows)}
    settings = {name: column for name, column in columns.items() if name.startswith("config.")}
    # Lists, texts, options and repeated settings would make the table too wide; --json and --export have them.
    results = [
        name
        for name, column in columns.items()
        if name.startswith("result.") and name.count(".") == 1 and column not in settings.values()
        if all(entry is None or isinstance(entry, int | float) for entry in column)
    ]
    shown = [*_varying(settings), *results]
    lines = []
    for record, row in zip(records, rows, strict=True):
        line: dict[str, Any] = {"key": record.key[:12], "status": record.status}
        line |= {name.partition(".")[2]: row.get(name) for name in shown}
        lines.append(line | {"seconds": record.seconds, "error": record.error})
    return as_table(lines)


def _varying(settings: Mapping[str, Sequence[Any]]) -> list[str]:
    """The settings of more than one value, without those that follow from a name, of the model or the dataset."""
    found = {name: list(map(repr, column)) for name, column in settings.items() if len(set(map(repr, column))) > 1}
    named = [column for name, column in found.items() if name.endswith("name")]
    follows = {
        name
        for name, column in found.items()
        if any(len(set(zip(column, other, strict=True))) == len(set(other)) for other in named)
    }
    return [name for name in found if name.endswith("name") or name not in follows]


def as_table(rows: Sequence[Row]) -> str:
    """Rows as a table in plain text, without empty columns."""
    names = [
        name for name in dict.fromkeys(n for row in rows for n in row) if any(row.get(name) is not None for row in rows)
    ]
    table = [[_short(row.get(name)) for name in names] for row in rows]
    return Table(names, table, digits=4).text().rstrip("\n") if table else ""


def _short(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
