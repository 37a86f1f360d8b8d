"""Published datasets, read by the classes of PyG and OGB from raw files, which are never written to."""

import errno
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import to_undirected

from dissensus.data._catalogue import Entry, cache_folder, download_cache, raw_folder
from dissensus.data._dataset import MASKS, Dataset, from_fields
from dissensus.data._splits import BenchmarkSplits, FixedSplits, Splits, mask_of
from dissensus.errors import InputError, MissingExtraError, optional
from dissensus.files import atomic_write

Fields = dict[str, Tensor]
OGB_PARTS = ("train", "valid", "test")


def load_benchmark(entry: Entry) -> Dataset:
    """Load the dataset of ``entry`` from ``DISSENSUS_DATA`` if its raw files are there, or else download it.

    The result is cached under a hash of the raw files or, if it was downloaded, as ``NAME-upstream``.
    """
    raw = raw_folder(entry)
    cached = download_cache(entry) if raw is None else cache_folder() / f"{entry.name}-{_hash(entry, raw)}.pt"
    fields = _read_cache(cached)
    if fields is None:
        fields = _process(entry, raw)
        _write_cache(fields, cached)
    return from_fields(
        fields,
        name=entry.name,
        where=entry.name,
        class_names=[str(label) for label in range(entry.classes)],
        splits=_splits(entry, fields),
        metric=entry.metric,
    )


def _splits(entry: Entry, fields: Fields) -> Splits:
    if entry.development is not None:
        return BenchmarkSplits(entry.development)
    masks = [fields[key] for key in MASKS]
    if masks[0].size(1) == 1:
        return FixedSplits(*masks, protocol="OGB's")
    return FixedSplits(*masks, protocol=f"ten fixed {'geom-gcn ' if entry.directed else ''}splits 0-9")


def _hash(entry: Entry, raw: Path) -> str:
    """A hash of the contents of the raw files, so that other files with the same names are not mistaken for them."""
    digest = hashlib.blake2b(digest_size=8)
    for file in entry.files:
        with (raw / file).open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "blake2b").digest())
    return digest.hexdigest()


def _process(entry: Entry, raw: Path | None) -> Fields:
    if raw is None and not entry.downloadable:
        raise InputError(f"{entry.name} can no longer be downloaded. {_cure(entry)}")
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        # PyG writes next to the raw files and OGB may delete them, so both work in a folder of links.
        folder = tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f"{entry.name}-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(f"cannot write to the cache {cache_folder()} ({error}): set DISSENSUS_CACHE") from error
    with folder as root:
        if raw is not None:
            _link(entry, raw, Path(root))
        try:
            return _READERS.get(entry.reader[0], _open_pyg)(entry, Path(root))
        except MissingExtraError:
            raise
        # Networks and damaged files fail in many ways, and OGB calls exit().
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise InputError(f"no space left in {cache_folder()}: free some, or set DISSENSUS_CACHE") from error
            if raw is not None:
                raise InputError(
                    f"{entry.name}: the files in {raw} cannot be read ({reason}): download them again"
                ) from error
            raise InputError(
                f"{entry.name} is not on this machine and could not be downloaded ({reason}). {_cure(entry)}"
            ) from error


def _cure(entry: Entry) -> str:
    return f"Place these files in {entry.folder} below the folder that DISSENSUS_DATA names: {', '.join(entry.files)}"


def _link(entry: Entry, raw: Path, root: Path) -> None:
    for file in entry.files:
        target = root / entry.folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.symlink_to((raw / file).resolve())
        except OSError:
            shutil.copyfile(raw / file, target)


def _open_pyg(entry: Entry, root: Path) -> Fields:
    from torch_geometric import datasets

    kind, folder, *arguments = entry.reader
    graph = getattr(datasets, kind)(str(root / folder), *arguments)[0]
    keys = ("x", "edge_index", "y") if entry.development is not None else ("x", "edge_index", "y", *MASKS)
    return {key: graph[key] for key in keys}


def _open_ogb(entry: Entry, root: Path) -> Fields:
    ogb = optional("ogb", "ogb", "ogb.nodeproppred")
    folder = root / entry.folder
    if folder.is_dir():
        (folder / "processed").mkdir()
    with redirect_stdout(sys.stderr):
        source = ogb.NodePropPredDataset(entry.reader[1], root=str(root))
        graph, labels = source[0]
        split = source.get_idx_split()
    fields = {
        "x": torch.tensor(graph["node_feat"], dtype=torch.float32),
        "edge_index": torch.tensor(graph["edge_index"], dtype=torch.long),
        "y": torch.tensor(labels, dtype=torch.long).reshape(-1),
    }
    return fields | one_split(split, len(labels))


def _open_heterophilous(entry: Entry, root: Path) -> Fields:
    path = root / entry.folder / entry.files[0]
    if not path.is_file():
        from torch_geometric.data import download_url

        address = f"https://github.com/yandex-research/heterophilous-graphs/raw/main/data/{entry.files[0]}"
        download_url(address, str(path.parent), log=False)
    with np.load(path, allow_pickle=False) as archive:
        edges = torch.from_numpy(archive["edges"]).long().T
        fields = {
            "x": torch.from_numpy(archive["node_features"]).float(),
            "edge_index": to_undirected(edges, num_nodes=len(archive["node_labels"])),
            "y": torch.from_numpy(archive["node_labels"]).long(),
        }
        for key, part in zip(MASKS, ("train", "val", "test"), strict=True):
            fields[key] = torch.from_numpy(archive[f"{part}_masks"]).bool().T.contiguous()
    return fields


def _open_ogb_degrees(entry: Entry, root: Path) -> Fields:
    """The real graph, labels and split. Features are a constant and the standardised logarithms of both degrees."""
    folder = root / entry.folder
    edge_index = torch.from_numpy(_read_csv(folder / "raw" / "edge.csv.gz").T.copy())
    y = torch.from_numpy(_read_csv(folder / "raw" / "node-label.csv.gz").reshape(-1))
    degrees = torch.stack([torch.bincount(end, minlength=len(y)).float().log1p() for end in edge_index], dim=1)
    x = torch.cat([torch.ones(len(y), 1), (degrees - degrees.mean(0)) / degrees.std(0)], dim=1)
    split = {part: _read_csv(folder / "split" / "time" / f"{part}.csv.gz").reshape(-1) for part in OGB_PARTS}
    return {"x": x, "edge_index": edge_index, "y": y, **one_split(split, len(y))}


def one_split(parts: Mapping[str, np.ndarray], n: int) -> Fields:
    """The masks [n, 1] of one split from the indices of its three parts, under OGB's names."""
    return {key: mask_of(parts[part], n)[:, None] for key, part in zip(MASKS, OGB_PARTS, strict=True)}


# Readers by name; any other name is a class of ``torch_geometric.datasets``.
_READERS = {"ogb": _open_ogb, "ogb degrees": _open_ogb_degrees, "heterophilous": _open_heterophilous}


def _read_csv(path: Path) -> np.ndarray:
    return np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=2)


def _write_cache(fields: Fields, path: Path) -> None:
    x = fields["x"]
    kept = {**fields, "x": x.to_sparse() if x.count_nonzero() < 0.2 * x.numel() else x}
    # A full disk only prevents caching.
    with suppress(OSError, RuntimeError), atomic_write(path) as temporary:
        torch.save(kept, temporary)


def _read_cache(path: Path) -> Fields | None:
    try:
        fields = torch.load(path, weights_only=True)
        return {**fields, "x": fields["x"].to_dense()}
    # A missing or damaged cache file is created again.
    except Exception:
        return None
