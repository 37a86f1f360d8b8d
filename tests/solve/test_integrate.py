import math
import warnings

import pytest
import torch
from torch import Tensor

from dissensus import solve as room
from dissensus.errors import InputError, SolverError, StepSizeWarning
from dissensus.solve import AutogradField
from solve_fields import METHODS, Counting, pendulum, solve, waves

X0 = torch.tensor([[1.0, -0.5], [0.3, 2.0]], dtype=torch.float64)
ADAPTIVE = ("dopri5", "bosh3", "fehlberg2", "adaptive_heun", "dopri8")


def test_a_kick_is_rejected_and_resolved() -> None:
    # A narrow pulse of area one at t = 5: large steps must be taken back.
    def pulse(t: float, x: Tensor) -> Tensor:
        return torch.full_like(x, math.exp(-(((t - 5.0) / 0.05) ** 2)) / (0.05 * math.sqrt(math.pi)))

    solution = solve(pulse, torch.zeros(1, dtype=torch.float64), 10.0, rtol=1e-8, atol=1e-8, save_at=[4.9, 5.1])
    assert solution.stats.rejected > 0
    assert solution.state.item() == pytest.approx(1.0, abs=1e-6)


def test_last_fixed_step_is_shortened() -> None:
    solution = solve(lambda t, x: torch.ones_like(x), torch.zeros(1, dtype=torch.float64), 1.0, "euler", step_size=0.3)
    assert solution.times == pytest.approx((0.0, 0.3, 0.6, 0.9, 1.0))
    assert solution.state.item() == pytest.approx(1.0)


@pytest.mark.parametrize("method", METHODS)
def test_step_limit(method: str) -> None:
    with pytest.raises(SolverError, match=r"max_steps"):
        solve(waves, X0, 10.0, method, step_size=0.1, rtol=1e-9, atol=1e-9, max_steps=5)


@pytest.mark.parametrize("method", ["euler", "midpoint"])
def test_step_limit_of_fixed_steps_counts_all_stops(method: str) -> None:
    assert solve(waves, X0, 1.0, method, step_size=0.1, max_steps=10).stats.accepted == 10
    with pytest.raises(SolverError, match=r"takes 10 steps of size 0.1.*increase step_size or max_steps"):
        solve(waves, X0, 1.0, method, step_size=0.1, max_steps=9)
    with pytest.raises(SolverError):
        solve(waves, X0, 1.0, method, step_size=0.1, max_steps=9, save_at=[0.5])


def test_step_limit_of_adaptive_steps_is_exact() -> None:
    needed = solve(waves, X0, 5.0).stats.accepted
    solve(waves, X0, 5.0, max_steps=needed)
    with pytest.raises(SolverError, match=f"{needed - 1} steps only reached t = .* of 5: increase rtol and atol"):
        solve(waves, X0, 5.0, max_steps=needed - 1)


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.slow
def test_blow_up_is_an_underflow(method: str) -> None:
    # x' = x^2 from 1 is infinite at t = 1.
    with pytest.raises(SolverError, match=r"step size underflow at t = (1|0.99).*float64.*'euler'"):
        solve(lambda t, x: x * x, torch.ones(2, dtype=torch.float64), 2.0, method)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_field_that_is_not_finite_ends(value: float) -> None:
    with pytest.raises(SolverError, match="underflow at t = 0"):
        solve(lambda t, x: torch.full_like(x, value), torch.ones(2), 1.0)


def test_an_assertion_in_the_field_is_not_renamed() -> None:
    def broken(t: float, x: Tensor) -> Tensor:
        raise AssertionError("mine")

    with pytest.raises(AssertionError, match="mine"):
        solve(broken, X0, 1.0, "bosh3")


def test_euler_warns_above_the_limit_only() -> None:
    field = Counting(torch.tensor(0.1), euler_limit=0.5)
    with pytest.warns(StepSizeWarning, match=r"step of 0.6.*use step_size <= 0.5.*dopri5") as seen:
        room.solve(field, X0.abs(), 1.0, room.Euler(0.6))
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(field, X0.abs(), 1.0, "euler", step_size=0.5)
        solve(field, X0.abs(), 1.0, "rk4", step_size=0.6)
        solve(field, X0.abs(), 1.0, "dopri5", step_size=0.6)


def relaxation(t: float, x: Tensor) -> Tensor:
    return torch.tanh(0.9 * x.flip(1)) - x


@pytest.mark.parametrize(("field", "t1"), [(relaxation, 5.0), (pendulum, 4.0), (waves, 6.0)])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-7])
@pytest.mark.slow
def test_the_mesh_of_a_solution_saves_steps(field: AutogradField, t1: float, tolerance: float) -> None:
    options = {"rtol": tolerance, "atol": tolerance}
    first = solve(field, X0, t1, **options)
    second = solve(field, X0, t1, mesh=first.mesh, **options)
    assert second.stats.evaluations < first.stats.evaluations
    # None to find the first step.
    assert second.stats.evaluations == 1 + 6 * (second.stats.accepted + second.stats.rejected)
    # Where steps may always be longer than the last, no error surprises.
    if field is relaxation:
        assert second.times == pytest.approx((0.0, *first.mesh))
    exact = solve(field, X0, t1, rtol=1e-11, atol=1e-11).state
    torch.testing.assert_close(second.state, exact, rtol=0, atol=100 * tolerance)


def test_a_mesh_too_coarse_is_left() -> None:
    options = {"rtol": 1e-8, "atol": 1e-8}
    solution = solve(pendulum, X0, 5.0, mesh=[2.5, 5.0], **options)
    assert solution.stats.rejected > 0
    torch.testing.assert_close(solution.state, solve(pendulum, X0, 5.0, **options).state, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mesh", [[0.5, 1.0], [0.5, 5.0], [3.0, 1.0], [1.0]])
def test_a_mesh_of_another_time(mesh: list[float]) -> None:
    solution = solve(pendulum, X0, 2.0, mesh=mesh, save_at=[0.75])
    assert {0.75, 2.0, *(t for t in mesh if t <= 2.0)} <= set(solution.times)
    torch.testing.assert_close(solution.state, solve(pendulum, X0, 2.0, rtol=1e-9, atol=1e-9).state, rtol=0, atol=1e-2)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "dopri5"])
def test_only_dopri5_has_a_mesh(method: str) -> None:
    solution = solve(waves, X0, 1.0, method, step_size=0.5, mesh=[0.3, 1.0])
    assert solution.mesh == ()
    assert solution.times == solve(waves, X0, 1.0, method, step_size=0.5).times


@pytest.mark.parametrize("mesh", [[-1.0], [0.0, 1.0], [math.inf], [math.nan]])
def test_a_bad_mesh(mesh: list[float]) -> None:
    with pytest.raises(InputError, match="positive and finite"):
        solve(waves, X0, 1.0, mesh=mesh)
