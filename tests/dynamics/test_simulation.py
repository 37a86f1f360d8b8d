import networkx as nx
import numpy as np
import pytest

from dissensus import dynamics


@pytest.mark.slow
def test_a_limit_cycle_is_oscillating_at_any_end() -> None:
    ring = -nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))
    for end in (20.0, 23.0, 31.0):
        found = dynamics.simulate(ring, np.array([0.5, 0.0, -0.1]), attention=2.0, time=end)
        assert found.summary().verdict == "oscillating"


def test_outcomes_are_the_verdicts_of_the_runs() -> None:
    ring = -nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))
    starts = np.array([[[0.5], [0.0], [-0.1]], [[0.0], [0.0], [0.0]], [[0.2], [-0.3], [0.1]]])
    found = dynamics.simulate(ring, starts, attention=2.0, time=20.0)
    verdicts = [found.run(k).summary() for k in range(3)]
    assert [v.verdict for v in verdicts] == ["oscillating", "consensus", "oscillating"]
    assert [v.settled for v in verdicts] == [False, True, False]
    assert found.outcomes() == {"oscillating": 2, "consensus": 1}
    assert str(found) == "3 runs of the nonlinear model: oscillating 2, consensus 1"


KARATE = nx.to_numpy_array(nx.karate_club_graph())


def test_regimes_of_attention_and_input() -> None:
    grid = nx.grid_2d_graph(4, 4)
    x = np.random.default_rng(0).uniform(-1, 1, 16) + 0.3
    u = float(dynamics.System(grid).attention)
    below = dynamics.simulate(grid, x, attention=0.6 * u, time=80).summary()
    above = dynamics.simulate(grid, x, attention=1.5 * u, time=80).summary()
    driven = dynamics.simulate(grid, x, attention=u, input=0.3 * x, time=80).summary()
    assert (below.verdict, below.neutral) == ("consensus", True)
    assert (above.verdict, above.neutral) == ("dissensus", False)
    assert above.mean[0] > 0.5
    assert driven.verdict == "dissensus"
    assert driven.variance[0] > 2 * above.variance[0]


CAMPS = np.outer([1.0] * 4 + [-1.0] * 4, [1.0] * 4 + [-1.0] * 4) * (np.arange(64).reshape(8, 8) % 3 + 1.0)
FADING = {
    "grid": (nx.grid_2d_graph(4, 4), {}),
    "karate, three options": (nx.karate_club_graph(), {"options": 3}),
    "opposed options": (nx.cycle_graph(6), {"options": np.array([[0.0, -0.5], [-0.5, 0.0]])}),
    "directed": (nx.gnp_random_graph(20, 0.2, seed=2, directed=True), {"saturation": "arctan"}),
    "separate": (nx.disjoint_union(nx.path_graph(4), nx.complete_graph(4)), {"saturation": "softsign"}),
    "one agent": (np.zeros((1, 1)), {}),
    "signed": (CAMPS + CAMPS.T, {"damping": 0.7}),
    "signed, normalised": (CAMPS + CAMPS.T, {"normalize": True}),
    "every agent its own": (nx.path_graph(9), {"damping": np.linspace(0.5, 1.5, 9)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FADING)
def test_at_the_critical_attention_opinions_fade_as_below_it(name: str) -> None:
    graph, parameters = FADING[name]
    u = float(dynamics.System(graph, **parameters).attention)
    for ratio in (0.0, 0.5, 0.99, 1.0, 1.0 + 1e-12, 1.1, 2.0):
        # Short: the limit, not the state, tells them apart.
        found = dynamics.simulate(graph, attention=ratio * u, time=20.0, seed=3, **parameters)
        summary = found.summary()
        assert summary.neutral == (ratio <= 1.0 + 1e-12)
        assert not summary.neutral or summary.verdict == "consensus"
        assert summary.spread == pytest.approx(np.ptp(found.final.numpy(), axis=0).tolist())
    # From the critical direction, in which they fade most slowly.
    start = dynamics.System(graph, **parameters).flow().critical().direction
    start = start / np.abs(start).max()
    sizes = dynamics.simulate(graph, start, attention=u, times=[50.0, 500.0], **parameters).states.abs().amax((1, 2))
    assert sizes[1] < 0.4 * sizes[0]


@pytest.mark.slow
def test_chains_at_the_critical_attention_fade_more_slowly_than_any_simulation_shows() -> None:
    # Of two agents the second tends to the cube root of the first: t^(-1/6).
    chain = nx.path_graph(2, create_using=nx.DiGraph)
    sizes = dynamics.simulate(chain, np.ones(2), times=[1e3, 1e4, 1e5]).states[:, :, 0].log10().diff(dim=0)
    assert sizes[-1].tolist() == pytest.approx([-1 / 2, -1 / 6], abs=0.01)
    found = dynamics.simulate(nx.path_graph(6, create_using=nx.DiGraph), np.ones(6), time=1e4).summary()
    assert found.spread[0] > 0.9
    assert (found.verdict, found.neutral) == ("consensus", True)


RING = -2.0 * nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))  # oscillates above u* = 1/2


