from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from dissensus import dynamics
from dissensus.errors import InputError

GRID = nx.to_numpy_array(nx.grid_2d_graph(4, 4))
KARATE = nx.karate_club_graph()
ZERO = np.zeros((1, 1))


@pytest.mark.slow
def test_hysteresis_of_one_agent_matches_the_formula() -> None:
    # s = d y - tanh(u m y) turns where sech^2(u m y) = d/(u m).
    d, m, u = 1.0, 2.0, 0.8
    found = dynamics.hysteresis(ZERO, u=u, self_reinforcement=m, s_max=0.5)
    y = np.arccosh(np.sqrt(u * m / d)) / (u * m)
    jump = abs(d * y - np.tanh(u * m * y))
    assert [point.parameter for point in found.folds] == pytest.approx([jump, -jump], abs=1e-9)
    assert found.width == pytest.approx(2 * jump, abs=1e-9)
    # The sweeps jump at the first strength beyond the fold.
    assert np.array_equal(found.up > 0, found.strength > jump)
    assert np.array_equal(found.down < 0, found.strength < -jump)
    assert np.allclose(found.branch.parameter, d * found.branch.z - np.tanh(u * m * found.branch.z), atol=1e-9)


@pytest.mark.slow
def test_hysteresis_of_a_network_closes_below_the_critical_attention() -> None:
    above, below = (dynamics.hysteresis(KARATE, u=r * 0.0440770069, steps=21, s_max=0.3) for r in (1.5, 0.9))
    assert above.width > 0.05
    assert bool((above.down >= above.up - 1e-6).all())
    assert (above.down - above.up).max() > 0.3
    assert below.width == 0.0
    assert np.allclose(below.up, below.down, atol=1e-6)


@pytest.mark.parametrize("wrong", [{"u": -1.0}, {"steps": 1}, {"s_max": 0.0}])
def test_bad_sweeps_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        dynamics.hysteresis(GRID, **wrong)
    with pytest.raises(InputError, match="s_max"):
        dynamics.hysteresis(nx.path_graph(3), input=np.zeros(3))


def test_the_sweep_reaches_an_input_as_strong_as_saturated_opinions() -> None:
    # However little of the input the critical direction sees: here nothing.
    for pattern, strongest in (([1.0, 1.0, 1.0], 1.0), ([2.0, 0.0, -2.0], 0.75)):
        found = dynamics.hysteresis(nx.cycle_graph(3), input=np.array(pattern), steps=3)
        assert found.strength.tolist() == pytest.approx([-strongest, 0.0, strongest])


@pytest.mark.slow
def test_the_width_over_many_folds_is_where_the_sweeps_differ() -> None:
    # The branch of this signed graph folds ten times; its first and last fold say nothing of the loop.
    matrix = np.triu(np.random.default_rng(5).choice([-1, 0, 1], size=(12, 12)), 1)
    found = dynamics.hysteresis(matrix + matrix.T, self_reinforcement=0.0, s_max=3.0, steps=61)
    assert len(found.folds) > 2
    apart = found.strength[np.abs(found.up - found.down) > 1e-6]
    assert found.width == pytest.approx(np.ptp(apart))
    assert found.width > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "signs"])
def test_hysteresis_of_random_signed_graphs(kind: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        matrix = np.triu(rng.normal(size=(12, 12)) if kind == "normal" else rng.choice([-1, 0, 1], size=(12, 12)), 1)
        matrix = matrix + matrix.T
        found = dynamics.hysteresis(matrix, self_reinforcement=0.0, steps=11)
        assert found.width >= 0.0
        # The upper sweep is where the flow goes.
        ones = found.strength[-1] * np.ones(12)
        given = {"attention": found.attention, "self_reinforcement": 0.0, "input": ones}
        assert dynamics.equilibrium(matrix, found.branch.states[-1], **given).stable


def test_a_loop_is_drawn(tmp_path: Path) -> None:
    found = dynamics.hysteresis(nx.path_graph(3), steps=11)
    axes = found.plot(tmp_path / "loop.png").axes[0]
    assert axes.get_xlabel() == "input strength s"
    assert axes.get_xlim()[0] == pytest.approx(-found.strength[-1])
    assert {text.get_text() for text in axes.get_legend().get_texts()} >= {"up", "down", "fold"}
