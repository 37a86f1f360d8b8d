import math
from itertools import pairwise

import numpy as np
import pytest
import torch
import torchdiffeq
from scipy.integrate import solve_ivp
from torch import Tensor

from dissensus.solve import AutogradField, solver_named
from dissensus.solve._step import semilinear_form, take_step
from dissensus.solve._tableau import Tableau
from solve_fields import METHODS, pendulum, solve, waves

X0 = torch.tensor([[1.0, -0.5], [0.3, 2.0]], dtype=torch.float64)
ADAPTIVE = ("dopri5", "bosh3", "fehlberg2", "adaptive_heun", "dopri8")


def fixed(tableau: Tableau, steps: int, t1: float = 2.0) -> Tensor:
    split, h, x = semilinear_form(AutogradField(waves), X0), t1 / steps, X0
    for i in range(steps):
        x = take_step(split, tableau, i * h, h, x).new
    return x


@pytest.mark.parametrize(("name", "order", "steps"), [("euler", 1, 400), ("rk4", 4, 20), ("dopri5", 5, 16)])
def test_order_of_convergence(name: str, order: int, steps: int) -> None:
    exact = X0 * math.exp(math.sin(2.0))
    errors = [(fixed(solver_named(name).tableau, count) - exact).abs().max().item() for count in (steps, 2 * steps)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_fixed_steps_equal_torchdiffeq(method: str) -> None:
    ours = solve(pendulum, X0, 3.0, method, step_size=0.25).state
    theirs = torchdiffeq.odeint(
        lambda t, x: pendulum(float(t), x),
        X0,
        torch.tensor([0.0, 3.0], dtype=torch.float64),
        method=method,
        options={"step_size": 0.25},
    )[-1]
    torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("method", "tolerance"), [("dopri5", 1e-10), ("rk4", 1e-9), ("euler", 1e-2), ("dopri8", 1e-10), ("bosh3", 1e-8)]
)
@pytest.mark.slow
def test_against_scipy(method: str, tolerance: float) -> None:
    reference = solve_ivp(
        lambda t, y: pendulum(t, torch.from_numpy(y).view(2, 2)).numpy().ravel(),
        (0.0, 3.0),
        X0.numpy().ravel(),
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    ).y[:, -1]
    steps = {"rk4": 0.005, "euler": 0.002}.get(method, 1.0)
    rtol = 1e-12 if method != "bosh3" else 1e-10
    ours = solve(pendulum, X0, 3.0, method, step_size=steps, rtol=rtol, atol=rtol, max_steps=100_000).state
    np.testing.assert_allclose(ours.numpy().ravel(), reference, rtol=0, atol=tolerance)


def test_dopri5_equals_torchdiffeq_and_keeps_its_tolerance() -> None:
    exact = X0 * math.exp(math.sin(3.0))
    errors = []
    for tol in (1e-4, 1e-6, 1e-8, 1e-10):
        ours = solve(waves, X0, 3.0, rtol=tol, atol=tol)
        errors.append((ours.state - exact).abs().max().item())
        assert errors[-1] < 20 * tol
        times = torch.tensor([0.0, 3.0], dtype=torch.float64)
        theirs = torchdiffeq.odeint(lambda t, x: waves(float(t), x), X0, times, method="dopri5", rtol=tol, atol=tol)[-1]
        torch.testing.assert_close(ours.state, theirs, rtol=50 * tol, atol=50 * tol)
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method: str) -> None:
    solution = solve(waves, X0, 1.0, method, step_size=0.05, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(solution.state, X0 * math.exp(math.sin(1.0)), rtol=0, atol=5e-2)
    times, stats = solution.times, solution.stats
    assert times[0] == 0.0
    assert times[-1] == 1.0
    assert all(a < b for a, b in pairwise(times))
    assert stats.accepted == len(times) - 1
    assert solver_named(method).fixed == (method not in ADAPTIVE)
    if method not in ADAPTIVE:
        np.testing.assert_allclose(times, np.linspace(0.0, 1.0, 21), atol=1e-12)
        assert stats.rejected == 0
