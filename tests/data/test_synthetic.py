import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import data
from dissensus.errors import InputError


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    nodes=st.integers(100, 400),
    classes=st.integers(1, 6),
    homophily=st.floats(0, 1),
    degree=st.floats(0, 6),
    seed=st.integers(0, 1000),
)
def test_csbm_has_the_homophily_and_degree_asked_for(
    nodes: int, classes: int, homophily: float, degree: float, seed: int
) -> None:
    if classes == 1:
        homophily = 1.0
    dataset = data.load("csbm", nodes=nodes, classes=classes, homophily=homophily, degree=degree, seed=seed)
    graph = dataset.graph
    assert graph.num_edges == 2 * round(nodes * degree / 2)
    assert not graph.has_self_loops()
    assert graph.is_undirected()
    assert graph.is_coalesced()
    if graph.num_edges:
        assert dataset.homophily == pytest.approx(homophily, abs=1 / graph.num_edges + 1e-12)
    sizes = graph.y.bincount(minlength=classes)
    assert int(sizes.max() - sizes.min()) <= 1


def test_csbm_features_are_class_means_plus_noise() -> None:
    exact = data.load("csbm", nodes=90, noise=0.0, features=5, classes=3).graph
    means = {tuple(row) for row in exact.x.tolist()}
    assert len(means) == 3
    assert torch.allclose(exact.x.norm(dim=1), torch.ones(90))
    noisy = data.load("csbm", nodes=20_000, noise=0.5, features=5, classes=2, degree=1.0).graph
    for c in range(2):
        assert torch.allclose(noisy.x[noisy.y == c].std(dim=0), torch.full((5,), 0.5), atol=0.02)


def test_csbm_repeats_by_seed_and_hides_the_class_in_no_order() -> None:
    one, same, other = (data.load("csbm", nodes=200, seed=seed) for seed in (4, 4, 5))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert not torch.equal(one.graph.y, one.graph.y.sort().values)


def test_csbm_of_many_nodes_is_drawn_at_once() -> None:
    dataset = data.load("csbm", nodes=200_000, features=4, degree=8.0, homophily=0.3, classes=5)
    assert dataset.graph.num_edges == 1_600_000
    assert dataset.homophily == pytest.approx(0.3, abs=1e-6)
    degrees = np.bincount(dataset.graph.edge_index[0].numpy(), minlength=200_000)
    # Uniform ends make binomial degrees, whose variance is close to their mean.
    assert degrees.var() == pytest.approx(8.0, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 1}, "nodes is 1: give an integer of at least 2"),
        ({"nodes": 10.5}, "nodes is 10.5"),
        ({"classes": 0}, "classes is 0"),
        ({"features": "many"}, "features is 'many'"),
        ({"seed": -1}, "seed is -1"),
        ({"nodes": 3, "classes": 4}, "at least one node per class"),
        ({"homophily": 1.2}, "homophily is 1.2: give a number from 0 to 1"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"degree": float("inf")}, "degree is inf"),
        ({"nodes": 20, "degree": 19.0}, "at most half of the 40 pairs can be used: reduce the degree"),
        ({"classes": 1, "homophily": 0.5}, "different classes are needed, but at most half of the 0 pairs"),
    ],
)
def test_csbm_refuses_what_it_cannot_draw(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        data.load("csbm", **options)


@pytest.mark.slow
def test_arxiv_synthetic_has_the_sizes_of_arxiv_and_heavy_tails() -> None:
    dataset = data.load("arxiv-synthetic")
    graph = dataset.graph
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (169_343, 2 * 1_166_243, 128)
    assert dataset.num_classes == 40
    assert "OGB's sizes" in dataset.protocol
    split = dataset.split(0)
    masks = (split.train_mask, split.val_mask, split.test_mask)
    assert [int(mask.sum()) for mask in masks] == [90_941, 29_799, 48_603]
    assert bool(sum(mask.int() for mask in masks).eq(1).all())
    degrees = graph.edge_index[0].bincount(minlength=graph.num_nodes)
    assert int(degrees.max()) > 50 * float(degrees.double().mean())
    assert dataset.homophily == pytest.approx(0.65, abs=1e-6)


def test_arxiv_synthetic_refuses_a_wrong_seed() -> None:
    with pytest.raises(InputError, match="seed is -1"):
        data.load("arxiv-synthetic", seed=-1)
