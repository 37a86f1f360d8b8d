"""Rewiring against PyG's GDC, its cache, and its limits."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import GDC

from dissensus.errors import InputError
from dissensus.graph import rewire
from dissensus.runtime import Cache

N = 50


def weighted(directed: bool) -> tuple[Tensor, Tensor]:
    """A random graph with random weights, so that no two entries of the diffusion tie."""
    generator = torch.Generator().manual_seed(3)
    weights = torch.rand(N, N, generator=generator) + 0.1
    weights = weights * (torch.rand(N, N, generator=generator) < 0.06)
    if not directed:
        weights = weights + weights.t()
    edge_index = weights.nonzero().t().contiguous()
    return edge_index, weights[edge_index[0], edge_index[1]]


def dense(edge_index: Tensor, weight: Tensor, n: int = N) -> Tensor:
    return torch.zeros(n, n).index_put((edge_index[0], edge_index[1]), weight, accumulate=True)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("restart", [0.05, 0.3])
@pytest.mark.parametrize("neighbors", [4, 1000])
def test_it_is_the_diffusion_of_pyg(directed: bool, restart: float, neighbors: int) -> None:
    edge_index, weight = weighted(directed)
    reference = GDC(
        self_loop_weight=1.0,
        normalization_in="sym",
        normalization_out="col",
        diffusion_kwargs={"method": "ppr", "alpha": restart},
        sparsification_kwargs={"method": "topk", "k": neighbors, "dim": 0},
    )(Data(edge_index=edge_index, edge_attr=weight, num_nodes=N))
    found = dense(*rewire(edge_index, N, weight, neighbors=neighbors, restart=restart))
    expected = dense(reference.edge_index, reference.edge_attr)
    torch.testing.assert_close(found, expected, atol=3e-4, rtol=0.0)
    torch.testing.assert_close(found.sum(0), torch.ones(N))
    assert int((found > 0).sum(0).max()) <= neighbors


def test_without_weights_every_edge_weighs_one() -> None:
    edge_index, weight = weighted(directed=False)
    plain = dense(*rewire(edge_index, N, neighbors=1000))
    torch.testing.assert_close(plain, dense(*rewire(edge_index, N, torch.ones_like(weight), neighbors=1000)))
    assert not torch.allclose(plain, dense(*rewire(edge_index, N, weight, neighbors=1000)))


def test_components_stay_apart_and_lonely_nodes_keep_themselves() -> None:
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    found = dense(*rewire(edge_index, 5), n=5)
    assert float(found[:2, 2:].abs().sum() + found[2:, :2].abs().sum()) == 0.0
    assert float(found[4, 4]) == 1.0
    assert float(found[4, :4].sum() + found[:4, 4].sum()) == 0.0


def test_a_graph_is_rewired_once_and_again_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from dissensus.graph import _rewire

    calls = []
    sparse_pagerank = _rewire._sparse_pagerank
    monkeypatch.setattr(_rewire, "_sparse_pagerank", lambda *a: calls.append(1) or sparse_pagerank(*a))
    _rewire._CACHE.clear()
    edge_index, weight = weighted(directed=False)
    first = rewire(edge_index, N, weight)
    again = rewire(edge_index.clone(), N, weight.clone())
    assert len(calls) == 1
    assert again[0] is first[0]
    weight[0] += 1.0  # in place: the cache must see it
    assert not torch.equal(rewire(edge_index, N, weight)[1], first[1])
    rewire(edge_index, N)
    rewire(edge_index, N, restart=0.2)
    rewire(edge_index[:, 1:].contiguous(), N)
    assert len(calls) == 5
    assert len(_rewire._CACHE.entries) <= _rewire._CACHE.size
    Cache.clear_all()
    assert not _rewire._CACHE.entries


def test_no_nodes_and_no_edges() -> None:
    empty = torch.empty(2, 0, dtype=torch.int64)
    assert rewire(empty, 0)[0].shape == (2, 0)
    edge_index, weight = rewire(empty, 3)
    assert edge_index.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert weight.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "word"),
    [({"neighbors": 0}, "at least 1"), ({"restart": 0.0}, "restart"), ({"restart": 1.0}, "restart")],
)
def test_bad_options_are_refused(options: dict[str, float], word: str) -> None:
    with pytest.raises(InputError, match=word):
        rewire(torch.tensor([[0], [1]]), 2, **options)


def test_two_thousand_nodes_take_seconds() -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 2000, (2, 5000), generator=generator)
    start = time.perf_counter()
    edge_index, _ = rewire(torch.cat([edges, edges.flip(0)], 1), 2000)
    assert time.perf_counter() - start < 20.0
    assert edge_index.shape[1] <= 2000 * 64
