"""Files that try to run code are refused, and what they carry is not run."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from dissensus import data
from dissensus.errors import InputError

X = np.ones((3, 2))
EDGES = np.array([[0, 1], [1, 2]])


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "sprung")


def refused(path: Path, trap: Trap, match: str) -> None:
    with pytest.raises(InputError, match=match):
        data.load(path)
    assert not trap.path.exists()


def test_the_trap_works(trap: Trap) -> None:
    pickle.loads(pickle.dumps(trap))
    assert trap.path.exists()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("place", ["alone", "in a dictionary", "in a Data"])
def test_pt(tmp_path: Path, trap: Trap, place: str, zipped: bool) -> None:
    tensors = {"x": torch.tensor(X), "edge_index": torch.tensor(EDGES)}
    content = {"alone": trap, "in a dictionary": {**tensors, "y": trap}, "in a Data": Data(**tensors, extra=trap)}[
        place
    ]
    torch.save(content, tmp_path / "evil.pt", _use_new_zipfile_serialization=zipped)
    refused(tmp_path / "evil.pt", trap, "was not loaded, because it could run code .*save Data")


def test_pt_that_is_a_bare_pickle(tmp_path: Path, trap: Trap) -> None:
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(trap))
    refused(tmp_path / "evil.pt", trap, "evil.pt")


def test_pt_with_a_class_of_its_own(tmp_path: Path, trap: Trap) -> None:
    torch.save({"x": Path("x")}, tmp_path / "odd.pt")
    refused(tmp_path / "odd.pt", trap, "could run code .*pathlib")


@pytest.mark.parametrize("key", ["x", "edge_index", "y", "train_mask"])
def test_npz_with_an_object_array(tmp_path: Path, trap: Trap, key: str) -> None:
    arrays = {"x": X, "edge_index": EDGES, key: np.array([trap], dtype=object)}
    np.savez(tmp_path / "evil.npz", **arrays)
    refused(tmp_path / "evil.npz", trap, "save plain arrays only, no Python objects")


def test_npz_with_an_object_array_nobody_asked_for_is_read_without_it(tmp_path: Path, trap: Trap) -> None:
    np.savez(tmp_path / "evil.npz", x=X, edge_index=EDGES, names=np.array([trap], dtype=object))
    assert data.load(tmp_path / "evil.npz").graph.num_nodes == 3
    assert not trap.path.exists()


def test_npz_that_is_a_bare_pickle(tmp_path: Path, trap: Trap) -> None:
    (tmp_path / "evil.npz").write_bytes(pickle.dumps(trap))
    refused(tmp_path / "evil.npz", trap, "evil.npz")


def test_npz_whose_member_is_a_pickle(tmp_path: Path, trap: Trap) -> None:
    with zipfile.ZipFile(tmp_path / "evil.npz", "w") as archive:
        archive.writestr("x.npy", pickle.dumps(trap))
    refused(tmp_path / "evil.npz", trap, "evil.npz")


def test_npz_that_claims_more_than_any_memory(tmp_path: Path, trap: Trap) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**10)})
    with zipfile.ZipFile(tmp_path / "evil.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    refused(tmp_path / "evil.npz", trap, "evil.npz")
