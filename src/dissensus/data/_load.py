"""Load a dataset by name or from a file."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dissensus.data._benchmarks import load_benchmark, one_split
from dissensus.data._catalogue import CATALOGUE, TUNED_FILES, Entry, data_folder, names
from dissensus.data._dataset import Dataset
from dissensus.data._embedded import digits, karate
from dissensus.data._files import read
from dissensus.data._long_range import diameter, eccentricity, ring_transfer, shortest_path
from dissensus.data._splits import FixedSplits, TunedSplits
from dissensus.data._synthetic import arxiv_synthetic, csbm
from dissensus.errors import InputError, one_of, unknown

_MADE: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "karate": karate,
    "csbm": csbm,
    "arxiv-synthetic": arxiv_synthetic,
    "shortest-path": shortest_path,
    "eccentricity": eccentricity,
    "diameter": diameter,
    "ring-transfer": ring_transfer,
}


def load(
    name_or_path: str | PathLike[str],
    *,
    largest_component: bool = False,
    undirected: bool | None = None,
    labels_per_class: int | None = None,
    missing_features: float | None = None,
    protocol: str | None = None,
    **options: Any,
) -> Dataset:
    """Load a dataset by name (see :func:`names`), or your own graph from a file.

    A file is an ``.npz``, a PyG ``.pt``, or a folder with ``edges.csv`` and ``nodes.csv``. Edges are weighted if the
    file has ``edge_weight``, or a column ``weight`` in ``edges.csv``. Dataset names take precedence over files: write
    ``./cora`` to load a file of that name.

    Raw files in the folder ``DISSENSUS_DATA`` are read and never changed; others are downloaded. Processed files are
    cached in ``DISSENSUS_CACHE``, by default the user's cache directory.

    Args:
        name_or_path: Name of a dataset, or a path.
        largest_component: Keep only the largest connected component instead of the full graph.
        undirected: Add the reverse of every edge. ``None`` keeps the edges as they are, except for ogbn-arxiv, whose
            protocol makes them undirected.
        labels_per_class: Number of training nodes per class, instead of that of the protocol.
        missing_features: Share of the nodes outside the training set whose features are set to zero, from 0 to 1.
        protocol: ``"tunedgnn"`` for the splits of "Classic GNNs are Strong Baselines" on Cora, Citeseer, Pubmed,
            Coauthor CS, Computers and Photo, instead of the dataset's own.
        options: Options of a generated dataset, such as ``homophily`` of ``csbm``.

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
    if undirected or (undirected is None and entry is not None and entry.undirected):
        dataset = dataset.undirected()
    if protocol is not None:
        dataset = _with_protocol(dataset, entry, protocol)
    if largest_component:
        dataset = dataset.largest_component()
    if labels_per_class is not None:
        dataset = dataset.with_labels(labels_per_class)
    return dataset if missing_features is None else dataset.with_missing_features(missing_features)


def _with_protocol(dataset: Dataset, entry: Entry | None, protocol: str) -> Dataset:
    one_of("protocol", protocol, ("tunedgnn",))
    if entry is None or entry.development is None:
        raise InputError(f"{dataset.name} has no protocol {protocol!r}: leave it out")
    if entry.name not in TUNED_FILES:
        return replace(dataset, splits=TunedSplits())
    folder = data_folder()
    path = None if folder is None else folder / "tunedgnn" / TUNED_FILES[entry.name]
    if path is None or not path.is_file():
        raise InputError(
            f"the tunedgnn split of {entry.name} is a file: put {TUNED_FILES[entry.name]} in the folder tunedgnn below "
            "DISSENSUS_DATA"
        )
    with np.load(path, allow_pickle=False) as archive:
        masks = one_split(archive, dataset.graph.num_nodes)
    return replace(dataset, splits=FixedSplits(*masks.values(), protocol="tunedGNN: its 60/20/20 split"))


def _path(name: str | PathLike[str]) -> Path:
    """``name`` as a path. Raises the error for an unknown dataset if it does not look like a path."""
    path = Path(name).expanduser()
    if isinstance(name, str) and not path.suffix and len(path.parts) < 2 and not path.exists():
        raise InputError(f"{unknown('dataset', name, names())}; or give a path: .npz, .pt, folder of CSV tables")
    return path
