import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from dissensus.dynamics import System, _spectrum, as_matrix, bifurcation, critical_attention, stability
from dissensus.errors import InputError, SolverError


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
