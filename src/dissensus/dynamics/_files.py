"""Results as files: arrays as ``.npz``, tables as ``.csv``."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dissensus.errors import InputError

Columns = Mapping[str, np.ndarray | str]


def save_arrays(path: str | Path, kind: str, about: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays, and what JSON can hold, to an ``.npz`` file."""
    if Path(path).suffix != ".npz":
        raise InputError(f"{path} has another ending than .npz and .csv: use .npz (load reads it) or .csv (a table)")
    with Path(path).open("wb") as stream:
        np.savez_compressed(stream, about=json.dumps({"kind": kind, **about}), **arrays)


def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What :func:`save_arrays` wrote."""
    try:
        with np.load(path) as found:
            arrays = {name: found[name] for name in found.files}
        about = json.loads(str(arrays.pop("about")))
        matches = about["kind"] == kind
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is not a file that save wrote ({error}): give one") from None
    if not matches:
        raise InputError(f"{path} holds a {about['kind']}, not a {kind}: load it with its own class")
    return about, arrays


def write_csv(path: str | Path, tables: Sequence[Columns]) -> None:
    """Tables, given by their columns, one below the other in full precision, with one header line."""
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(tables[0])
        for columns in tables:
            length = max(len(values) for values in columns.values() if not isinstance(values, str))
            lists = [[v] * length if isinstance(v, str) else v.tolist() for v in columns.values()]
            writer.writerows(zip(*lists, strict=True))
