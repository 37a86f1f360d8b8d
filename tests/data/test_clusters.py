"""Partitions of the nodes and batches of clusters."""

import sys
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dissensus import data
from dissensus.errors import InputError, MissingExtraError

METHODS = [
    "greedy",
    pytest.param(
        "metis", marks=pytest.mark.skipif(find_spec("pymetis") is None, reason="the extra 'partition' is missing")
    ),
]


def blocks(nodes=600, classes=6, **options):
    return data.csbm(nodes=nodes, classes=classes, homophily=0.9, features=4, **options).split(1)


def share_cut(edge_index, part):
    return float((part[edge_index[0]] != part[edge_index[1]]).double().mean())


@pytest.mark.parametrize("method", METHODS)
def test_a_partition_is_balanced_repeatable_and_cuts_few_edges(method):
    graph = blocks()
    part = data.partition(graph.edge_index, 600, 6, seed=3, method=method)
    assert part.shape == (600,)
    assert part.dtype == torch.int64
    sizes = part.bincount(minlength=6)
    assert len(sizes) == 6
    assert 0.9 * 100 <= int(sizes.min()) <= int(sizes.max()) <= 1.1 * 100
    # Six blocks with a tenth of the edges between them; at random five sixths would be cut.
    assert share_cut(graph.edge_index, part) < 0.25
    assert torch.equal(part, data.partition(graph.edge_index, 600, 6, seed=3, method=method))


def test_the_seed_of_the_greedy_partition_matters():
    graph = blocks(degree=4.0)
    first, second = (data.partition(graph.edge_index, 600, 10, seed=seed) for seed in (1, 2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=20)
@given(nodes=st.integers(1, 40), share=st.floats(0.0, 1.0), edges=st.integers(0, 80), seed=st.integers(0, 100))
@pytest.mark.slow
def test_any_graph_falls_into_as_many_clusters_as_asked_for(method, nodes, share, edges, seed):
    parts = max(1, round(share * nodes))
    edge_index = torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(seed))
    part = data.partition(edge_index, nodes, parts, seed=seed, method=method)
    sizes = part.bincount(minlength=parts)
    assert (len(part), len(sizes)) == (nodes, parts)
    assert int(sizes.min()) >= 1
    if method == "greedy":
        assert int(sizes.max()) <= -(-1.05 * nodes // parts)


def test_directions_loops_and_duplicates_do_not_matter():
    edges = blocks().edge_index
    once = edges[:, edges[0] < edges[1]]
    loops = torch.arange(600).repeat(2, 1)
    expected = data.partition(edges, 600, 6)
    assert torch.equal(data.partition(once, 600, 6), expected)
    assert torch.equal(data.partition(torch.cat([edges, edges, loops], 1), 600, 6), expected)


def test_every_node_is_in_one_batch_and_every_inner_edge_too():
    graph = blocks()
    graph.edge_attr = torch.arange(graph.num_edges).float()
    batches = data.clusters(graph, 12, batch_clusters=5, seed=1)
    found = list(batches)
    assert len(found) == len(batches) == 3
    assert torch.equal(torch.cat([batch.n_id for batch in found]).sort().values, torch.arange(600))
    group = torch.empty(600, dtype=torch.long)
    for number, batch in enumerate(found):
        group[batch.n_id] = number
        for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
            assert torch.equal(batch[key], graph[key][batch.n_id])
        assert batch.validate()
    # Exactly the edges whose two ends are in one batch, with their attributes.
    inner = (group[graph.edge_index[0]] == group[graph.edge_index[1]]).nonzero().view(-1)
    kept = torch.cat([batch.edge_attr for batch in found]).long()
    assert torch.equal(kept.sort().values, inner)
    ends = torch.cat([batch.n_id[batch.edge_index] for batch in found], 1)
    assert torch.equal(ends, graph.edge_index[:, kept])


def test_clusters_are_whole_and_grouped_anew_in_every_pass():
    graph = blocks()
    batches, again = (data.clusters(graph, 12, batch_clusters=3, seed=7) for _ in range(2))
    passes = [[batch.n_id for batch in batches] for _ in range(2)]
    for batch in passes[0]:
        members = batches.part[batch].unique()
        assert len(members) == 3
        assert len(batch) == int(torch.isin(batches.part, members).sum())
    assert any(not torch.equal(a, b) for a, b in zip(*passes, strict=True))
    assert all(torch.equal(a, b.n_id) for a, b in zip(passes[0], again, strict=True))


def test_workers_share_the_batches_of_one():
    graph = blocks()
    one = [batch.n_id for batch in data.clusters(graph, 8, batch_clusters=2, seed=5)]
    shares = [data.clusters(graph, 8, batch_clusters=2, seed=5, rank=rank, workers=2) for rank in range(2)]
    assert [len(share) for share in shares] == [2, 2]
    mixed = [batch.n_id for pair in zip(*shares, strict=True) for batch in pair]
    assert all(torch.equal(a, b) for a, b in zip(one, mixed, strict=True))


def test_wrong_arguments_are_refused():
    graph = blocks(nodes=60, degree=4.0)
    for parts in (0, 61, 2.5):
        with pytest.raises(InputError, match="from 1 to 60"):
            data.partition(graph.edge_index, 60, parts)
    with pytest.raises(InputError, match="did you mean 'metis'"):
        data.partition(graph.edge_index, 60, 2, method="mets")
    for size in (0, 5):
        with pytest.raises(InputError, match="from 1 to 4"):
            data.clusters(graph, 4, batch_clusters=size)
    with pytest.raises(InputError, match="5 batches, which 2 workers cannot share evenly"):
        data.clusters(graph, 5, workers=2)
    with pytest.raises(InputError, match="give a rank from 0 to"):
        data.clusters(graph, 4, rank=2, workers=2)


def test_without_metis_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dissensus\[partition\]'"):
        data.partition(torch.zeros(2, 0, dtype=torch.long), 4, 2, method="metis")


def test_a_graph_without_edges_is_split_evenly():
    graph = Data(x=torch.ones(10, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert [batch.num_nodes for batch in data.clusters(graph, 5)] == [2] * 5
