import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import homophily

from dissensus import data
from dissensus.errors import InputError


def ring(nodes: int = 6, **more: torch.Tensor) -> Data:
    step = torch.arange(nodes)
    return Data(x=torch.eye(nodes), edge_index=torch.stack([step, (step + 1) % nodes]), **more)


def test_from_pyg_codes_labels_and_keeps_the_callers_data() -> None:
    given = ring(y=torch.tensor([[7], [3], [-1], [3], [-5], [7]]))
    dataset = data.from_pyg(given, name="mine")
    assert dataset.name == "mine"
    assert dataset.graph.y.tolist() == [1, 0, -1, 0, -1, 1]
    assert dataset.class_names == ("3", "7")
    assert given.y.shape == (6, 1)
    assert dataset.graph.edge_weight is None


def test_from_pyg_allows_a_graph_without_labels() -> None:
    dataset = data.from_pyg(ring())
    assert (dataset.num_classes, dataset.homophily) == (0, None)
    assert dataset.graph.y.tolist() == [-1] * 6
    with pytest.raises(InputError, match="no labels"):
        dataset.split(1)


@pytest.mark.parametrize("columns", [1, 3])
def test_from_pyg_uses_the_masks_it_is_given(columns: int) -> None:
    masks = torch.zeros(3, 6, columns, dtype=torch.bool)
    for part in range(3):
        masks[part, part] = True
    shown = masks[:, :, 0] if columns == 1 else masks
    dataset = data.from_pyg(ring(y=torch.arange(6) % 2, train_mask=shown[0], val_mask=shown[1], test_mask=shown[2]))
    assert dataset.protocol == "masks in file"
    assert dataset.default_splits == tuple(range(columns))
    split = dataset.split(columns - 1)
    assert [mask.nonzero().item() for mask in (split.train_mask, split.val_mask, split.test_mask)] == [0, 1, 2]


MASK = torch.tensor([True, False, False, False, False, False])
LABELS = torch.tensor([0, 1, 0, 1, 0, -1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": None}, "there is no x: add"),
        ({"x": torch.zeros(6)}, r"x is float32 of shape \[6\]: store numbers"),
        ({"x": torch.zeros(6, 0)}, "at least one of each"),
        ({"x": torch.full((6, 2), 1e300, dtype=torch.float64)}, r"x\[0, 0\] is inf.*6 rows in all"),
        ({"x": torch.eye(6).to_sparse()}, r"x is not a plain dense tensor: store x.to_dense\(\)"),
        ({"x": torch.zeros(6, 2).to(torch.float8_e4m3fn)}, "x has dtype torch.float8_e4m3fn: store it as float32"),
        ({"x": "text"}, "x has str, not plain numbers"),
        ({"x": torch.zeros(6, 2, dtype=torch.complex64)}, "x has complex64"),
        ({"edge_index": None}, "there is no edge_index"),
        ({"edge_index": torch.zeros(4, 2, dtype=torch.long)}, "transpose it"),
        ({"edge_index": torch.zeros(2, 4)}, "as integers"),
        ({"edge_index": torch.tensor([[0, 1], [1, 6]])}, "edge 1 joins nodes 1 and 6, but x has rows 0-5: number"),
        ({"edge_index": torch.tensor([[0, -1], [1, 2]])}, "edge 1 joins nodes -1 and 2"),
        ({"y": torch.zeros(5)}, "give one label per node"),
        ({"y": torch.full((6,), torch.inf)}, r"y\[0\] is inf, which is too large"),
        ({"train_mask": MASK}, "there is train_mask but no val_mask: give all three"),
        (dict.fromkeys(("train_mask", "val_mask", "test_mask"), MASK), "node 0 is in two masks of split 0"),
        (dict.fromkeys(("train_mask", "val_mask", "test_mask"), MASK.flip(0)), "marks node 5, which has no label"),
        (dict.fromkeys(("train_mask", "val_mask", "test_mask"), MASK & False), "train_mask of split 0 is empty"),
        (dict.fromkeys(("train_mask", "val_mask", "test_mask"), MASK[:4]), "but x has 6 rows: give booleans"),
        (dict.fromkeys(("train_mask", "val_mask", "test_mask"), torch.arange(6)), "other values than 0 and 1"),
        (
            {"train_mask": MASK, "val_mask": MASK.roll(1)[:, None].repeat(1, 2), "test_mask": MASK.roll(2)},
            "the masks differ in shape",
        ),
    ],
)
def test_from_pyg_names_the_fault_and_the_cure(fields: dict[str, object], message: str) -> None:
    given = ring(y=LABELS)
    for key, value in fields.items():
        given[key] = value
    with pytest.raises(InputError, match=message):
        data.from_pyg(given)


