from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq

from branches import residual
from dissensus import dynamics
from dissensus.errors import InputError

GRID = nx.to_numpy_array(nx.grid_2d_graph(4, 4))
KARATE = nx.karate_club_graph()
CYCLE = nx.cycle_graph(8)
ZERO = np.zeros((1, 1))


@pytest.mark.parametrize("graph", [nx.grid_2d_graph(4, 4), KARATE, nx.star_graph(6)])
@pytest.mark.slow
def test_pitchfork_is_where_critical_attention_says(graph: nx.Graph) -> None:
    found = dynamics.bifurcation(graph, damping=0.8, self_reinforcement=0.5)
    matrix = dynamics.as_matrix(graph)
    expected = dynamics.critical_attention(matrix, ZERO, 0.8, 0.5)
    point = found.points[0]
    assert (point.kind, point.criticality) == ("pitchfork", "supercritical")
    assert point.parameter == pytest.approx(expected, rel=1e-8)
    assert [branch.name for branch in found.branches][:3] == ["neutral", "upper", "lower"]
    assert residual(found, graph, damping=0.8, self_reinforcement=0.5) < 1e-8


@pytest.mark.slow
def test_stability_flips_at_the_pitchfork() -> None:
    found = dynamics.bifurcation(GRID)
    neutral = found["neutral"]
    assert not neutral.states.any()
    assert np.array_equal(neutral.stable, neutral.parameter <= found.critical * (1 + 1e-6))
    assert found["upper"].stable.all()
    assert found["lower"].stable.all()
    assert neutral.parameter[[0, -1]].tolist() == [0.0, 2 * found.critical]


def test_prongs_mirror_each_other_and_leave_along_the_critical_direction() -> None:
    found = dynamics.bifurcation(KARATE)
    upper, lower = found["upper"], found["lower"]
    assert np.allclose(upper.parameter, lower.parameter, atol=1e-9)
    assert np.allclose(upper.states, -lower.states, atol=1e-8)
    first = upper.states[1]
    assert np.allclose(first / upper.z[1], found.direction, atol=0.02)
    assert upper.z[0] == 0.0
    assert bool((np.diff(upper.z) > 0).all())
    # z is the average weighted by the left eigenvector.
    values, vectors = np.linalg.eig(nx.to_numpy_array(KARATE).T)
    left = vectors[:, values.real.argmax()].real
    assert np.allclose(found.weights[:, 0], left / left.sum(), atol=1e-9)
    assert float((found.weights * found.direction).sum()) == pytest.approx(1.0)


@pytest.mark.slow
def test_reported_eigenvalues_are_those_of_the_jacobian() -> None:
    found = dynamics.bifurcation(GRID, input=0.05)
    for branch in found.branches:
        for u, x, value in list(zip(branch.parameter, branch.states, branch.eigenvalues, strict=True))[::15]:
            exact = dynamics.stability(GRID, x, attention=float(u), input=0.05).eigenvalues[0]
            assert value == pytest.approx(exact, abs=1e-7)


def fold(d: float, m: float, b: float) -> tuple[float, float]:
    """The fold of the unfolded branch for b > 0, from du/dy = 0."""

    def slope(y: float) -> float:
        t = d * y - b
        return d * m * y / (1.0 - t * t) - m * np.arctanh(t)

    y = brentq(slope, (-1.0 + b) / d + 1e-12, -1e-9)
    return np.arctanh(d * y - b) / (m * y), y


