from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, InMemoryDataset

from dissensus import data
from dissensus.errors import InputError

X = np.arange(12.0).reshape(6, 2)
EDGES = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
Y = np.array([0, 1, 0, 1, 0, -1])
WEIGHTS = np.array([0.5, 1, 2, 1e-3, 7])


# --- npz


def test_npz_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=X, edge_index=EDGES, y=Y)
    dataset = data.load(tmp_path / "mine.npz")
    assert (dataset.name, dataset.class_names, dataset.node_ids) == ("mine", ("0", "1"), None)
    assert dataset.graph.x.dtype == torch.float32
    assert np.array_equal(dataset.graph.x, X)
    assert np.array_equal(dataset.graph.edge_index, EDGES)
    assert dataset.graph.y.tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("y", "codes", "names"),
    [
        (np.array(["b", "a", "", "b", "a", "a"]), [1, 0, -1, 1, 0, 0], ("a", "b")),
        (np.array([b"b", b"a", b"", b"b", b"a", b"a"]), [1, 0, -1, 1, 0, 0], ("a", "b")),
        (np.array([2.0, np.nan, 10, 2, 10, 10]), [0, -1, 1, 0, 1, 1], ("2", "10")),
        (np.array([2**63, 1, 1, 1, 1, 1], dtype=np.uint64), [1, 0, 0, 0, 0, 0], ("1", str(2**63))),
        (np.array([True, False, False, True, True, True]), [1, 0, 0, 1, 1, 1], ("0", "1")),
        (np.full(6, -3), [-1] * 6, ()),
        (np.array(["10", "9", "-1", "9.0", "", "10"]), [1, 0, -1, 0, -1, 1], ("9", "10")),
    ],
)
def test_npz_labels_are_coded_in_sorted_order(
    tmp_path: Path, y: np.ndarray, codes: list[int], names: tuple[str, ...]
) -> None:
    np.savez(tmp_path / "mine.npz", x=X, edge_index=EDGES, y=y)
    dataset = data.load(tmp_path / "mine.npz")
    assert dataset.graph.y.tolist() == codes
    assert dataset.class_names == names


@pytest.mark.parametrize("prefix", ["", "adj_"])
def test_npz_with_csr_parts_equals_edge_index(tmp_path: Path, prefix: str) -> None:
    matrix = sp.csr_array((np.ones(5), tuple(EDGES)), shape=(6, 6))
    matrix.data[2] = 0
    parts = {f"{prefix}{part}": getattr(matrix, part) for part in ("indptr", "indices", "data", "shape")}
    np.savez(tmp_path / "mine.npz", x=X, **parts)
    found = data.load(tmp_path / "mine.npz").graph.edge_index
    assert np.array_equal(found, np.delete(EDGES, 2, axis=1))


@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS[:, None], np.array([1, 2, 3, 4, 5], dtype=np.uint8)])
def test_npz_edge_weights_are_kept(tmp_path: Path, weights: np.ndarray) -> None:
    np.savez(tmp_path / "mine.npz", x=X, edge_index=EDGES, edge_weight=weights)
    graph = data.load(tmp_path / "mine.npz").graph
    assert graph.edge_weight.dtype == torch.float32
    assert np.array_equal(graph.edge_weight, weights.reshape(-1).astype(np.float32))


