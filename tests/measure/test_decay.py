import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dissensus.errors import InputError
from dissensus.measure import decay_rate, dirichlet_energy

TIMES = np.linspace(0, 10, 41)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.floats(-3, 3), st.floats(1e-200, 1e200), st.floats(-100, 100))
def test_an_exact_exponential_is_found(rate, start, origin):
    found = decay_rate(start * np.exp(-rate * TIMES), TIMES + origin)
    assert found.rate == pytest.approx(rate, abs=1e-9)
    assert found.lower <= found.rate <= found.upper
    assert found.upper - found.lower < 1e-8


def test_fit_and_interval_are_those_of_linear_regression():
    noise = np.random.default_rng(0).normal(size=41)
    logs = 1 - 0.4 * TIMES + 0.3 * noise
    expected = stats.linregress(TIMES, logs)
    found = decay_rate(np.exp(logs), TIMES, confidence=0.9)
    half = stats.t.ppf(0.95, 39) * expected.stderr
    assert found.rate == pytest.approx(-expected.slope)
    assert (found.lower, found.upper) == pytest.approx((-expected.slope - half, -expected.slope + half))
    assert found.points == 41


def test_the_interval_covers_the_rate_as_often_as_it_says():
    generator = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        found = decay_rate(np.exp(-0.4 * TIMES + generator.normal(size=41)), TIMES, confidence=0.8)
        hits += found.lower <= 0.4 <= found.upper
    assert 0.74 < hits / 400 < 0.86


@pytest.mark.parametrize("end", [0.0, 1e-33, math.inf, math.nan])
def test_zeros_plateaus_and_overflow_end_the_fit(end):
    energies = np.exp(-2 * TIMES)
    energies[20:] = end
    energies[30] = 1e-3
    found = decay_rate(energies, TIMES)
    assert found.points == 20
    assert found.rate == pytest.approx(2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_floor_follows_the_dtype(dtype):
    times = torch.arange(100, dtype=torch.float64)
    floor = torch.finfo(dtype).eps ** 2
    energies = torch.exp(-3 * times).clamp(min=floor / 2).to(dtype)
    found = decay_rate(energies, times)
    assert found.rate == pytest.approx(3, rel=1e-5)
    assert found.points == math.ceil(-math.log(floor) / 3)


def test_a_floor_can_be_given():
    energies = np.exp(-TIMES) + 1e-3
    assert decay_rate(energies, TIMES).rate < 0.8
    found = decay_rate(energies, TIMES, floor=0.05)
    assert found.rate == pytest.approx(1, abs=0.03)
    assert found.points == (energies > 0.05).sum()


def test_a_floor_can_be_given_for_each_time():
    energies = np.exp(-20 * TIMES)
    assert decay_rate(energies, TIMES).points < 20
    shrinking = decay_rate(energies, TIMES, floor=1e-30 * np.exp(-19.9 * TIMES))
    assert shrinking == (pytest.approx(20), pytest.approx(20), pytest.approx(20), 41)
    assert decay_rate(energies, TIMES, floor=np.where(TIMES < 5, 0.0, 1.0)).points == 20


def test_few_points():
    assert decay_rate([4.0, 1.0, 0.0], [0, 1, 2]) == (math.log(4), -math.inf, math.inf, 2)
    at_once = decay_rate([1.0, 0.0, 0.0], [0, 2, 4])
    assert at_once == (math.inf, pytest.approx(-math.log(np.finfo(float).eps)), math.inf, 1)
    assert decay_rate([1.0, math.inf], [0, 1]).rate == -math.inf
    for nothing in ([0.0, 0.0, 0.0], [math.nan] * 3):
        assert np.isnan(decay_rate(nothing, [0, 1, 2])[:3]).all()
    assert math.isnan(decay_rate([1.0], [0]).rate)


def test_heat_on_a_ring_decays_at_twice_the_spectral_gap():
    nodes = 12
    source = torch.arange(nodes)
    edge_index = torch.cat(
        [torch.stack([source, (source + 1) % nodes]), torch.stack([(source + 1) % nodes, source])], 1
    )
    laplacian = 2 * torch.eye(nodes, dtype=torch.float64)
    laplacian[edge_index[0], edge_index[1]] = -1
    gap = 2 - 2 * math.cos(2 * math.pi / nodes)
    x = torch.cos(2 * math.pi * source / nodes).double()[:, None] + 5
    times = torch.linspace(0, 120, 60, dtype=torch.float64)
    states = torch.stack([torch.matrix_exp(-laplacian * t) @ x for t in times])
    found = decay_rate(dirichlet_energy(states, edge_index), times, floor=1e-26)
    assert found.rate == pytest.approx(2 * gap, rel=1e-3)
    assert found.lower < 2 * gap < found.upper


@pytest.mark.parametrize(
    ("energies", "times", "options", "cure"),
    [
        ([1.0, 0.5], [0.0], {}, "one time for each"),
        ([1.0, -0.5], [0.0, 1.0], {}, "negative"),
        ([1.0, 0.5], [1.0, 1.0], {}, "increasing"),
        ([1.0, 0.5], [0.0, math.inf], {}, "finite"),
        ([[1.0]], [0.0], {}, "vector"),
        ([], [], {}, "at least one"),
        ([1.0, 0.5], [0.0, 1.0], {"confidence": 95}, "between 0 and 1"),
        ([1.0, 0.5], [0.0, 1.0], {"floor": [0.0, 0.0, 0.0]}, "one for each of the 2"),
    ],
)
def test_wrong_input_is_refused_with_a_cure(energies, times, options, cure):
    with pytest.raises(InputError, match=cure):
        decay_rate(energies, times, **options)
