import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

from dissensus.dynamics import System, _spectrum, as_matrix, bifurcation, critical_attention, stability
from dissensus.errors import InputError, SolverError


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


# --- One number everywhere ---


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


@pytest.mark.parametrize("kind", ["signed", "symmetric", "nonnegative", "stochastic"])
def test_large_matrices_agree_with_all_eigenvalues(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a = scipy.sparse.random_array((300, 300), density=0.02, random_state=rng).toarray()
    if kind in ("signed", "symmetric"):
        a *= np.sign(rng.standard_normal(a.shape))
    if kind == "symmetric":
        a = a + a.T
    if kind == "stochastic":
        a = (a + np.eye(300)) / (a + np.eye(300)).sum(1, keepdims=True)
    a_o = rng.random((3, 3)) if kind in ("nonnegative", "stochastic") else rng.standard_normal((3, 3))
    exact = critical_attention(a, a_o)
    monkeypatch.setattr(_spectrum, "_VALUES_DENSE_UP_TO", 3)
    assert critical_attention(a, a_o) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("a_o", [np.array([[-3.0]]), np.array([[-1.5, -2.0], [2.0, -1.5]])])
def test_large_matrices_in_every_direction(a_o: np.ndarray, symmetric: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Options that oppose or rotate call for the other ends of the spectrum.
    a = scipy.sparse.random_array(
        (300, 300), density=0.02, random_state=np.random.default_rng(2)
    ).toarray() - 0.02 * np.eye(300)
    a = a + a.T if symmetric else a
    exact = critical_attention(a, a_o)
    monkeypatch.setattr(_spectrum, "_VALUES_DENSE_UP_TO", 2)
    assert critical_attention(a, a_o) == pytest.approx(exact, rel=1e-6)


def test_large_graphs_with_crowded_spectra_do_not_stall() -> None:
    n = 2000
    ring = scipy.sparse.diags_array([np.full(n, 0.5), np.full(n - 1, 0.5)], offsets=[0, 1]).tolil()
    ring[n - 1, 0] = 0.5
    assert critical_attention(ring) == pytest.approx(0.5, rel=1e-9)
    path = scipy.sparse.diags_array([np.full(n - 1, 0.5)] * 2, offsets=[-1, 1])
    leading = np.cos(np.pi / (n + 1))
    assert critical_attention(path) == pytest.approx(1.0 / (1.0 + leading), rel=1e-9)


def test_a_large_component_of_random_links_does_not_wait_for_its_second_eigenvalue() -> None:
    n, rng = 20_000, np.random.default_rng(0)
    links = scipy.sparse.coo_array((rng.random(5 * n), rng.integers(0, n, (2, 5 * n))), shape=(n, n))
    ring = scipy.sparse.coo_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    graph, x = scipy.sparse.csr_array(links + ring), np.ones(n)
    for _ in range(200):
        x = graph @ x / np.linalg.norm(x)
    leading = np.linalg.norm(graph @ x) / np.linalg.norm(x)
    assert critical_attention(graph) == pytest.approx(1.0 / (1.0 + leading), rel=1e-9)


def test_no_convergence_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise scipy.sparse.linalg.ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(_spectrum, "_VALUES_DENSE_UP_TO", 3)
    monkeypatch.setattr(scipy.sparse.linalg, "eigs", fail)
    with pytest.raises(SolverError, match="normalize=True"):
        critical_attention(np.random.default_rng(0).random((5, 5)))


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ({"damping": 0.0}, "damping.*positive"),
        ({"damping": -1.0}, "positive"),
        ({"damping": float("nan")}, "positive"),
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


# --- Graphs whose agents do not all hear one another ---


def pairs_in_a_chain(pairs: int) -> scipy.sparse.csr_array:
    """Two agents that hear each other, heard by two more, and so on: the eigenvalue 1 is ``pairs`` times defective."""
    n = 2 * pairs
    mutual = scipy.sparse.block_diag([np.array([[0.0, 1.0], [1.0, 0.0]])] * pairs)
    return scipy.sparse.csr_array(mutual + scipy.sparse.diags_array([np.ones(n - 2)], offsets=[-2], shape=(n, n)))


def one_way(n: int) -> scipy.sparse.csr_array:
    """A random graph without cycles."""
    return scipy.sparse.tril(
        scipy.sparse.random_array((n, n), density=4.0 / n, random_state=np.random.default_rng(0)), -1
    )


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (pairs_in_a_chain(20), 0.5),
        (pairs_in_a_chain(1000), 0.5),
        (one_way(700), 1.0),
        (one_way(1500), 1.0),
        (nx.path_graph(700, create_using=nx.DiGraph), 1.0),
        (nx.path_graph(1500, create_using=nx.DiGraph), 1.0),
    ],
    ids=["pairs", "many pairs", "one way", "large one way", "chain", "long chain"],
)
def test_defective_matrices(graph: object, expected: float) -> None:
    assert critical_attention(graph) == pytest.approx(expected, rel=1e-12)
    system = System(graph)
    assert system.attention == pytest.approx(expected, rel=1e-12)
    assert system.fades()
    assert System(graph, attention=expected).fades()
    assert stability(graph, attention=expected, count=1).eigenvalues[0] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InputError, match="not unique"):
        bifurcation(graph)


def test_defective_matrices_of_unequal_agents() -> None:
    # In the order of who hears whom the matrix is triangular: its diagonal alpha_i / d_i is its spectrum.
    rng = np.random.default_rng(1)
    alpha, damping = rng.uniform(0.5, 1.5, 700), rng.uniform(0.5, 2.0, 700)
    system = System(nx.path_graph(700, create_using=nx.DiGraph), self_reinforcement=alpha, damping=damping)
    assert system.attention == pytest.approx(1.0 / (alpha / damping).max(), rel=1e-12)


def test_a_hundred_thousand_agents_of_whom_none_is_heard_back() -> None:
    graph = one_way(100_000)
    assert critical_attention(graph) == 1.0
    assert System(graph).attention == 1.0


def test_a_leading_component_takes_along_those_who_hear_it() -> None:
    # A clique between a chain that it hears and a chain that hears it.
    graph = nx.path_graph(60, create_using=nx.DiGraph)
    graph.add_edges_from((i, k) for i in range(28, 32) for k in range(28, 32) if i != k)
    matrix = as_matrix(graph).toarray()
    found = bifurcation(graph)
    assert found.critical == pytest.approx(critical_attention(graph), rel=1e-12) == pytest.approx(0.25, rel=1e-2)
    effective = found.critical * (matrix + np.eye(60)) - np.eye(60)
    v, w = found.direction[:, 0], found.weights[:, 0]
    assert np.abs(effective @ v).max() <= 1e-9 * np.abs(v).max()
    assert np.abs(w @ effective).max() <= 1e-9
    assert not v[:28].any()
    assert (v[28:] > 0).all()
    assert not w[32:].any()
    assert (w[:32] > 0).all()
    assert [point.kind for point in found.points] == ["pitchfork"]
    assert found["upper"].stable.all()
    assert found["lower"].stable.all()
