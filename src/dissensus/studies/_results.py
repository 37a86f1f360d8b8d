"""Results as files: ``STUDY/runs.csv`` with one row a run, ``STUDY/meta.json`` with how they were made."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dissensus.errors import InputError
from dissensus.files import atomic_write
from dissensus.studies._study import Row, Study

RUNS, META = "runs.csv", "meta.json"
# Where a run is, not what it gave: two runs that agree in all of these and in their settings are the same.
_PLACE = ("split", "seed")
# What a page says of the runs, and a later call needs.
_FACTS = ("commands", "date", "dissensus", "torch", "cpu", "quick", "settings")


def write_results(
    folder: Path, study: Study, rows: Sequence[Row], meta: Mapping[str, Any], *, replace: bool = True
) -> list[Row]:
    """Write ``folder/STUDY/runs.csv`` and ``meta.json``, and return all rows that are there now.

    Rows of an earlier call stay, unless their cell has been made with other settings meanwhile, or the same run again.
    So a table may be filled bit by bit. A kill at any point leaves the files readable, and every row's settings there.

    Args:
        folder: of all results.
        study: whose.
        rows: new ones.
        meta: facts about them: ``command``, ``date``, ``quick``, ``settings`` (hash to configuration) and more.
        replace: whether new rows may replace earlier ones of other settings; if not, they are left out.
    """
    place = folder / study.name
    old, before = _results_before(folder, study, quick=meta["quick"])
    if not replace:
        rows = _additions(study, old, rows)
        if not rows:
            return old
    merged = merge_rows(study, old, rows)
    settings = {**before.get("settings", {}), **meta["settings"]}
    command = meta["command"]
    facts = {
        "study": study.name,
        "title": study.title,
        "commands": [*(line for line in before.get("commands", []) if line != command), command],
        **{name: value for name, value in meta.items() if name not in ("command", "settings")},
        **_counts(merged),
        "settings": settings,
    }
    place.mkdir(parents=True, exist_ok=True)
    # The facts first: without runs nothing is there, while runs without their facts could not be read. Settings of
    # earlier runs go last, when these runs are gone.
    _replace(place / META, _json(facts))
    _replace(place / RUNS, _csv(merged))
    present = {row["settings"] for row in merged}
    _replace(place / META, _json({**facts, "settings": {name: settings[name] for name in settings if name in present}}))
    return merged


def check_results(folder: Path, study: Study, *, quick: bool) -> None:
    """Refuse what cannot be added to: files that cannot be read, quick looks if these are full runs, or the reverse."""
    _results_before(folder, study, quick=quick)


def _results_before(folder: Path, study: Study, *, quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """What is there already and new runs may be added to."""
    place = folder / study.name
    if not (place / RUNS).is_file():
        return [], {}
    rows, meta = read_results(folder, study)
    if bool(meta["quick"]) != quick:
        kind = "quick looks" if meta["quick"] else "full runs"
        raise InputError(f"{place} holds {kind} already, which do not mix with this: give another folder with -o")
    return rows, meta


def read_results(folder: Path, study: Study) -> tuple[list[Row], dict[str, Any]]:
    """Rows and facts that :func:`write_results` wrote; numbers are numbers again.

    What the rows tell themselves, such as the number of runs, is counted anew: a kill may have come between the files.
    """
    path = folder / study.name / RUNS
    if not path.is_file():
        raise InputError(f"{path} does not exist: make it with 'dissensus reproduce {study.name} -o {folder}'")
    rows = _read_runs(path)
    return rows, {**_read_meta(folder / study.name / META), **_counts(rows)}


def _read_runs(path: Path) -> list[Row]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read ({error}): restore or delete it, or give another folder with -o"
        ) from error
    # A line that is longer than the header has its rest under None.
    atomic_write = (
        bool(lines) and {"status", "settings", *_PLACE} <= lines[0].keys() and all(None not in x for x in lines)
    )
    rows = [{name: _parse(name, text) for name, text in line.items()} for line in lines] if atomic_write else []
    if not rows or not all(isinstance(row[name], int) for row in rows for name in _PLACE):
        raise InputError(
            f"{path} holds no runs of a study, or is damaged: restore or delete it, or give another folder with -o"
        )
    return rows


def _read_meta(path: Path) -> dict[str, Any]:
    cure = "restore it, or give another folder with -o"
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): {cure}") from error
    missing = [name for name in _FACTS if not isinstance(meta, dict) or name not in meta]
    if missing:
        raise InputError(f"{path} does not say how the runs were made (no {', '.join(missing)}): {cure}")
    return dict(meta)


def _counts(rows: Sequence[Row]) -> dict[str, Any]:
    """What the facts say of the rows."""
    return {
        "runs": len({_identity(row) for row in rows if row["status"] == "done"}),
        "failed": len({_identity(row) for row in rows if row["status"] == "failed"}),
        "splits": _spans(rows, "split"),
        "seeds": _spans(rows, "seed"),
    }


def merge_rows(study: Study, old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """New rows, and the old ones that they do not replace, in the order of the study."""
    made, settings = {_identity(row) for row in new}, _settings(study, new)
    kept = [
        row
        for row in old
        if _identity(row) not in made and row["settings"] in settings.get(_cell(study, row), {row["settings"]})
    ]
    return sorted([*kept, *new], key=lambda row: _rank(study, row))


def _additions(study: Study, old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The new rows whose cell has no old ones of other settings: none is lost to them."""
    had, made = _settings(study, old), _settings(study, new)
    return [row for row in new if had.get(cell := _cell(study, row), set()) <= made[cell]]


