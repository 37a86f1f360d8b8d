import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch

from dissensus import dynamics
from dissensus.errors import InputError
from literal_opinions import literal

KARATE = nx.to_numpy_array(nx.karate_club_graph())


def test_simulation_follows_the_literal_equation() -> None:
    rng = np.random.default_rng(1)
    a, o, x = rng.normal(size=(5, 5)), rng.normal(size=(2, 2)), rng.normal(size=(5, 2))
    b = rng.normal(size=(5, 2))
    found = dynamics.simulate(
        a, x, options=o, attention=0.4, input=b, damping=0.8, times=[0.0, 1.0, 2.0], self_loops=False
    )
    ones = np.ones((5, 2))
    for step in range(2):  # classical Runge-Kutta with fine steps on the literal sums
        for _ in range(200):
            h, k = 1.0 / 200, []
            for share in (0.0, 0.5, 0.5, 1.0):
                y = x + share * h * (k[-1] if k else 0.0)
                k.append(literal(y, a, o, 0.8 * ones, 0.4 * np.ones(5), ones, b))
            x = x + h * (k[0] + 2 * k[1] + 2 * k[2] + k[3]) / 6
        assert np.allclose(found.states[step + 1].numpy(), x, atol=1e-5)


def test_influence_that_changes_in_time() -> None:
    first = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    second = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    x = np.array([1.0, 0.0, -4.0])
    found = dynamics.simulate([first, second], x, model="degroot", time=3)
    assert np.allclose(found.final.flatten().numpy(), first @ second @ first @ x)
    same = dynamics.simulate(lambda t: [first, second][round(t) % 2], x, model="degroot", time=3)
    assert torch.equal(found.states, same.states)
    # Neither graph is connected, both together are.
    assert dynamics.simulate([first, second], x, model="degroot", time=200).summary().verdict == "consensus"
    pieces = dynamics.simulate([first, second], x, model="consensus", times=[0.5, 1.5, 2.0], rtol=1e-10, atol=1e-12)
    generators = [m - np.diag(np.abs(m).sum(1)) for m in (first, second)]
    middle = scipy.linalg.expm(generators[0]) @ x
    assert np.allclose(pieces.states[0, :, 0], scipy.linalg.expm(0.5 * generators[0]) @ x, atol=1e-8)
    assert np.allclose(pieces.states[1, :, 0], scipy.linalg.expm(0.5 * generators[1]) @ middle, atol=1e-8)
    assert np.allclose(pieces.states[2, :, 0], scipy.linalg.expm(generators[1]) @ middle, atol=1e-8)


def test_smoothly_changing_influence() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = dynamics.simulate(
        lambda t: swap * (1.0 + np.sin(t)), [1.0, -1.0], model="consensus", times=[2.0], rtol=1e-9, atol=1e-12
    )
    # The difference decays by exp(-2 int (1 + sin t) dt).
    expected = np.exp(-2.0 * (2.0 + 1.0 - np.cos(2.0)))
    assert float(found.final[0, 0]) == pytest.approx(expected, abs=1e-8)
    nonlinear = dynamics.simulate(lambda t: swap, [1.0, -0.5], attention=0.3, times=[3.0])
    constant = dynamics.simulate(swap, [1.0, -0.5], attention=0.3, times=[3.0])
    assert nonlinear.final.allclose(constant.final, atol=1e-7)