@pytest.mark.parametrize(("d", "alpha", "b"), [(1.0, 1.0, 0.05), (0.5, 0.3, 0.02), (2.0, 2.0, 0.1)])
@pytest.mark.slow
def test_unfolded_fold_of_one_agent_matches_the_formula(d: float, alpha: float, b: float) -> None:
    found = dynamics.bifurcation(ZERO, damping=d, self_reinforcement=alpha, input=b)
    (point,) = found.folds
    u, y = fold(d, alpha, b)
    assert point.parameter == pytest.approx(u, abs=1e-8)
    assert point.z == pytest.approx(y, abs=1e-5)
    for branch in found.branches:
        moved = branch.parameter > 0
        y = branch.z[moved]
        assert np.allclose(branch.parameter[moved], np.arctanh(d * y - b) / (alpha * y), atol=1e-8)
    assert [branch.name for branch in found.branches] == ["connected", "disconnected"]
    assert found["connected"].stable.all()
    broken = found["disconnected"]
    turn = int(broken.parameter.argmin())
    assert broken.stable[: turn + 1].all()
    assert not broken.stable[turn + 1 :].any()


@pytest.mark.parametrize("b", [0.0, 0.04])
def test_regular_graphs_reduce_exactly(b: float) -> None:
    # Right-stochastic matrices and equal inputs: consensus is invariant, and m = alpha + 3.
    options = np.full((2, 2), 0.5)
    parameters = {"options": options, "normalize": True, "self_loops": True, "damping": 0.7, "input": b}
    found = dynamics.bifurcation(CYCLE, max_branches=2 if b else 3, **parameters)
    assert found.critical == pytest.approx(0.7 / 4.0)
    assert found.reduced is not None
    assert found.reduced.critical == pytest.approx(found.critical)
    assert np.allclose(found.direction, 1.0)
    for full, one in zip(found.branches, found.reduced.branches, strict=True):
        assert full.name == one.name
        if full.name == "disconnected":
            full_part, one_part = (branch.stable & (np.arange(len(branch.z)) < 15) for branch in (full, one))
        else:
            full_part, one_part = (np.ones(len(branch.z), dtype=bool) for branch in (full, one))
        assert np.ptp(full.states[full_part].reshape(full_part.sum(), -1), axis=1).max() < 1e-7
        ascending = np.argsort(one.parameter[one_part])
        between = np.interp(full.parameter[full_part], one.parameter[one_part][ascending], one.z[one_part][ascending])
        assert np.abs(between - full.z[full_part]).max() < 2e-3
        # On the formula itself, without interpolation.
        y, u = full.z[full_part], full.parameter[full_part]
        assert np.allclose(0.7 * y, np.tanh(u * 4.0 * y) + b, atol=1e-9)


def test_reduction_has_the_same_first_fold_and_pitchfork_on_a_regular_graph() -> None:
    complete = nx.complete_graph(6)
    found = dynamics.bifurcation(complete, normalize=True, input=0.05, u_max=0.8)
    u, y = fold(1.0, 2.0, 0.05)
    assert found.folds[0].parameter == pytest.approx(u, abs=1e-8)
    assert found.folds[0].z == pytest.approx(y, abs=1e-5)


@pytest.mark.slow
def test_unfolding_of_a_network() -> None:
    rng = np.random.default_rng(0)
    b = 0.05 + 0.05 * rng.normal(size=34)
    found = dynamics.bifurcation(KARATE, input=b)
    assert residual(found, KARATE, input=b) < 1e-8
    assert found["connected"].stable.all()
    assert bool((found["connected"].z > 0).all())
    assert np.allclose(found["connected"].states[0][:, 0], b)
    assert bool((found["disconnected"].z < 0).all())
    point = found.folds[0]
    assert found.critical < point.parameter < 2 * found.critical
    assert np.abs(np.linalg.eigvals(_jacobian(KARATE, b, point)).real).min() < 1e-6
    mirrored = dynamics.bifurcation(KARATE, input=-b)
    assert mirrored.folds[0].parameter == pytest.approx(point.parameter, abs=1e-7)
    assert mirrored.folds[0].z == pytest.approx(-point.z, abs=1e-5)


def _jacobian(graph: nx.Graph, b: np.ndarray, point: Any) -> np.ndarray:
    flow = dynamics.System(graph, attention=1.0, input=b).flow()
    return flow.jacobian(flow.evaluate(point.state, point.parameter))


def test_strong_input_leaves_one_branch() -> None:
    assert [branch.name for branch in dynamics.bifurcation(GRID, input=0.9).branches] == ["connected"]