def test_homophily_agrees_with_pyg_and_ignores_unlabelled_ends() -> None:
    dataset = data.load("karate")
    assert dataset.homophily == pytest.approx(homophily(dataset.graph.edge_index, dataset.graph.y, method="edge"))
    assert data.from_pyg(ring(y=torch.tensor([0, 0, 1, -1, -1, -1]))).homophily == 0.5


def test_largest_component_agrees_with_networkx() -> None:
    whole = data.load("csbm", nodes=300, degree=1.2, seed=3)
    part = data.load("csbm", nodes=300, degree=1.2, seed=3, largest_component=True)
    graph = nx.Graph(whole.graph.edge_index.T.tolist())
    keep = sorted(max(nx.connected_components(graph), key=len))
    assert torch.equal(part.graph.x, whole.graph.x[keep])
    assert torch.equal(part.graph.y, whole.graph.y[keep])
    edges = {(keep[a], keep[b]) for a, b in part.graph.edge_index.T.tolist()}
    assert edges == {(a, b) for a, b in whole.graph.edge_index.T.tolist() if a in keep}


def test_largest_component_keeps_masks_with_their_nodes() -> None:
    masks = torch.eye(6, dtype=torch.bool)
    given = ring(y=torch.arange(6) % 2, train_mask=masks[2], val_mask=masks[3], test_mask=masks[4])
    given.edge_index = torch.tensor([[1, 2, 3], [2, 3, 4]])
    split = data.from_pyg(given).largest_component().split(0)
    assert split.num_nodes == 4
    assert [mask.nonzero().item() for mask in (split.train_mask, split.val_mask, split.test_mask)] == [1, 2, 3]


def test_largest_component_keeps_weights_with_their_edges() -> None:
    given = ring(edge_weight=torch.tensor([3.0, 4.0, 5.0]))
    given.edge_index = torch.tensor([[0, 2, 3], [0, 3, 4]])
    graph = data.from_pyg(given).largest_component().graph
    assert (graph.edge_index.tolist(), graph.edge_weight.tolist()) == ([[0, 1], [1, 2]], [4.0, 5.0])


def test_undirected_adds_each_reverse_once() -> None:
    dataset = data.from_pyg(ring()).undirected()
    assert dataset.graph.is_undirected()
    assert dataset.graph.num_edges == 12


def test_undirected_weights_are_those_of_the_edge_the_sum_of_repetitions_and_the_mean_of_both_ways() -> None:
    given = ring(edge_weight=torch.tensor([1.0, 2.0, 4.0, 6.0, 8.0, 9.0]))
    given.edge_index = torch.tensor([[0, 1, 1, 2, 3, 5], [1, 2, 2, 1, 3, 4]])
    dataset = data.from_pyg(given).undirected()
    weights = dict(
        zip(map(tuple, dataset.graph.edge_index.T.tolist()), dataset.graph.edge_weight.tolist(), strict=True)
    )
    once = {(0, 1): 1.0, (1, 2): (2.0 + 4.0 + 6.0) / 2, (3, 3): 8.0, (4, 5): 9.0}
    assert weights == once | {(target, source): weight for (source, target), weight in once.items()}
    again = dataset.undirected().graph
    assert torch.equal(again.edge_weight, dataset.graph.edge_weight)


def test_fingerprint_tells_data_apart() -> None:
    base = data.load("csbm", nodes=160)
    assert base.fingerprint == data.load("csbm", nodes=160).fingerprint
    others = [data.load("csbm", nodes=160, seed=1), data.load("csbm", nodes=160, largest_component=True, degree=2.0)]
    masked = base.graph.clone()
    masks = torch.eye(160, dtype=torch.bool)
    masked.train_mask, masked.val_mask, masked.test_mask = masks[0], masks[1], masks[2]
    others.append(data.from_pyg(masked, name="csbm"))
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_fingerprint_knows_weights_and_stays_the_same_without() -> None:
    # Stored runs and saved models know their data by it.
    assert data.load("karate").fingerprint == "87fbce558aa5402c5f678fc8aa619d61"
    found = [
        data.from_pyg(ring(**more)).fingerprint
        for more in ({}, *({"edge_weight": torch.full((6,), w)} for w in (1.0, 2.0)))
    ]
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("edges", "one_way"),
    [
        ([[0, 1, 2], [1, 2, 0]], True),
        ([[0, 1, 3], [1, 2, 3]], True),
        ([[0, 1, 1], [1, 2, 0]], False),
        ([[3, 4], [3, 4]], False),
        ([[], []], False),
    ],
)
def test_one_way_means_that_no_edge_has_its_reverse(edges: list[list[int]], one_way: bool) -> None:
    given = ring()
    given.edge_index = torch.tensor(edges, dtype=torch.long)
    assert data.from_pyg(given).one_way is one_way


def test_repr_shows_the_sizes() -> None:
    assert repr(data.load("karate")).startswith("Dataset('karate', nodes=34, edges=156, features=34, classes=4")
