import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from dissensus import dynamics
from dissensus.errors import InputError

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


def test_friedkin_and_johnsen_keep_a_share_of_the_start() -> None:
    matrix, share, x = dynamics.as_matrix(GRAPH, normalize=True).toarray(), np.linspace(0.2, 0.9, 12), START[0]
    found = dynamics.simulate(matrix, x, model="friedkin-johnsen", susceptibility=share, time=400)
    exact = np.linalg.solve(np.eye(12) - share[:, None] * matrix, (1.0 - share)[:, None] * x)
    assert np.allclose(found.final.numpy(), exact, atol=1e-10)


def test_noise_is_seeded_and_has_the_variance_of_its_process() -> None:
    given = {"attention": 0.0, "noise": 0.3, "step_size": 0.02, "time": 6.0}
    found = dynamics.simulate(GRAPH, np.zeros((400, 12, 1)), seed=1, **given)
    assert float(found.final.var()) == pytest.approx(0.3**2 / 2.0, rel=0.1)
    again = dynamics.simulate(GRAPH, np.zeros((400, 12, 1)), seed=1, **given)
    assert torch.equal(found.final, again.final)


@pytest.mark.slow
def test_a_limit_cycle_is_oscillating_at_any_end() -> None:
    ring = -nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))
    for end in (20.0, 23.0, 31.0):
        found = dynamics.simulate(ring, np.array([0.5, 0.0, -0.1]), attention=2.0, time=end)
        assert found.summary().verdict == "oscillating"


def test_nested_lists_are_one_matrix() -> None:
    assert dynamics.simulate([[0, 1], [1, 0]], [1.0, -1.0], attention=0.2, times=[1.0]).states.shape == (1, 2, 1)


@pytest.mark.slow
def test_tables_files_and_figures(tmp_path: Path) -> None:
    found = dynamics.simulate(GRAPH, START, attention=U, time=5.0)
    assert len(found.to_dataframe()) == found.states.numel()
    found.save(tmp_path / "a.npz")
    again = dynamics.Simulation.load(tmp_path / "a.npz")
    assert torch.equal(again.states, found.states)
    assert again.outcomes() == found.outcomes()
    found.run(0).plot(tmp_path / "a.png")
    diagram = dynamics.bifurcation(nx.path_graph(4), max_branches=3)
    diagram.save(tmp_path / "b.npz")
    loaded = dynamics.Bifurcation.load(tmp_path / "b.npz")
    assert [p.kind for p in loaded.points] == [p.kind for p in diagram.points]
    assert np.array_equal(loaded["upper"].states, diagram["upper"].states)
    diagram.plot(tmp_path / "b.svg")
    assert len(diagram.to_dataframe()) == sum(len(branch.z) for branch in diagram.branches)
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("a.png", "b.svg"))


@pytest.mark.slow
def test_basins_find_what_random_starts_find() -> None:
    for seed in range(3):
        matrix = np.random.default_rng(seed).normal(size=(8, 8))
        matrix = matrix + matrix.T
        u = 2.0 * float(dynamics.System(matrix).attention)
        found = dynamics.basins(matrix, attention=u, runs=20)
        starts = np.random.default_rng(100 + seed).uniform(-1, 1, (300, 8, 1))
        brute = dynamics.simulate(matrix, starts, attention=u, times=[200.0]).final.numpy()
        distances = np.abs(brute[:, None] - found.states[None]).max((2, 3)).min(1)
        assert (distances < 1e-3).mean() > 0.98


@pytest.mark.slow
def test_importing_dynamics_does_not_import_pyg() -> None:
    code = "import sys, dissensus.dynamics; sys.exit('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert len(dynamics.__all__) <= 20


@pytest.mark.slow
def test_all_stable_equilibria_of_fifty_random_signed_systems() -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        matrix = np.where(rng.random((8, 8)) < 0.6, rng.normal(size=(8, 8)), 0.0)
        matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
        u = 2.0 * float(dynamics.System(matrix).attention)
        found = dynamics.basins(matrix, attention=u, runs=10)
        starts = rng.uniform(-1.0, 1.0, (400, 8, 1))
        brute = dynamics.simulate(matrix, starts, attention=u, times=[400.0]).final.numpy()
        # Random starts end nowhere else (a few linger near a saddle), and what was found is stable.
        apart = np.abs(brute[:, None] - found.states[None]).max((2, 3)).min(1)
        assert (apart < 1e-3).mean() >= 0.995, seed
        for state in found.states:
            assert dynamics.stability(matrix, state, attention=u).stable, seed


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


def test_outcomes_are_the_verdicts_of_the_runs() -> None:
    ring = -nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))
    starts = np.array([[[0.5], [0.0], [-0.1]], [[0.0], [0.0], [0.0]], [[0.2], [-0.3], [0.1]]])
    found = dynamics.simulate(ring, starts, attention=2.0, time=20.0)
    verdicts = [found.run(k).summary() for k in range(3)]
    assert [v.verdict for v in verdicts] == ["oscillating", "consensus", "oscillating"]
    assert [v.settled for v in verdicts] == [False, True, False]
    assert found.outcomes() == {"oscillating": 2, "consensus": 1}
    assert str(found) == "3 runs of the nonlinear model: oscillating 2, consensus 1"


def test_symmetric_networks_are_known_to_settle() -> None:
    assert dynamics.System(GRAPH).settles()
    assert dynamics.System(GRAPH, normalize=True, options=3).settles()
    assert dynamics.System(GRAPH, form="opinions", damping=np.linspace(0.5, 1.0, 12)).settles()
    for given in ({"damping": np.linspace(0.5, 1.0, 12)}, {"saturation": torch.tanh}, {"options": OPTIONS}):
        assert not dynamics.System(GRAPH, **given).settles()


@pytest.mark.slow
def test_linear_models_have_gradients_in_the_weights() -> None:
    matrix = torch.rand(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for model in ("degroot", "friedkin-johnsen", "consensus", "altafini"):
        given = {"susceptibility": 0.5} if model == "friedkin-johnsen" else {}
        found = dynamics.simulate(matrix, [1.0, 0.0, -1.0, 0.5], model=model, normalize=True, time=2.0, **given)
        (grad,) = torch.autograd.grad(found.final.pow(2).sum(), matrix)
        assert float(grad.abs().max()) > 1e-3


def test_files_that_save_did_not_write_are_refused(tmp_path: Path) -> None:
    found = dynamics.simulate(GRAPH, START[0], options=2, attention=U, time=2.0)
    found.save(tmp_path / "a.npz")
    with pytest.raises(InputError, match="holds a simulation"):
        dynamics.Bifurcation.load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.ones(2))
    for name in ("b.npz", "missing.npz"):
        with pytest.raises(InputError, match="save wrote"):
            dynamics.Simulation.load(tmp_path / name)
    with pytest.raises(InputError, match=r"\.npz"):
        found.save(tmp_path / "a.txt")
    found.save(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "time,agent,option,opinion"
    assert len(lines) == 1 + found.states.numel()
