"""What is kept is found by content, and forgotten on request."""

import threading

import torch

from dissensus import runtime
from dissensus.graph import _build, build, features
from dissensus.runtime import Cache, memoized

EDGES = torch.tensor([[0, 1], [1, 0]])


def test_a_result_is_found_by_key_and_content() -> None:
    cache: Cache[str] = Cache(2)
    x = torch.arange(3.0)
    assert cache.put("a", (x, None), "made") == "made"
    assert cache.get("a", (x.clone(), None)) == "made"
    assert cache.get("b", (x, None)) is None
    assert cache.get("a", (x, x)) is None
    x[0] = 7.0
    assert cache.get("a", (x, None)) is None


def test_the_least_recently_used_result_goes_first() -> None:
    cache: Cache[int] = Cache(2)
    for key in range(2):
        cache.put(key, (), key)
    cache.get(0, ())
    cache.put(2, (), 2)
    assert [cache.get(key, ()) for key in range(3)] == [0, None, 2]


def test_reset_forgets_graphs_and_results_of_functions() -> None:
    calls = []

    @memoized(4)
    def double(x: int) -> int:
        calls.append(x)
        return 2 * x

    assert [double(3), double(3)] == [6, 6]
    graph = build(EDGES, 2)
    assert build(EDGES, 2) is graph
    runtime.reset()
    assert build(EDGES, 2) is not graph
    assert double(3) == 6
    assert calls == [3, 3]


def test_reset_forgets_checked_features() -> None:
    x = torch.eye(20)
    sparse = features(x)
    assert features(x) is sparse
    runtime.reset()
    assert features(x) is not sparse


def test_reset_forgets_datasets() -> None:
    from dissensus.train import DataConfig

    config = DataConfig("karate")
    dataset = config.load()
    assert config.load() is dataset
    runtime.reset()
    assert config.load() is not dataset


def test_cache_is_bounded_and_keeps_the_newest() -> None:
    runtime.reset()
    graphs = [torch.tensor([[i], [0]]) for i in range(30)] + [torch.zeros(2, i, dtype=torch.int64) for i in range(9)]
    for edge_index in graphs:
        build(edge_index, 40)
    kept = [known for _, (known,), _ in _build._CACHE.entries]
    assert len(kept) == _build._CACHE.size
    assert any(torch.equal(known, graphs[-1]) for known in kept)


def test_cache_from_many_threads() -> None:
    runtime.reset()
    wrong = []

    def work(seed: int) -> None:
        for i in range(60):
            n = 2 + (i * seed) % 7
            edge_index = torch.stack([torch.arange(n), (torch.arange(n) + seed) % n])
            if build(edge_index, n).num_nodes != n:
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(_build._CACHE.entries) <= _build._CACHE.size