def _settings(study: Study, rows: Sequence[Row]) -> dict[tuple[Any, ...], set[str]]:
    """The settings that each cell was made with."""
    found: dict[tuple[Any, ...], set[str]] = {}
    for row in rows:
        found.setdefault(_cell(study, row), set()).add(row["settings"])
    return found


def ordered(study: Study, column: str, values: Sequence[Any]) -> list[Any]:
    """Different values of a column in the order of the study; others after them, numbers by size."""
    return sorted(dict.fromkeys(values), key=lambda value: _position(study, column, value))


def _rank(study: Study, row: Row) -> tuple[Any, ...]:
    # Stable: rows of one run stay in their order.
    cell = tuple(_position(study, name, row.get(name)) for name in study.dimensions[:2])
    return (*cell, row["split"], row["seed"])


def _position(study: Study, column: str, value: Any) -> tuple[int, float, str]:
    order, text = study.order(column), str(value)
    if text in order:
        return order.index(text), 0.0, ""
    if isinstance(value, int | float):
        return len(order), float(value), ""
    # Other names stay as they come: sorting is stable.
    return len(order), float("inf"), ""


def _cell(study: Study, row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in study.dimensions)


def _identity(row: Row) -> tuple[Any, ...]:
    return (row["settings"], *(row[name] for name in _PLACE))


def _spans(rows: Sequence[Row], column: str) -> dict[str, str]:
    """The splits or seeds of each dataset, as they are written on the command line."""
    found: dict[str, set[int]] = {}
    for row in rows:
        found.setdefault(str(row.get("dataset", "")), set()).add(row[column])
    return {name: span(sorted(numbers)) for name, numbers in found.items()}


def span(numbers: Sequence[int]) -> str:
    """Whole numbers in ascending order, neighbours as ranges.

    >>> span([1, 2, 3, 7])
    '1-3,7'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, indent=1) + "\n"


def _csv(rows: Sequence[Row]) -> str:
    import io

    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return out.getvalue()


def _parse(column: str, text: str | None) -> Any:
    if not text:
        return None
    if column == "settings":  # a hash, which may well have no letters
        return text
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _replace(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