def test_simulation_is_differentiable() -> None:
    x = torch.full((34,), 0.1, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(34, dtype=torch.float64, requires_grad=True)
    matrix = torch.from_numpy(KARATE).requires_grad_()
    found = dynamics.simulate(matrix, x, attention=0.05, input=b, times=[2.0])
    by_x, by_b, by_matrix = torch.autograd.grad(found.final.square().sum(), (x, b, matrix))
    assert bool((by_x > 0).all() and (by_b > 0).all())
    assert by_matrix.count_nonzero() == np.count_nonzero(KARATE)


def test_random_start_is_repeatable_and_seeded() -> None:
    one, same, other = (dynamics.simulate(KARATE, seed=seed, attention=0.01, times=[0.0]) for seed in (0, 0, 1))
    assert torch.equal(one.states, same.states)
    assert not torch.equal(one.states, other.states)
    assert float(one.states.abs().max()) <= 1.0


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"model": "voter"}, "unknown model"),
        ({"atention": 1.0}, "did you mean 'attention'"),
        ({"damping": "high"}, "give numbers"),
        ({"susceptibility": 0.5}, "friedkin-johnsen"),
        ({"damping": lambda t: 1.0}, "cannot be a function"),
        ({"damping": 0.0}, "damping is 0: it must be positive"),
        ({"damping": np.linspace(0, 1, 34)}, "damping is 0 somewhere"),
        ({"self_reinforcement": -1.0}, "not be negative"),
        ({"damping": np.ones(5)}, "one value per agent"),
        ({"input": np.nan}, "NaN"),
        ({"x0": np.ones(5)}, "agents, options"),
        ({"x0": 0.5}, "agents, options"),
        ({"noise": -1.0}, "noise is -1"),
        ({"saturation": 3}, "function of tensors"),
        ({"times": "late"}, "ascending list"),
        ({"graph": [[0.0, 1.0j], [1.0, 0.0]]}, "not real numbers"),
        ({"x0": np.full(34, np.inf)}, "infinite"),
        ({"options": 0}, "at least one option"),
        ({"saturation": "step"}, "unknown saturation"),
        ({"times": [1.0, 0.5]}, "ascending"),
        ({"times": []}, "not empty"),
        ({"time": 0.0}, "positive"),
        ({"time": "long"}, "positive"),
        ({"model": "degroot"}, "normalize=True"),
        ({"model": "degroot", "normalize": True, "times": [0.5]}, "whole numbers"),
        ({"model": "degroot", "normalize": True, "time": 0.5}, "at least 1"),
        ({"model": "consensus", "attention": 1.0, "normalize": True}, "leave out attention$"),
        ({"model": "consensus", "options": np.eye(2)}, "option graph"),
        ({"graph": []}, "empty"),
        ({"graph": [KARATE, KARATE]}, "attention="),
        ({"graph": [KARATE, np.eye(3)], "model": "consensus"}, "different numbers"),
        ({"graph": dynamics.System(KARATE), "damping": 2.0}, "finished System"),
        ({"graph": dynamics.System(KARATE), "model": "consensus"}, "nonlinear"),
    ],
)
def test_bad_input_is_refused(wrong: dict[str, object], cure: str) -> None:
    arguments = {"graph": KARATE, **wrong}
    with pytest.raises(InputError, match=cure):
        dynamics.simulate(arguments.pop("graph"), **arguments)


GRAPH = nx.watts_strogatz_graph(12, 4, 0.2, seed=0)
U = 1.5 * float(dynamics.System(GRAPH).attention)
START = np.random.default_rng(0).uniform(-1, 1, (5, 12, 2))
OPTIONS = np.array([[0.0, -0.5], [-0.3, 0.0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"attention": U, "options": OPTIONS},
        {"attention": np.linspace(0.5, 2.0, 5)[:, None, None] * U, "damping": np.linspace(0.8, 1.2, 12)},
        {"attention": U, "saturation": torch.atan, "form": "sum"},
        {"attention": lambda t: U * (1.0 + 0.1 * t), "form": "opinions"},
        {"attention": dynamics.Feedback(0.5 * U, 2.0 * U)},
    ],
)
def test_an_ensemble_is_its_runs(given: dict[str, object]) -> None:
    times = [0.0, 1.0, 4.0]
    found = dynamics.simulate(GRAPH, START, times=times, rtol=1e-9, **given)
    assert found.states.shape == (3, 5, 12, 2)
    one = {**given, "attention": given["attention"][3, 0, 0]} if isinstance(given["attention"], np.ndarray) else given
    alone = dynamics.simulate(GRAPH, START[3], times=times, rtol=1e-9, **one)
    assert found.run(3).states.allclose(alone.states, atol=1e-6)
    if alone.attention is not None:
        assert found.run(3).attention.allclose(alone.attention, atol=1e-6)


def test_an_effective_matrix_gives_what_its_factors_give() -> None:
    a = nx.to_numpy_array(GRAPH)
    effective = np.kron(a + np.eye(12), OPTIONS + np.eye(2)) - np.eye(24)
    factors = dynamics.simulate(GRAPH, START[0], options=OPTIONS, attention=U, times=[3.0])
    whole = dynamics.simulate(effective, START[0], options=2, effective=True, attention=U, times=[3.0])
    assert whole.final.allclose(factors.final, atol=1e-9)


def test_noise_is_seeded_and_has_the_variance_of_its_process() -> None:
    given = {"attention": 0.0, "noise": 0.3, "step_size": 0.02, "time": 6.0}
    found = dynamics.simulate(GRAPH, np.zeros((400, 12, 1)), seed=1, **given)
    assert float(found.final.var()) == pytest.approx(0.3**2 / 2.0, rel=0.1)
    again = dynamics.simulate(GRAPH, np.zeros((400, 12, 1)), seed=1, **given)
    assert torch.equal(found.final, again.final)
