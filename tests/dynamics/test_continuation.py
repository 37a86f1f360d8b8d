import networkx as nx
import numpy as np
import pytest

from branches import residual
from dissensus import dynamics
from dissensus.dynamics._continuation import Continuation

KARATE = nx.karate_club_graph()
ZERO = np.zeros((1, 1))


@pytest.mark.slow
def test_krylov_and_direct_solution_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    direct = dynamics.bifurcation(KARATE, input=0.04)
    monkeypatch.setattr("dissensus.dynamics._continuation.DENSE_UP_TO", 0)
    monkeypatch.setattr("dissensus.dynamics._flow.ALL_UP_TO", 0)
    krylov = dynamics.bifurcation(KARATE, input=0.04)
    assert krylov.folds[0].parameter == pytest.approx(direct.folds[0].parameter, abs=1e-8)
    assert residual(krylov, KARATE, input=0.04) < 1e-8
    assert krylov["connected"].z[-1] == pytest.approx(direct["connected"].z[-1], abs=1e-9)


@pytest.mark.slow
def test_a_thousand_agents() -> None:
    graph = nx.barabasi_albert_graph(1000, 3, seed=1)
    found = dynamics.bifurcation(graph, u_max=0.12, step=0.1)
    assert found.points[0].parameter == pytest.approx(
        dynamics.critical_attention(dynamics.as_matrix(graph), ZERO), rel=1e-6
    )
    assert residual(found, graph) < 1e-8


def loop() -> tuple[np.ndarray, dynamics.Bifurcation]:
    """A directed signed graph with a branch that leaves the neutral state and comes back to it."""
    matrix = np.random.default_rng(1023).choice([-1.0, 0.0, 1.0], (8, 8), p=[0.3, 0.4, 0.3])
    np.fill_diagonal(matrix, 0.0)
    return matrix, dynamics.bifurcation(matrix)


@pytest.mark.slow
def test_a_branch_ends_where_it_comes_back_to_the_neutral_state() -> None:
    _, found = loop()
    assert [branch.name for branch in found.branches] == ["neutral", "upper", "lower"]
    first, second = (point.parameter for point in found.points if point.kind == "pitchfork")
    ends = found["upper"].parameter[[0, -1]]
    assert ends.tolist() == pytest.approx([first, second], rel=1e-6)
    assert np.abs(found["upper"].states[-1]).max() < 1e-3


@pytest.mark.slow
def test_a_closed_branch_is_followed_once() -> None:
    matrix, found = loop()
    # A small input parts the loop from the neutral state.
    flow = dynamics.System(matrix, attention=1.0, input=1e-3 * np.random.default_rng(0).normal(size=(8, 1))).flow()
    critical, middle = flow.critical(), len(found["upper"].z) // 2
    curve = Continuation(flow, "attention", critical.weights, critical.attention)
    start = curve.at(-found["upper"].states[middle], found["upper"].parameter[middle])
    assert start is not None
    nodes, problem = curve.follow(start, (0.0, 2.0 * critical.attention))
    assert not problem
    assert len(nodes) < 300
    assert np.abs(nodes[-1].x - start.x).max() < 0.05
    assert max(np.abs(node.x - start.x).max() for node in nodes) > 0.5
