import numpy as np
import pytest

from dissensus import dynamics
from dissensus.errors import InputError


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


@pytest.mark.parametrize("runs", [0, 2.5, "many"])
def test_a_number_of_runs_that_is_none_is_refused(runs: object) -> None:
    with pytest.raises(InputError, match="give at least 1"):
        dynamics.basins([[0, 1], [1, 0]], runs=runs)
