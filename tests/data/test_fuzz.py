"""Whatever a user's file holds, reading it gives a sound dataset or an InputError, never anything else."""

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch_geometric.data import Data

from dissensus import data
from dissensus.errors import InputError

FUZZ = settings(
    max_examples=120,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

X = np.arange(12.0).reshape(6, 2)
EDGES = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
FIELDS: dict[str, np.ndarray] = {
    "x": X,
    "edge_index": EDGES,
    "edge_weight": np.arange(1.0, 6.0),
    "y": np.array([0, 1, 0, 1, 0, -1]),
    "train_mask": np.eye(6, dtype=bool)[0],
    "val_mask": np.eye(6, dtype=bool)[1],
    "test_mask": np.eye(6, dtype=bool)[2],
}
CSR = {"indptr": np.array([0, 1, 2, 3, 4, 5, 5]), "indices": np.arange(1, 6), "data": np.ones(5)}
ATTR = {
    "attr_indptr": np.arange(7),
    "attr_indices": np.zeros(6, int),
    "attr_data": np.ones(6),
    "attr_shape": np.array([6, 1]),
}

kinds = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(),
    hnp.unicode_string_dtypes(max_len=4),
    hnp.byte_string_dtypes(max_len=4),
    hnp.datetime64_dtypes(),
)
arrays = kinds.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)))
# Arrays of the right shape with wrong contents reach deeper than arbitrary ones.
fitting = st.one_of(
    hnp.arrays(np.float64, (6, 2)),
    hnp.arrays(np.int64, (2, 5)),
    hnp.arrays(np.int64, (6,)),
    hnp.arrays(np.float32, (6,)),
    hnp.arrays(np.float64, (5,)),
    hnp.arrays(np.int8, (6, 2), elements=st.integers(0, 1)),
    hnp.arrays(np.int64, (7,), elements=st.integers(-1, 6)),
)


def changes(fields: dict[str, np.ndarray]) -> st.SearchStrategy[dict[str, np.ndarray]]:
    """``fields`` with some of them left out and some replaced."""
    replaced = st.dictionaries(st.sampled_from(sorted(fields)), st.one_of(arrays, fitting, st.none()), max_size=4)
    return replaced.map(lambda new: {key: value for key, value in {**fields, **new}.items() if value is not None})


def check(name: str, files: dict[str, bytes]) -> None:
    """Load ``name`` from a folder of ``files``; a dataset that comes out must be sound."""
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            (Path(folder) / file).write_bytes(content)
        try:
            dataset = data.load(Path(folder) / name)
        except InputError:
            return
    graph = dataset.graph
    nodes = graph.x.size(0)
    assert bool(torch.isfinite(graph.x).all())
    assert graph.y.shape == (nodes,)
    assert set(graph.y.tolist()) <= set(range(-1, dataset.num_classes))
    assert graph.edge_index.shape[0] == 2
    assert bool(((graph.edge_index >= 0) & (graph.edge_index < nodes)).all())
    if graph.edge_weight is not None:
        assert graph.edge_weight.shape == (graph.num_edges,)
        assert bool((torch.isfinite(graph.edge_weight) & (graph.edge_weight > 0)).all())
    try:
        split = dataset.split(dataset.default_splits[0])
    except InputError:
        return
    assert all(
        mask.any() and bool((graph.y[mask] >= 0).all()) for mask in (split.train_mask, split.val_mask, split.test_mask)
    )


def npz(fields: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **fields)
    return stream.getvalue()


def pt(content: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def tensors(fields: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {key: torch.from_numpy(value) for key, value in fields.items()}


VALID_NPZ = npz(FIELDS)
VALID_PT = pt(Data(**tensors(FIELDS)))
VALID_CSV = b"id,f,label,g\na,1,red,2\nb,2,,3\nc,3,blue,4\nd,4,red,5\n"
VALID_EDGES = b"source,target,weight\na,b,1\nb,c,0.5\nc,d,2e3\n"

damage = st.tuples(
    st.floats(0, 1), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6), st.binary(max_size=20)
)


def damaged(content: bytes, how: tuple[float, list[tuple[float, int]], bytes]) -> bytes:
    """``content`` cut off, with some bytes overwritten, and something appended."""
    keep, edits, tail = how
    # Most cuts near the end or none: a file cut in its first half fails at once.
    cut = bytearray(content[: round(len(content) * (1 - (1 - keep) ** 3))])
    for place, value in edits:
        if cut:
            cut[min(int(place * len(cut)), len(cut) - 1)] = value
    return bytes(cut) + tail


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("a.npz", {"a.npz": VALID_NPZ}),
        ("a.pt", {"a.pt": VALID_PT}),
        ("", {"nodes.csv": VALID_CSV, "edges.csv": VALID_EDGES}),
    ],
)
def test_the_files_to_be_damaged_are_sound(tmp_path: Path, name: str, files: dict[str, bytes]) -> None:
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    assert data.load(tmp_path / name).num_classes == 2


