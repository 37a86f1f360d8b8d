import networkx as nx
import numpy as np

from dissensus import dynamics
from dissensus.dynamics._symmetry import invariant_subspace

STAR = nx.star_graph(4)


def test_the_flow_stays_in_the_subspace() -> None:
    flow = dynamics.System(nx.grid_2d_graph(3, 3), attention=1.0, options=[[0.0, -0.5], [-0.5, 0.0]]).flow()
    x = np.random.default_rng(0).normal(size=(3, 3))
    x = np.stack([(x + x.T).ravel(), -(x + x.T).ravel()], axis=1)  # symmetric over the diagonal, options opposite
    basis = invariant_subspace(flow, x)
    assert basis is not None
    assert basis.shape == (18, 6)
    assert np.allclose(basis.T @ basis, np.eye(6))
    for state in (x, (basis @ np.arange(6.0)).reshape(9, 2)):
        rates = flow.rates(state, 0.7).ravel()
        assert np.allclose(basis @ (basis.T @ rates), rates, atol=1e-13)


def test_equal_opinions_that_hear_different_ones_are_told_apart() -> None:
    path = dynamics.System(nx.path_graph(4), attention=1.0).flow()
    ends_and_middle = invariant_subspace(path, np.ones((4, 1)))
    assert ends_and_middle is not None
    assert ends_and_middle.shape == (4, 2)
    uneven = dynamics.System(nx.path_graph(4), attention=1.0, damping=[1.0, 1.0, 1.0, 2.0]).flow()
    assert invariant_subspace(uneven, np.ones((4, 1))) is None


def test_opposite_opinions_are_one_class_without_input_alone() -> None:
    x = np.array([0.0, 1.0, 1.0, -1.0, -1.0])[:, None]
    free = invariant_subspace(dynamics.System(STAR, attention=1.0).flow(), x)
    assert free is not None
    assert free.shape == (5, 1)  # the centre hears nothing and stays neutral
    driven = invariant_subspace(dynamics.System(STAR, attention=1.0, input=0.1).flow(), x)
    assert driven is not None
    assert driven.shape == (5, 3)