def test_npz_values_of_a_csr_matrix_are_weights_unless_all_are_one(tmp_path: Path) -> None:
    fingerprints = []
    for name, values in (
        ("none", None),
        ("ones", np.ones(5)),
        ("weights", WEIGHTS),
        ("zero", np.array([1, 0, 1, 1, 3])),
    ):
        matrix = sp.csr_array((np.ones(5), tuple(EDGES)), shape=(6, 6))
        parts = {part: getattr(matrix, part) for part in ("indptr", "indices")}
        np.savez(tmp_path / f"{name}.npz", x=X, **parts, **({} if values is None else {"data": values}))
        dataset = data.load(tmp_path / f"{name}.npz")
        fingerprints.append(dataset.fingerprint)
        if name in ("none", "ones"):
            assert dataset.graph.edge_weight is None
        else:
            assert np.array_equal(dataset.graph.edge_weight, values[values != 0].astype(np.float32))
    assert fingerprints[0] == fingerprints[1]
    assert len(set(fingerprints)) == 3


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(4), r"edge_weight is float64 of shape \[4\], but there are 5 edges: give one number per edge"),
        (np.ones((5, 2)), r"of shape \[5, 2\]"),
        (np.array(["a"] * 5), "edge_weight is <U1"),
        (np.array([1, 1, -2, 0, 1]), "edge 2, from node 2 to 3, has the weight -2.0, .*2 such edges.*: drop them"),
        (np.array([1, np.nan, 1, 1, 1]), "edge 1, from node 1 to 2, has the weight nan"),
        (np.array([1, 1, 1, 1, 1e300]), "edge 4, from node 4 to 5, has the weight inf"),
        (np.array([1, 1, 1, 1, 1e-300]), "has the weight 0.0, which is not a positive float32 number"),
    ],
)
def test_npz_weights_that_are_none_are_refused(tmp_path: Path, weights: np.ndarray, message: str) -> None:
    np.savez(tmp_path / "mine.npz", x=X, edge_index=EDGES, edge_weight=weights)
    with pytest.raises(InputError, match=message):
        data.load(tmp_path / "mine.npz")


def test_npz_in_the_layout_of_gnn_benchmark(tmp_path: Path) -> None:
    matrix = sp.csr_array((np.ones(5), tuple(EDGES)), shape=(6, 6))
    features = sp.csr_array(X)
    parts = {f"adj_{part}": getattr(matrix, part) for part in ("indptr", "indices", "data", "shape")}
    parts |= {f"attr_{part}": getattr(features, part) for part in ("indptr", "indices", "data", "shape")}
    np.savez(tmp_path / "mine.npz", labels=Y, **parts)
    graph = data.load(tmp_path / "mine.npz").graph
    assert np.array_equal(graph.x, X)
    assert graph.y.tolist() == Y.tolist()
    assert graph.edge_weight is None


def test_npz_masks_become_fixed_splits(tmp_path: Path) -> None:
    eye = np.eye(6)
    np.savez(tmp_path / "mine.npz", x=X, edge_index=EDGES, y=Y, train_mask=eye[0], val_mask=eye[1], test_mask=eye[2])
    dataset = data.load(tmp_path / "mine.npz")
    assert dataset.default_splits == (0,)
    assert dataset.split(0).val_mask.nonzero().tolist() == [[1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "there is no x"),
        ({"edge_index": None}, "there is no edge_index"),
        ({"x": np.where(X == 5, np.nan, X)}, r"mine.npz: x\[2, 1\] is nan .*, 1 rows in all: fill or drop"),
        (
            {"edge_index": EDGES + 10**15},
            "edge 0 joins nodes 1000000000000000 and 1000000000000001, but x has rows 0-5",
        ),
        ({"edge_index": None, "indptr": np.array([0, 5])}, "there is indptr but no indices"),
        ({"edge_index": None, "indptr": np.array([0, 9]), "indices": np.array([1])}, "does not run from 0 to"),
        ({"edge_index": None, "indptr": np.array([0.0]), "indices": np.array([1])}, "must be 1-D integers"),
        (
            {"edge_index": None, "indptr": np.array([0, 1]), "indices": np.array([1]), "data": np.ones(3)},
            "one for each",
        ),
        (
            {"edge_index": None, "indptr": np.array([0, 1]), "indices": np.array([1]), "edge_weight": np.ones(1)},
            "both edge_weight and a CSR matrix: store the weights as data",
        ),
        ({"x": np.array([["a"]] * 6)}, "x is <U1 of shape"),
        ({"y": np.array([b"\xff"] * 6)}, "not ASCII: store it as text"),
    ],
)
def test_npz_faults_name_file_place_and_cure(
    tmp_path: Path, change: dict[str, np.ndarray | None], message: str
) -> None:
    fields = {"x": X, "edge_index": EDGES, "y": Y} | change
    np.savez(tmp_path / "mine.npz", **{key: value for key, value in fields.items() if value is not None})
    with pytest.raises(InputError, match=message):
        data.load(tmp_path / "mine.npz")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (None, "attr_shape must be"),
        (np.array([5, 2]), "agree with attr_indptr"),
        (np.array([6, 1]), "exceed the 1 columns"),
        (np.array([6, 2**62]), "too large to hold"),
    ],
)
def test_npz_with_wrong_sparse_features(tmp_path: Path, shape: np.ndarray | None, message: str) -> None:
    features = sp.csr_array(X)
    parts = {f"attr_{part}": getattr(features, part) for part in ("indptr", "indices", "data")}
    if shape is not None:
        parts["attr_shape"] = shape
    np.savez(tmp_path / "mine.npz", edge_index=EDGES, **parts)
    with pytest.raises(InputError, match=message):
        data.load(tmp_path / "mine.npz")


