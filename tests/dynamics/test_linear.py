import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch

from dissensus import dynamics

GRAPH = nx.watts_strogatz_graph(12, 4, 0.2, seed=0)
START = np.random.default_rng(0).uniform(-1, 1, (5, 12, 2))


def test_friedkin_and_johnsen_keep_a_share_of_the_start() -> None:
    matrix, share, x = dynamics.as_matrix(GRAPH, normalize=True).toarray(), np.linspace(0.2, 0.9, 12), START[0]
    found = dynamics.simulate(matrix, x, model="friedkin-johnsen", susceptibility=share, time=400)
    exact = np.linalg.solve(np.eye(12) - share[:, None] * matrix, (1.0 - share)[:, None] * x)
    assert np.allclose(found.final.numpy(), exact, atol=1e-10)


@pytest.mark.slow
def test_linear_models_have_gradients_in_the_weights() -> None:
    matrix = torch.rand(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for model in ("degroot", "friedkin-johnsen", "consensus", "altafini"):
        given = {"susceptibility": 0.5} if model == "friedkin-johnsen" else {}
        found = dynamics.simulate(matrix, [1.0, 0.0, -1.0, 0.5], model=model, normalize=True, time=2.0, **given)
        (grad,) = torch.autograd.grad(found.final.pow(2).sum(), matrix)
        assert float(grad.abs().max()) > 1e-3


KARATE = nx.to_numpy_array(nx.karate_club_graph())


def test_degroot_reaches_the_average_weighted_by_the_stationary_distribution() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((8, 8))
    matrix /= matrix.sum(1, keepdims=True)
    x = rng.normal(size=(8, 3))
    values, vectors = np.linalg.eig(matrix.T)
    stationary = vectors[:, values.real.argmax()].real
    stationary /= stationary.sum()
    found = dynamics.simulate(matrix, x, model="degroot", time=100)
    assert found.states.shape == (101, 8, 3)
    assert np.allclose(found.final.numpy(), stationary @ x, atol=1e-12)
    assert np.allclose(found.states[1].numpy(), matrix @ x, atol=1e-14)
    assert found.summary().verdict == "consensus"


@pytest.mark.slow
def test_consensus_on_an_undirected_graph_is_the_plain_average() -> None:
    x = np.random.default_rng(1).normal(size=34)
    found = dynamics.simulate(nx.karate_club_graph(), x, model="consensus", time=60.0)
    assert np.allclose(found.final.numpy(), x.mean(), atol=1e-5)
    laplacian = np.diag(KARATE.sum(1)) - KARATE
    short = dynamics.simulate(KARATE, x, model="consensus", times=[0.1], rtol=1e-9, atol=1e-12)
    assert np.allclose(short.final.numpy()[:, 0], scipy.linalg.expm(-0.1 * laplacian) @ x, atol=1e-7)


def test_an_agent_that_listens_to_nobody_leads() -> None:
    matrix = np.array([[0.0, 0.0], [1.0, 0.0]])
    for model in ("degroot", "consensus"):
        found = dynamics.simulate(matrix, np.array([1.0, -1.0]), model=model, time=30)
        assert found.final.flatten().tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


@pytest.mark.parametrize("model", ["degroot", "consensus", "nonlinear"])
def test_balanced_antagonism_polarises(model: str) -> None:
    # Two camps of five: friends within, foes between.
    camp = np.array([1.0] * 5 + [-1.0] * 5)
    matrix = np.outer(camp, camp) * (np.random.default_rng(0).random((10, 10)) + 0.2)
    options = {"normalize": True} | ({"attention": 2.0} if model == "nonlinear" else {})
    x = np.random.default_rng(1).uniform(-0.5, 1.0, 10)
    found = dynamics.simulate(matrix, x, model=model, time=60, **options)
    assert found.summary().verdict == "polarised"
    side = np.sign(found.final.flatten().numpy())
    assert abs(side @ camp) == 10