@pytest.mark.slow
def test_antagonism_gives_a_pitchfork_of_camps() -> None:
    camp = np.array([1.0] * 4 + [-1.0] * 4)
    found = dynamics.bifurcation(np.outer(camp, camp))
    end = found["upper"].states[-1][:, 0]
    assert np.array_equal(np.abs(np.sign(end) @ camp), 8.0)
    assert np.array_equal(np.sign(found.weights[:, 0]) * camp[0], np.sign(found.weights[0, 0]) * camp)


@pytest.mark.slow
def test_competing_options_split() -> None:
    found = dynamics.bifurcation(CYCLE, options=np.array([[0.0, -1.0], [-1.0, 0.0]]), normalize=True)
    end = found["upper"].states[-1]
    assert np.allclose(end[:, 0], -end[:, 1], atol=1e-9)
    assert abs(end[0, 0]) > 0.5


@pytest.mark.slow
def test_relative_attention_and_parameters_of_every_agent() -> None:
    rng = np.random.default_rng(1)
    parameters = {
        "damping": rng.uniform(0.5, 1.5, 34),
        "self_reinforcement": rng.uniform(0.0, 1.0, 34),
        "attention": rng.uniform(0.5, 1.5, 34),
    }
    found = dynamics.bifurcation(KARATE, **parameters)
    assert residual(found, KARATE, **parameters) < 1e-8
    at = dynamics.stability(KARATE, **{**parameters, "attention": found.critical * parameters["attention"]})
    assert at.eigenvalues[0].real == pytest.approx(0.0, abs=1e-9)
    assert found.points[0].parameter == pytest.approx(found.critical, rel=1e-8)


@pytest.mark.slow
def test_oscillation_is_reported() -> None:
    ring = -nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))
    found = dynamics.bifurcation(ring, u_max=1.0)
    assert [point.kind for point in found.points] == ["hopf"]
    assert found.points[0].parameter == pytest.approx(1.0 / 1.5)
    assert found.reduced is None


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"options": 3}, "couple the options"),
        ({"graph": np.kron(np.eye(2), np.ones((3, 3)))}, "largest connected component"),
        ({"graph": nx.path_graph(4, create_using=nx.DiGraph)}, "strongly connected"),
        ({"graph": nx.disjoint_union(nx.star_graph(400), nx.star_graph(400))}, "connected component"),
        ({"saturation": "relu"}, "tanh or arctan"),
        ({"u_max": -1.0}, "u_max"),
        ({"u_max": "far"}, "positive numbers"),
        ({"step": 0.0}, "step"),
    ],
)
def test_bad_input_is_refused(wrong: dict[str, object], cure: str) -> None:
    arguments = {"graph": GRID, **wrong}
    with pytest.raises(InputError, match=cure):
        dynamics.bifurcation(arguments.pop("graph"), **arguments)


def test_missing_branch_names_those_there_are() -> None:
    with pytest.raises(KeyError, match="neutral, upper, lower"):
        dynamics.bifurcation(GRID)["left"]


@pytest.mark.parametrize("study", [dynamics.bifurcation, dynamics.hysteresis])
def test_what_has_no_pitchfork_is_refused(study: Callable[..., object]) -> None:
    with pytest.raises(InputError, match="use tanh or arctan"):
        study(GRID, saturation="relu")
    with pytest.raises(InputError, match="connected component"):
        study(nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(4)))


def test_branches_are_as_fine_in_every_form() -> None:
    # Opinions under large damping are small in one form and not in the others.
    graph = nx.connected_watts_strogatz_graph(20, 6, 0.3, seed=2)
    degrees = np.array([degree for _, degree in graph.degree])
    for form in ("argument", "sum", "opinions"):
        found = dynamics.bifurcation(graph, damping=degrees, self_reinforcement=0.0, form=form, max_branches=3)
        assert 20 < len(found["upper"].z) < 200
        assert found.points[0].parameter == pytest.approx(found.critical, rel=1e-8)
