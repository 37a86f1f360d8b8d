import networkx as nx
import numpy as np
import pytest

from branches import residual
from dissensus import dynamics

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
