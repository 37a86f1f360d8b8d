"""From a name or a path to a dataset."""

import inspect
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from dissensus.data._benchmarks import load_benchmark
from dissensus.data._catalogue import CATALOGUE, names
from dissensus.data._dataset import Dataset
from dissensus.data._embedded import digits, karate
from dissensus.data._files import read
from dissensus.data._synthetic import arxiv_synthetic, csbm
from dissensus.errors import InputError, unknown

_MADE: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "karate": karate,
    "csbm": csbm,
    "arxiv-synthetic": arxiv_synthetic,
}


def load(
    name_or_path: str | PathLike[str],
    *,
    largest_component: bool = False,
    undirected: bool | None = None,
    **options: Any,
) -> Dataset:
    """Load a dataset by name (:func:`names`), or the user's own graph from a file.

    A path is an ``.npz``, a PyG ``.pt``, or a folder with ``edges.csv`` and ``nodes.csv``; edges have weights where the
    file has ``edge_weight``, or a column ``weight`` in ``edges.csv``. A name that is also a file's is taken as the
    name, so write ``./cora`` for the file. Raw files in the folder ``DISSENSUS_DATA`` are read, never written to;
    others are downloaded. Processed files go to ``DISSENSUS_CACHE``, or the user's cache directory.

    Args:
        name_or_path: A dataset's name, or a path.
        largest_component: Keep the largest connected component alone; otherwise the full graph.
        undirected: Add the reverse of every edge. ``None``: edges as the dataset gives them, except for ogbn-arxiv,
            whose protocol makes them undirected.
        options: Those of :func:`dissensus.data.csbm` for ``csbm``, ``seed`` for ``arxiv-synthetic``; others have none.

    >>> load("karate").split(1).train_mask.sum()
    tensor(8)
    """
    entry = CATALOGUE.get(str(name_or_path)) if isinstance(name_or_path, str) else None
    make = _MADE.get(entry.name) if entry else None
    known = list(inspect.signature(make).parameters) if make else []
    for option in options:
        if option not in known:
            if not known:
                raise InputError(f"{name_or_path} has no option {option!r}: leave it out")
            raise unknown(f"option of {name_or_path}", option, known)
    if make is not None:
        dataset = make(**options)
    elif entry is not None:
        dataset = load_benchmark(entry)
    else:
        dataset = read(_path(name_or_path))
    if undirected or (undirected is None and dataset.name == "ogbn-arxiv" and entry is not None):
        dataset = dataset.undirected()
    return dataset.largest_component() if largest_component else dataset


def _path(name: str | PathLike[str]) -> Path:
    """``name`` as a path, or the error for an unknown name if it does not look like one."""
    path = Path(name).expanduser()
    if isinstance(name, str) and not path.suffix and len(path.parts) < 2 and not path.exists():
        raise InputError(f"{unknown('dataset', name, names())}; or give a path: .npz, .pt, folder of CSV tables")
    return path
