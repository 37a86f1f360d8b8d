"""Graphs from files. Nothing in a file is ever executed, and any defect in it is an InputError."""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from dissensus.data._csv import find_pair, read_csv
from dissensus.data._dataset import MASKS, Dataset, from_fields, joined
from dissensus.errors import InputError

_LAYOUT = (
    "x and edge_index (or scipy's indptr and indices), and if known edge_weight, y, train_mask, val_mask, test_mask"
)


def read(path: Path) -> Dataset:
    """Read an ``.npz``, a PyG ``.pt``, or ``edges.csv`` and ``nodes.csv`` (given one of them or their folder)."""
    readers: dict[str, Callable[[Path], Dataset]] = {".npz": read_npz, ".pt": read_pt, ".pth": read_pt}
    if not path.exists():
        raise InputError(f"{path} does not exist: check the path")
    if path.is_dir() or path.suffix.lower() == ".csv":
        return read_csv(*find_pair(path))
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: unknown file type: give .npz, .pt, or a folder with edges.csv and nodes.csv")
    return reader(path)


def read_npz(path: Path) -> Dataset:
    """Read a NumPy archive with ``x`` and ``edge_index``, and optionally ``y``, ``edge_weight`` and the three masks.

    Instead of ``edge_index`` it may have the adjacency matrix in SciPy's CSR format: ``indptr``, ``indices`` and,
    optionally, ``data``. Entry (i, j) is the weight of the edge from i to j. Zeros are not edges, and if all other
    entries are 1, edges have no weights. The layout of the gnn-benchmark files is also supported: the adjacency matrix
    with the prefix ``adj_``, sparse features with the prefix ``attr_``, and ``labels``.
    """
    try:
        # Opened here, because np.load does not close a damaged archive.
        with path.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InputError(f"{path} has a single array and is not an archive: use numpy.savez({_LAYOUT})")
            wanted = ("x", "edge_index", "edge_weight", "y", "labels", "batch", *MASKS)
            csr = [f"{p}{part}" for p in ("", "adj_", "attr_") for part in ("indptr", "indices", "data", "shape")]
            found = {key: archive[key] for key in (*wanted, *csr) if key in archive.files}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}): check the file and its permissions") from error
    except ValueError as error:
        cure = "save plain arrays only, no Python objects" if "allow_pickle" in str(error) else "save it again"
        raise InputError(f"{path} is not a readable .npz archive ({error}): {cure}, with {_LAYOUT}") from error
    # A damaged archive can fail anywhere in zipfile, zlib, or NumPy's header parser.
    except Exception as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}): save it again") from error
    return _from_arrays(path, found)


def _from_arrays(path: Path, found: dict[str, Any]) -> Dataset:
    if "edge_index" not in found:
        prefix = "adj_" if "adj_indptr" in found else ""
        if f"{prefix}indptr" in found:
            if "edge_weight" in found:
                raise InputError(
                    f"{path}: there are both edge_weight and a CSR matrix: store the weights as {prefix}data instead"
                )
            row, col, values = _coordinates(found, prefix, path)
            found["edge_index"] = np.stack([row, col])
            # Files have ones for edges without weights.
            if (values != 1).any():
                found["edge_weight"] = values
    if "x" not in found and "attr_indptr" in found:
        found["x"] = _dense(found, path)
    found.setdefault("y", found.get("labels"))
    return from_fields(found, name=path.stem, where=str(path))


def _coordinates(found: Mapping[str, Any], prefix: str, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values of the stored entries of a CSR matrix that are not zero."""
    indptr, indices = found[f"{prefix}indptr"], found.get(f"{prefix}indices")
    if indices is None:
        raise InputError(f"{path}: there is {prefix}indptr but no {prefix}indices: save both parts of the CSR matrix")
    if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (indptr, indices)):
        raise InputError(f"{path}: {prefix}indptr and {prefix}indices must be 1-D integers, as in SciPy's CSR format")
    counts = np.diff(indptr.astype(np.int64))
    if not len(indptr) or indptr[0] != 0 or (counts < 0).any() or indptr[-1] != len(indices):
        raise InputError(f"{path}: {prefix}indptr does not run from 0 to len({prefix}indices): save a valid CSR matrix")
    values = found.get(f"{prefix}data")
    values = np.ones(len(indices), dtype=np.int8) if values is None else values
    if values.shape != indices.shape or values.dtype.kind not in "biuf":
        raise InputError(f"{path}: {prefix}data must be numbers, one for each entry of {prefix}indices")
    row = np.repeat(np.arange(len(counts)), counts)
    stored = values != 0
    return row[stored], indices[stored].astype(np.int64), values[stored]


def _dense(found: Mapping[str, Any], path: Path) -> np.ndarray:
    row, col, values = _coordinates(found, "attr_", path)
    shape = found.get("attr_shape")
    if (
        shape is None
        or shape.shape != (2,)
        or shape.dtype.kind not in "iu"
        or shape[0] != len(found["attr_indptr"]) - 1
    ):
        raise InputError(f"{path}: attr_shape must be [nodes, features] and agree with attr_indptr")
    if len(col) and (col.min() < 0 or col.max() >= shape[1]):
        raise InputError(f"{path}: attr_indices exceed the {shape[1]} columns of attr_shape: correct attr_shape")
    try:
        x = np.zeros((int(shape[0]), int(shape[1])), dtype=np.float32)
    except (MemoryError, ValueError) as error:
        raise InputError(f"{path}: attr_shape {shape.tolist()} is too large to hold as dense features") from error
    with np.errstate(over="ignore"):
        x[row, col] = values
    return x


def read_pt(path: Path) -> Dataset:
    """Read a PyG ``Data`` saved by ``torch.save``, a list of them, or a dictionary of its tensors.

    A ``processed/data.pt`` of PyG with one graph is read as well.

    The file is read with ``weights_only=True``, and besides tensors and plain containers only PyG's storage classes are
    allowed, so that a file cannot run code.
    """
    torch.serialization.add_safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage])
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).partition("WeightsUnpickler error:")[2].strip().partition("Please use")[0].strip()
        raise InputError(
            f"{path} has more than a PyG graph and was not loaded, because it could run code "
            f"({reason or 'bad pickle'}): save Data(x=..., edge_index=..., y=...) with torch.save"
        ) from error
    # A damaged file can fail anywhere between reading the zip file and rebuilding tensors.
    except Exception as error:
        raise InputError(
            f"{path} is not a readable .pt file ({type(error).__name__}: {error}): save it again"
        ) from error
    if isinstance(content, tuple) and len(content) == 3:
        content, slices, _ = content
        if slices is not None:
            raise InputError(f"{path} has several graphs: save them with torch.save(list(dataset), ...)")
    try:
        if isinstance(content, list) and all(isinstance(graph, Data) for graph in content):
            content = joined(content, str(path))
        elif isinstance(content, Data):
            content = content.to_dict()
    except InputError:
        raise
    # Unpickling does not run the constructor of Data, so its attributes may be anything.
    except Exception as error:
        raise InputError(f"{path} has a broken Data ({type(error).__name__}: {error}): save it again") from error
    if not isinstance(content, dict):
        raise InputError(
            f"{path} has a {type(content).__name__}, not a graph: save a Data, a list of them or a dictionary"
        )
    return from_fields(content, name=path.stem, where=str(path))
