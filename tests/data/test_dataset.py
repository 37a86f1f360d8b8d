import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
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


def cycle(nodes: int, **fields: torch.Tensor) -> Data:
    node = torch.arange(nodes)
    there = torch.stack([node, (node + 1) % nodes])
    return Data(x=torch.rand(nodes, 2), edge_index=torch.cat([there, there.flip(0)], 1), **fields)


def collection(graphs: int = 10) -> list[Data]:
    return [cycle(3 + k % 4, y=torch.tensor([k % 2])) for k in range(graphs)]


def test_a_list_of_graphs_is_what_pyg_batches() -> None:
    graphs = collection()
    dataset, batch = data.from_pyg(graphs), Batch.from_data_list(graphs)
    for key in ("x", "edge_index", "y", "batch"):
        assert torch.equal(dataset.graph[key], batch[key])
    assert dataset.per_graph
    assert dataset.num_classes == dataset.num_outputs == 2
    assert dataset.homophily is None
    assert data.from_pyg(batch).fingerprint == dataset.fingerprint
    split = dataset.split(1)
    assert [int(split[f"{key}_mask"].sum()) for key in ("train", "val", "test")] == [6, 2, 2]
    assert torch.equal(dataset.undirected().graph.batch, batch.batch)


def test_targets_of_graphs_may_be_numbers_masks_or_unknown() -> None:
    graphs = [cycle(4, y=torch.tensor(0.5 * k)) for k in range(5)]
    dataset = data.from_pyg(graphs)
    assert (dataset.metric, dataset.num_outputs, dataset.num_classes) == ("mae", 1, 0)
    assert dataset.graph.y.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    for k, graph in enumerate(graphs):
        graph.train_mask, graph.val_mask, graph.test_mask = (
            torch.tensor([k in part]) for part in ((0, 1, 2), (3,), (4,))
        )
    assert data.from_pyg(graphs).split(0).train_mask.tolist() == [True] * 3 + [False] * 2
    known = [cycle(3, y=torch.tensor([k % 2 if k < 10 else -1])) for k in range(12)]
    split = data.from_pyg(known).split(3)
    assert not (split.train_mask | split.val_mask | split.test_mask)[10:].any()


def test_nodes_of_a_collection_may_have_the_targets() -> None:
    dataset = data.from_pyg([cycle(4, y=torch.tensor([0, 1, 0, -1])) for _ in range(10)])
    assert not dataset.per_graph
    split = dataset.split(1)
    # Whole graphs are split, and unlabelled nodes are in no mask.
    assert split.train_mask.view(10, 4).sum(1).unique().tolist() == [0, 3]
    assert dataset.homophily == 0.0


def test_files_of_several_graphs(tmp_path) -> None:
    graphs = collection()
    torch.save(graphs, tmp_path / "graphs.pt")
    dataset = data.load(tmp_path / "graphs.pt")
    assert dataset.fingerprint == data.from_pyg(graphs).fingerprint
    fields = {key: dataset.graph[key].numpy() for key in ("x", "edge_index", "y", "batch")}
    np.savez(tmp_path / "graphs.npz", **fields)
    assert data.load(tmp_path / "graphs.npz").fingerprint == dataset.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda graphs: graphs.clear(), "the list is empty"),
        (lambda graphs: graphs.append(3), "item 10 is int: give PyG Data"),
        (lambda graphs: graphs.append(cycle(3)), "graph 10 lacks y, unlike graph 0"),
        (
            lambda graphs: graphs.append(cycle(3, y=torch.tensor([0]), edge_weight=torch.ones(6))),
            "graph 10 has edge_weight",
        ),
        (lambda graphs: graphs[4].update({"x": torch.rand(3, 5)}), "graph 4 has 5 features, and graph 0 2"),
        (lambda graphs: graphs[4].edge_index.fill_(7), r"graph 4: edge 0 joins nodes 7 and 7, but x has rows 0-2"),
        (lambda graphs: graphs[4].update({"y": torch.tensor([0, 1])}), "one for each of the 10 graphs"),
        (lambda graphs: graphs[4].update({"y": torch.rand(2, 2)}), "do not fit together"),
    ],
)
def test_graphs_that_do_not_fit_together_are_refused(change, message) -> None:
    graphs = collection()
    change(graphs)
    with pytest.raises(InputError, match=message):
        data.from_pyg(graphs)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.zeros(3), "batch is float32"),
        (torch.tensor([0, 1, 0, 1]), "put the nodes of each graph together"),
        (torch.tensor([0, 0, 2, 2]), "put the nodes of each graph together"),
        (torch.tensor([0, 0, 1, 1]), "from node 1 to 2, joins two graphs"),
    ],
)
def test_a_batch_that_is_none_is_refused(batch, message) -> None:
    with pytest.raises(InputError, match=message):
        data.from_pyg(cycle(4, y=torch.tensor([0, 1]), batch=batch))
