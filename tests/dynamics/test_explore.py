import networkx as nx
import numpy as np
import pytest

from branches import residual
from dissensus import dynamics


@pytest.mark.slow
def test_diagrams_hold_the_stable_equilibria_of_random_signed_systems() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        matrix = rng.normal(size=(8, 8))
        matrix = matrix + matrix.T
        u = 2.0 * float(dynamics.System(matrix).attention)
        diagram = dynamics.bifurcation(matrix, u_max=u)
        ends = [
            branch.states[k]
            for branch in diagram.branches
            for k in (0, -1)
            if branch.parameter[k] == u  # exact
        ]
        for state in dynamics.basins(matrix, attention=u, runs=10).states:
            assert min(np.abs(state - end).max() for end in ends) < 1e-3, seed


@pytest.mark.slow
def test_kernels_of_several_dimensions_are_switched() -> None:
    # Four agents that all disagree: one against three (8), two against two (6), one against another (12).
    found = dynamics.bifurcation(-nx.to_numpy_array(nx.complete_graph(4)), u_max=0.6)
    assert (found.points[0].dimension, found.points[0].criticality) == (3, "supercritical")
    ends = np.array([branch.states[1].ravel() / np.abs(branch.states[1]).max() for branch in found.branches[1:]])
    kinds = {tuple(np.sort(np.round(np.abs(end), 1))) for end in ends}
    assert {(1.0, 1.0, 1.0, 1.0), (0.3, 0.3, 0.3, 1.0)} <= kinds
    assert residual(found, -nx.to_numpy_array(nx.complete_graph(4))) < 1e-8


@pytest.mark.parametrize(("agents", "first"), [(5, 20), (7, 28), (9, 36)])
def test_odd_rings_that_disagree_keep_all_branches(agents: int, first: int) -> None:
    # The rotations and the change of signs act on the kernel as the symmetry of a regular polygon of 2 n corners: with
    # 2 n branches through corners and 2 n through edges, which differ at order 2 n - 1 alone.
    ring = -nx.to_numpy_array(nx.cycle_graph(agents))
    found = dynamics.bifurcation(ring, u_max=1.2 * dynamics.critical_attention(ring))  # no warning: all are complete
    assert [(point.kind, point.dimension) for point in found.points] == [("pitchfork", 2)]
    assert len(found.branches) == 1 + first
    assert all(branch.parameter[-1] == found["neutral"].parameter[-1] for branch in found.branches)
    ends = np.array([branch.states[-1].ravel() for branch in found.branches[1:]])
    assert len(np.unique(ends.round(6), axis=0)) == first
    assert residual(found, ring) < 1e-10
    # Every one is fixed by a reflection, up to the change of signs.
    for end in ends:
        images = [sign * np.roll(end[::-1], shift) for shift in range(agents) for sign in (1.0, -1.0)]
        assert min(np.abs(end - image).max() for image in images) < 1e-9
