import networkx as nx
import numpy as np
import pytest
import torch

from dissensus import dynamics

GRAPH = nx.watts_strogatz_graph(12, 4, 0.2, seed=0)
OPTIONS = np.array([[0.0, -0.5], [-0.3, 0.0]])


def test_symmetric_networks_are_known_to_settle() -> None:
    assert dynamics.System(GRAPH).settles()
    assert dynamics.System(GRAPH, normalize=True, options=3).settles()
    assert dynamics.System(GRAPH, form="opinions", damping=np.linspace(0.5, 1.0, 12)).settles()
    for given in ({"damping": np.linspace(0.5, 1.0, 12)}, {"saturation": torch.tanh}, {"options": OPTIONS}):
        assert not dynamics.System(GRAPH, **given).settles()


KARATE = nx.to_numpy_array(nx.karate_club_graph())


def test_self_loops_give_the_matrix_form() -> None:
    rng = np.random.default_rng(3)
    a, o, x = rng.random((5, 5)), rng.random((2, 2)), rng.normal(size=(5, 2))
    system = dynamics.System(a, o, attention=0.3, self_reinforcement=2.0, self_loops=True)
    expected = -x + np.tanh(0.3 * (x + (a + np.eye(5)) @ x @ (o + np.eye(2)).T))
    assert np.allclose(system.field()(0.0, torch.from_numpy(x)).numpy(), expected, atol=1e-14)


def test_attention_defaults_to_the_critical_one() -> None:
    expected = dynamics.critical_attention(KARATE, np.zeros((1, 1)), 0.8, 0.5)
    system = dynamics.System(KARATE, damping=0.8, self_reinforcement=0.5)
    assert system.attention == pytest.approx(expected, rel=1e-10)
