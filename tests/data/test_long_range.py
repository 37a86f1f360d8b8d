"""Generated long-range tasks: targets against breadth-first search, seeds, splits by whole graphs."""

from collections import deque

import pytest
import torch
from torch_geometric.utils import is_undirected

from dissensus import data
from dissensus.errors import InputError

FAMILIES = ("line", "grid", "tree", "barabasi-albert", "caveman", "erdos-renyi")


def hops(edge_index: torch.Tensor, start: int) -> dict[int, int]:
    """Distances from ``start`` by breadth-first search."""
    found, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for other in edge_index[1, edge_index[0] == node].tolist():
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return found


def one_graph(dataset: data.Dataset, which: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The nodes of a graph of a collection, and its edges."""
    graph = dataset.graph
    nodes = (graph.batch == which).nonzero().view(-1)
    return nodes, graph.edge_index[:, graph.batch[graph.edge_index[0]] == which]


@pytest.mark.parametrize("family", FAMILIES)
def test_targets_are_the_distances_that_a_search_finds(family: str) -> None:
    options = {"family": family, "graphs": 6, "nodes": 20, "seed": 3}
    paths, far, wide = (data.load(name, **options) for name in ("shortest-path", "eccentricity", "diameter"))
    for which in range(6):
        nodes, edges = one_graph(paths, which)
        assert is_undirected(edges)
        source = nodes[paths.graph.x[nodes, 0] == 1.0]
        assert len(source) == 1
        found = hops(edges, int(source))
        assert [found[i] for i in nodes.tolist()] == paths.graph.y[nodes].tolist()  # every node is reached
        nodes, edges = one_graph(far, which)
        reach = [max(hops(edges, i).values()) for i in nodes.tolist()]
        assert far.graph.y[nodes].tolist() == reach
        assert wide.graph.y[which] == max(reach)
    assert wide.graph.y.shape == (6,)
    assert paths.num_outputs == far.num_outputs == wide.num_outputs == 1
    assert paths.metric == far.metric == wide.metric == "mae"
    assert paths.homophily is None


def test_a_split_never_cuts_a_graph_in_two() -> None:
    dataset = data.load("shortest-path", graphs=20, nodes=14)
    split = dataset.split(1)
    masks = torch.stack([split.train_mask, split.val_mask, split.test_mask])
    assert bool((masks.sum(0) == 1).all())
    for which in range(20):
        assert int(masks[:, split.batch == which].any(1).sum()) == 1
    shares = [len(split.batch[mask].unique()) for mask in masks]
    assert shares == [12, 4, 4]
    assert not torch.equal(split.train_mask, dataset.split(2).train_mask)
    whole = data.load("diameter", graphs=20, nodes=14).split(1)
    assert [int(mask.sum()) for mask in (whole.train_mask, whole.val_mask, whole.test_mask)] == [12, 4, 4]


def test_ring_transfer_asks_for_the_class_at_the_opposite_node() -> None:
    dataset = data.load("ring-transfer", distance=4, classes=3, graphs=10)
    nodes, edges = one_graph(dataset, 7)
    graph = dataset.graph
    source, target = nodes[graph.x[nodes, 3] == 1.0], nodes[graph.x[nodes, 4] == 1.0]
    assert len(nodes) == 8
    assert hops(edges, int(source))[int(target)] == 4
    assert int(graph.y[target]) == int(graph.x[source, :3].argmax())
    assert int((graph.y[nodes] >= 0).sum()) == 1
    split = dataset.split(1)
    assert [int(m.sum()) for m in (split.train_mask, split.val_mask, split.test_mask)] == [6, 2, 2]


def test_the_same_seed_gives_the_same_collection() -> None:
    one, same, other = (data.load("eccentricity", graphs=6, seed=seed).fingerprint for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("shortest-path", {"family": "lines"}, "did you mean 'line'|line"),
        ("diameter", {"graphs": 2}, "at least 5"),
        ("ring-transfer", {"distance": 1}, "at least 2"),
        ("eccentricity", {"labels_per_class": 1}, "leave it out"),
        ("eccentricity", {"largest_component": True}, "collection"),
    ],
)
def test_bad_options_are_refused_with_the_cure(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        data.load(name, **options)