def test_a_single_array_is_no_npz(tmp_path: Path) -> None:
    with (tmp_path / "mine.npz").open("wb") as stream:
        np.save(stream, X)
    with pytest.raises(InputError, match=r"has a single array and is not an archive: use numpy.savez"):
        data.load(tmp_path / "mine.npz")


# --- pt


def test_pt_with_a_data_object_is_read(tmp_path: Path) -> None:
    given = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), y=torch.tensor(Y), note="kept out")
    torch.save(given, tmp_path / "mine.pt")
    dataset = data.load(str(tmp_path / "mine.pt"))
    assert dataset.name == "mine"
    assert set(dataset.graph.keys()) == {"x", "edge_index", "y"}
    assert torch.equal(dataset.graph.edge_index, given.edge_index)


def test_pt_edge_weights_are_kept_and_edge_attributes_left_out(tmp_path: Path) -> None:
    given = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), edge_attr=torch.ones(5, 3))
    given.edge_weight = torch.tensor(WEIGHTS)
    torch.save(given, tmp_path / "mine.pt")
    assert torch.equal(data.load(tmp_path / "mine.pt").graph.edge_weight, given.edge_weight.float())


def test_pt_with_a_dictionary_is_read(tmp_path: Path) -> None:
    torch.save({"x": torch.tensor(X).bfloat16(), "edge_index": torch.tensor(EDGES).int()}, tmp_path / "mine.pth")
    assert data.load(tmp_path / "mine.pth").graph.edge_index.dtype == torch.int64


@pytest.mark.parametrize("count", [1, 2])
def test_pt_of_a_pyg_dataset_is_read_if_it_holds_one_graph(tmp_path: Path, count: int) -> None:
    given = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), y=torch.tensor(Y))
    InMemoryDataset.save([given] * count, str(tmp_path / "data.pt"))
    if count == 1:
        assert data.load(tmp_path / "data.pt").graph.num_nodes == 6
    else:
        with pytest.raises(InputError, match="several graphs: save them with"):
            data.load(tmp_path / "data.pt")


def test_pt_that_holds_no_graph(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "mine.pt")
    with pytest.raises(InputError, match="has a list, not a graph: save a Data"):
        data.load(tmp_path / "mine.pt")


# --- any


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("graph.txt", "unknown file type: give .npz, .pt, or a folder"),
        ("table.csv", "name them edges.csv and nodes.csv"),
        ("edges.csv", "nodes.csv is missing"),
        ("", "edges.csv is missing"),
    ],
)
def test_paths_that_are_no_graph(tmp_path: Path, name: str, message: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    if name:
        (folder / name).touch()
    with pytest.raises(InputError, match=message):
        data.load(folder / name)
