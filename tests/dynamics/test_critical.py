import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

from dissensus.dynamics import System, as_matrix, bifurcation, critical_attention
from dissensus.errors import InputError


def jacobian_leads_at(a_a: np.ndarray, a_o: np.ndarray, d: float, alpha: float, u: float) -> float:
    """The largest real part of the linearisation at X = 0, from the literal Kronecker form."""
    n, o = len(a_a), len(a_o)
    effective = (alpha - 1.0) * np.eye(n * o) + np.kron(a_o + np.eye(o), a_a + np.eye(n))
    return float(np.linalg.eigvals(-d * np.eye(n * o) + u * effective).real.max())


@pytest.mark.parametrize("seed", range(6))
def test_neutral_opinion_loses_stability_exactly_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a_a, a_o = rng.standard_normal((5, 5)), rng.standard_normal((3, 3))
    d, alpha = rng.uniform(0.2, 2.0), rng.uniform(0.0, 3.0)
    u = critical_attention(a_a, a_o, d, alpha)
    assert jacobian_leads_at(a_a, a_o, d, alpha, u) == pytest.approx(0.0, abs=1e-10)
    assert jacobian_leads_at(a_a, a_o, d, alpha, 0.99 * u) < 0 < jacobian_leads_at(a_a, a_o, d, alpha, 1.01 * u)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_stochastic_factors_give_d_over_alpha_plus_three(alpha: float) -> None:
    rng = np.random.default_rng(0)
    a_a, a_o = rng.random((6, 6)), rng.random((3, 3))
    a_a, a_o = a_a / a_a.sum(1, keepdims=True), a_o / a_o.sum(1, keepdims=True)
    expected = 0.7 / (alpha + 3.0)
    for pair in ((a_a, a_o), (None, a_o), (a_a, [[1.0]]), (None, None)):
        assert critical_attention(*pair, 0.7, alpha) == pytest.approx(expected, rel=1e-12)


def test_every_kind_of_matrix() -> None:
    a = np.random.default_rng(0).random((5, 5))
    expected, own = critical_attention(a), System(np.ones((2, 2)), a).attention
    tensor = torch.from_numpy(a)
    kinds = [
        a.tolist(),
        tuple(map(tuple, a)),
        tensor,
        tensor.requires_grad_(),
        tensor.detach().to_sparse(),
        tensor.detach().to_sparse_csr(),
    ]
    for given in [*kinds, scipy.sparse.csr_matrix(a), scipy.sparse.coo_array(a)]:
        assert critical_attention(given) == pytest.approx(expected, rel=1e-12)
        assert critical_attention([[1.0]], given) == pytest.approx(critical_attention([[1.0]], a), rel=1e-12)
        assert System(np.ones((2, 2)), given).attention == pytest.approx(own, rel=1e-12)
    graph = nx.karate_club_graph()
    integers = torch.from_numpy(nx.to_numpy_array(graph, weight=None)).long()
    assert critical_attention(integers) == pytest.approx(critical_attention(integers.double()), rel=1e-12)
    assert critical_attention(integers.nonzero().T) == pytest.approx(critical_attention(integers.double()), rel=1e-12)
    assert critical_attention(graph) == pytest.approx(critical_attention(nx.to_numpy_array(graph)), rel=1e-12)


def graphs() -> dict[str, object]:
    rng = np.random.default_rng(3)
    weighted = scipy.sparse.random_array((60, 60), density=0.1, random_state=rng)
    weighted.setdiag(0.0)
    directed = nx.gnp_random_graph(40, 0.15, seed=1, directed=True)
    for _, _, edge in directed.edges(data=True):
        edge["weight"] = rng.uniform(0.1, 2.0)
    large = scipy.sparse.random_array((1500, 1500), density=0.004, random_state=rng)
    large.setdiag(0.0)
    return {
        "karate": nx.karate_club_graph(),
        "star": nx.star_graph(5),
        "weighted": weighted,
        "signed": weighted.multiply(np.sign(rng.standard_normal((60, 60)))),
        "directed": directed,
        "large directed": large,
        "large": large + large.T,
    }


OPTIONS = {
    "one": None,
    "three": 3,
    "coupled": np.array([[0.0, 0.4], [0.7, 0.0]]),
    "opposed": np.array([[0.0, -1.0], [-1.0, 0.0]]),
    "turning": np.array([[0.0, -2.0], [2.0, 0.0]]),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", graphs())
def test_the_same_arguments_give_the_same_number_everywhere(name: str, options: str) -> None:
    graph, given = graphs()[name], OPTIONS[options]
    expected = critical_attention(graph, given, 0.8, 0.5)
    system = System(graph, given, damping=0.8, self_reinforcement=0.5)
    assert system.attention == pytest.approx(expected, rel=1e-10)
    if name in ("karate", "weighted", "directed") and options in ("one", "coupled"):
        found = bifurcation(graph, options=given, damping=0.8, self_reinforcement=0.5, u_max=1e-3)
        assert found.critical == pytest.approx(expected, rel=1e-10)


def test_defaults_agree() -> None:
    graph = nx.karate_club_graph()
    assert bifurcation(graph).critical == pytest.approx(critical_attention(graph), rel=1e-10)


def test_diagonals_count_unless_they_are_left_out() -> None:
    rng = np.random.default_rng(5)
    a_a, a_o = rng.random((9, 9)), rng.random((3, 3))
    parameters = {"damping": 0.8, "self_reinforcement": 0.5}
    with_own = bifurcation(a_a, options=a_o, **parameters).critical
    assert with_own == pytest.approx(critical_attention(a_a, a_o, **parameters), rel=1e-10)
    without, normal = (as_matrix(a_a, self_loops=False, normalize=normalize) for normalize in (False, True))
    bare = a_o - np.diag(np.diag(a_o))
    for normalize, matrix in ((False, without), (True, normal)):
        found = bifurcation(
            a_a, options=a_o, normalize=normalize, self_loops=False, max_branches=1, **parameters
        ).critical
        assert found == pytest.approx(critical_attention(matrix, bare, **parameters), rel=1e-10)


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ({"damping": 0.0}, "damping.*positive"),
        ({"damping": -1.0}, "positive"),
        ({"damping": float("nan")}, "positive"),
        ({"damping": [1.0, 2.0]}, "one value per agent"),
        ({"damping": torch.tensor(1.0, requires_grad=True)}, "give a number"),
        ({"damping": float("inf")}, "positive"),
        ({"self_reinforcement": -0.1}, "negative"),
        ({"self_reinforcement": float("nan")}, "negative"),
        ({"communication": np.zeros((2, 3))}, "communication.*square"),
        ({"communication": "karate"}, "networkx graph"),
        ({"options": np.zeros((0, 0))}, "options.*not empty"),
        ({"options": 0}, "at least one option"),
        ({"communication": np.array([[np.nan]])}, "NaN"),
        ({"communication": -np.eye(2), "self_reinforcement": 0.5}, "stable at every attention"),
    ],
)
def test_bad_input(arguments: dict[str, object], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        critical_attention(**arguments)