@FUZZ
@given(changes(FIELDS))
@pytest.mark.slow
def test_npz_of_wrong_arrays(fields: dict[str, np.ndarray]) -> None:
    check("a.npz", {"a.npz": npz(fields)})


@FUZZ
@given(changes({"y": FIELDS["y"], **CSR, **ATTR}))
@pytest.mark.slow
def test_npz_of_wrong_csr_parts(fields: dict[str, np.ndarray]) -> None:
    check("a.npz", {"a.npz": npz(fields)})


@pytest.mark.slow
@FUZZ
@given(damage)
def test_npz_damaged(how: tuple[float, list[tuple[float, int]], bytes]) -> None:
    check("a.npz", {"a.npz": damaged(VALID_NPZ, how)})


@FUZZ
@given(st.binary(max_size=200), st.sampled_from(["a.npz", "a.pt", "a.pth"]))
def test_binary_noise(content: bytes, name: str) -> None:
    check(name, {name: content})


values = st.recursive(
    st.one_of(
        st.none(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        fitting.map(torch.from_numpy),
        st.builds(
            torch.zeros,
            st.lists(st.integers(0, 4), max_size=3),
            dtype=st.sampled_from(
                [torch.bool, torch.complex64, torch.half, torch.bfloat16, torch.float8_e5m2, torch.uint32]
            ),
        ),
        st.just(torch.eye(6).to_sparse()),
        st.just(torch.eye(6, device="meta")),
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@FUZZ
@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), values, max_size=4), st.booleans())
@pytest.mark.slow
def test_pt_of_wrong_values(new: dict[str, Any], wrap: bool) -> None:
    content = {**tensors(FIELDS), **new}
    check("a.pt", {"a.pt": pt(Data.from_dict(content) if wrap else content)})


@pytest.mark.slow
@FUZZ
@given(values)
def test_pt_of_anything(content: Any) -> None:
    check("a.pt", {"a.pt": pt(content)})


@FUZZ
@given(damage)
def test_pt_damaged(how: tuple[float, list[tuple[float, int]], bytes]) -> None:
    check("a.pt", {"a.pt": damaged(VALID_PT, how)})


@pytest.mark.parametrize("state", [None, {}, {"_store": None}, {"_store": 3}, 5])
def test_pt_with_a_hollow_data(state: Any) -> None:
    hollow = Data.__new__(Data)
    if isinstance(state, dict):
        hollow.__dict__.update(state)
    check("a.pt", {"a.pt": pt((hollow, state, Data))})
    check("a.pt", {"a.pt": pt(hollow)})


cells = st.one_of(
    st.sampled_from(
        [
            "a",
            "b",
            "c",
            "d",
            "id",
            "label",
            "y",
            "train_mask",
            "source",
            "target",
            "weight",
            "f",
            "0",
            "1",
            "-1",
            "nan",
            "inf",
            "1e999",
            "",
            " ",
            '"',
            "99999999999999999999",
            "\x00",
            "é",
            "٣",
            "²",
        ]
    ),
    st.text(max_size=6),
)
table = (
    st.lists(st.lists(cells, max_size=6).map(",".join), max_size=8)
    .map("\n".join)
    .map(lambda text: text.encode("utf-8", "surrogatepass"))
)


@FUZZ
@given(
    st.one_of(st.just(VALID_CSV), table, st.binary(max_size=100)),
    st.one_of(st.just(VALID_EDGES), table, st.binary(max_size=60)),
)
def test_csv_of_anything(nodes: bytes, edges: bytes) -> None:
    check("", {"nodes.csv": nodes, "edges.csv": edges})


@FUZZ
@given(damage, damage)
def test_csv_damaged(one: Any, two: Any) -> None:
    check("", {"nodes.csv": damaged(VALID_CSV, one), "edges.csv": damaged(VALID_EDGES, two)})


@FUZZ
@given(rows=st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=6))
def test_csv_of_wrong_cells(rows: list[tuple[str, str, str]]) -> None:
    body = "\n".join(f"n{i},{cell},{label},{mark}" for i, (cell, label, mark) in enumerate(rows))
    nodes = f"id,f,label,train_mask\n{body}\n".encode("utf-8", "surrogatepass")
    check("", {"nodes.csv": nodes, "edges.csv": b"source,target\n"})
