import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric import EdgeIndex

from dissensus.errors import InputError
from dissensus.graph import _build, build, check_edge_index
from dissensus.runtime import Cache


@pytest.fixture(autouse=True)
def _fresh_cache() -> None:
    Cache.clear_all()


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Tensor]:
    """Any graph: without nodes or edges, isolated nodes, self-loops, duplicate and directed edges."""
    n = draw(st.integers(0, 7))
    node = st.integers(0, max(n - 1, 0))
    pairs = draw(st.lists(st.tuples(node, node), max_size=20 if n else 0))
    dtype = draw(st.sampled_from([torch.int32, torch.int64]))
    return n, torch.tensor(pairs, dtype=dtype).view(-1, 2).t()


def dense(n: int, edge_index: Tensor) -> Tensor:
    """A[i, j] = 1 for an edge from j to i."""
    a = torch.zeros(n, n, dtype=torch.bool)
    for j, i in edge_index.t().tolist():
        a[i, j] = True
    return a


@given(graphs(), st.booleans())
def test_pattern_of_any_graph(graph: tuple[int, Tensor], self_loops: bool) -> None:
    n, edge_index = graph
    built = build(edge_index, n, self_loops=self_loops)
    expected = dense(n, edge_index)
    lonely = torch.ones(n, dtype=torch.bool) if self_loops else ~expected.any(1)
    given_edges = expected.clone()
    expected |= torch.diag(lonely)
    pattern = built.pattern
    assert built.num_nodes == n
    assert torch.equal(pattern.matrix(torch.ones(pattern.entries)).to_dense() > 0, expected)
    row, col = pattern.row.long(), pattern.col.long()
    assert torch.equal(torch.stack([row, col]), expected.nonzero().t())
    assert torch.equal(row[built.slot], edge_index[1].long())
    assert torch.equal(col[built.slot], edge_index[0].long())
    assert torch.equal(built.added, ~given_edges[row, col])
    sums = pattern.row_sums(pattern.row_softmax(torch.randn(pattern.entries, dtype=torch.float64)))
    torch.testing.assert_close(sums, torch.ones(n, dtype=torch.float64))


@given(graphs())
def test_edge_weights_add_up_and_added_loops_weigh_one(graph: tuple[int, Tensor]) -> None:
    n, edge_index = graph
    weight = torch.arange(1.0, edge_index.shape[1] + 1.0, dtype=torch.float64)
    expected = torch.zeros(n, n, dtype=torch.float64)
    for (j, i), w in zip(edge_index.t().tolist(), weight.tolist(), strict=True):
        expected[i, j] += w
    expected += torch.diag((expected.diagonal() == 0).double())
    built = build(edge_index, n)
    values = built.values(weight)
    assert values is not None
    assert torch.equal(built.pattern.matrix(values).to_dense(), expected)


def test_edge_weights_of_a_directed_graph_go_to_their_direction() -> None:
    built = build(torch.tensor([[0, 1], [1, 0]]), 2)
    values = built.values(torch.tensor([2.0, 3.0]))
    assert torch.equal(built.pattern.matrix(values).to_dense(), torch.tensor([[1.0, 3.0], [2.0, 1.0]]))


def test_edge_weights_are_differentiable() -> None:
    built = build(torch.tensor([[0, 0, 1], [1, 1, 0]]), 3)
    weight = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: built.values(w).square(), (weight,))
    assert built.values(None) is None


def test_strided_and_column_weights() -> None:
    built = build(torch.tensor([[0, 1], [1, 0]]), 2)
    weight = torch.tensor([[2.0, 9.0], [3.0, 9.0]])
    expected = built.values(torch.tensor([2.0, 3.0]))
    assert torch.equal(built.values(weight[:, 0]), expected)
    assert torch.equal(built.values(weight[:, :1]), expected)


@pytest.mark.parametrize(
    ("weight", "cure"),
    [
        (torch.ones(3), "one weight per edge"),
        (torch.ones(2, dtype=torch.int64), r"edge_weight\.float\(\)"),
        ([1.0, 1.0], "torch tensor"),
    ],
)
def test_bad_edge_weights(weight: Tensor, cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        build(torch.tensor([[0, 1], [1, 0]]), 2).values(weight)


BAD = [
    ([[0, 1], [1, 0]], "torch tensor"),
    (np.zeros((2, 3), dtype=np.int64), "torch tensor"),
    (torch.zeros(3, dtype=torch.int64), r"\[2, edges\]"),
    (torch.zeros(3, 4, dtype=torch.int64), r"\[2, edges\]"),
    (torch.zeros(4, 2, dtype=torch.int64), "transpose"),
    (torch.zeros(2, 4), r"edge_index\.long\(\)"),
    (torch.zeros(2, 4, dtype=torch.bool), r"edge_index\.long\(\)"),
    (torch.eye(2).to_sparse(), "coordinates"),
    (torch.tensor([[0, 5], [1, 0]]), "node 5.*5 nodes.*numbered from 0"),
    (torch.tensor([[0, -1], [1, 0]]), "node -1"),
]


@pytest.mark.parametrize(("edge_index", "cure"), BAD)
@pytest.mark.parametrize("check", [build, check_edge_index])
def test_bad_edge_index(edge_index: Tensor, cure: str, check: object) -> None:
    with pytest.raises(InputError, match=cure):
        check(edge_index, 5)


def test_edges_without_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="0 nodes"):
        build(torch.zeros(2, 1, dtype=torch.int64), 0)


def test_bad_edge_index_is_refused_after_a_good_one_of_the_same_shape() -> None:
    build(torch.tensor([[0, 1], [1, 0]]), 2)
    with pytest.raises(InputError):
        build(torch.tensor([[0, 2], [1, 0]]), 2)


def test_repeated_builds_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    first = build(edge_index, 3)
    monkeypatch.setattr(_build, "_build", lambda *_: pytest.fail("built again"))
    assert build(edge_index, 3) is first
    assert build(edge_index.clone(), 3) is first


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.__setitem__((0, 0), 2),
        lambda e: e.data.__setitem__((0, 0), 2),
        lambda e: e.numpy().__setitem__((0, 0), 2),
        lambda e: setattr(e, "data", torch.tensor([[2, 1], [1, 0]])),
    ],
    ids=["torch", "data", "numpy", "swapped"],
)
def test_changes_in_place_are_seen(change: object) -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    before = build(edge_index, 3)
    change(edge_index)
    after = build(edge_index, 3)
    expected = dense(3, torch.tensor([[2, 1], [1, 0]])) | torch.eye(3, dtype=torch.bool)
    assert torch.equal(after.pattern.matrix(torch.ones(after.pattern.entries)).to_dense() > 0, expected)
    assert after is not before


def test_the_same_edges_on_more_nodes_or_without_loops_are_another_graph() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    assert build(edge_index, 3).num_nodes == 3
    assert build(edge_index, 2).num_nodes == 2
    assert build(edge_index, 2, self_loops=False).pattern.entries == 2
    assert build(edge_index, 2).pattern.entries == 4


def test_graph_first_seen_in_inference_mode_serves_training() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    with torch.inference_mode():
        build(edge_index, 2)
    pattern = build(edge_index, 2).pattern
    scores = torch.randn(pattern.entries, requires_grad=True)
    pattern.row_softmax(scores).square().sum().backward()
    assert scores.grad is not None


def test_edge_index_of_pyg() -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert build(EdgeIndex(edge_index, sparse_size=(3, 3)), 3).pattern.entries == 6