def test_the_verdict_is_that_of_the_limit() -> None:
    # Below u* the oscillation dies out, however little of that the last state shows.
    found = dynamics.simulate(RING, np.array([0.3, 0.1, -0.2]), attention=0.45, time=20.0)
    assert str(found.summary()) == "fading to neutral consensus"
    assert found.limit.abs().max() < 1e-3 < found.final.abs().max()
    # Above it, opinions on the way from nearly nothing have no verdict yet but that of where they go.
    graph = nx.path_graph(4)
    u = 2.0 * dynamics.critical_attention(graph)
    short, long = (dynamics.simulate(graph, np.full(4, 1e-3), attention=u, time=end) for end in (2.0, 100.0))
    assert (str(short.summary()), short.summary().settled) == ("on the way to dissensus", False)
    assert (str(long.summary()), long.summary().settled) == ("dissensus", True)
    assert np.allclose(short.limit, long.final, atol=1e-4)


def test_a_chain_on_its_way_to_consensus() -> None:
    found = dynamics.simulate(nx.path_graph(20), np.arange(20.0), model="consensus", time=1.0)
    assert (found.summary().verdict, found.summary().settled) == ("consensus", False)
    assert np.allclose(found.limit, 9.5, atol=0.05)


def test_with_noise_nothing_fades() -> None:
    found = dynamics.simulate(nx.path_graph(4), noise=0.3, time=20.0)
    assert found.system is not None
    assert found.system.fades()
    assert not found.summary().neutral
    assert found.limit.equal(found.final)


@pytest.mark.slow
def test_no_run_that_passes_a_saddle_is_taken_for_a_cycle() -> None:
    graph = nx.watts_strogatz_graph(30, 4, 0.2, seed=0)
    u = 1.5 * dynamics.critical_attention(graph)
    starts = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 30, 1))
    one_way = dynamics.as_matrix(graph) + np.triu(np.full((30, 30), 1e-9), 1)  # without a Lyapunov function
    for end in (3.0, 10.0):
        assert "oscillating" not in dynamics.simulate(one_way, starts, attention=u, times=[0.0, end]).outcomes()


@pytest.mark.slow
def test_what_need_not_fade_is_judged_by_its_last_state() -> None:
    path, signed = nx.path_graph(5), np.random.default_rng(0).standard_normal((6, 6))
    assert dynamics.System(path).fades()
    for graph, parameters in ((path, {"input": 0.1}), (path, {"saturation": "linear"}), (signed, {})):
        assert not dynamics.System(graph, **parameters).fades()
    # Linear opinions at u* keep to the critical direction, which is no consensus on a path.
    assert dynamics.simulate(path, np.ones(5), saturation="linear").summary().verdict == "dissensus"
    large = nx.barabasi_albert_graph(600, 2, seed=0)
    assert dynamics.System(large).fades()
    assert dynamics.System(large, attention=0.0).fades()
    assert not dynamics.System(large, attention=1.000001 * float(dynamics.System(large).attention)).fades()


def test_statistics_over_time() -> None:
    found = dynamics.simulate(KARATE, options=2, attention=0.01, times=[0.0, 1.0, 5.0])
    assert found.states.shape == (3, 34, 2)
    assert found.mean.allclose(found.states.mean(1))
    assert np.allclose(found.variance.numpy(), found.states.numpy().var(axis=1))
    assert found.summary().spread == pytest.approx(np.ptp(found.final.numpy(), axis=0).tolist())
