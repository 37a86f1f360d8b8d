import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
import torchdiffeq
from scipy.integrate import solve_ivp
from torch import Tensor

from dissensus import solve as room
from dissensus.errors import InputError, SolverError, StepSizeWarning
from dissensus.solve import RK4, AutogradField, Dopri5, Euler, solver_named
from dissensus.solve._control import equal_mesh
from dissensus.solve._integrate import Stats
from dissensus.solve._step import split_for, take_step
from dissensus.solve._tableau import DOPRI5, Tableau
from solve_fields import METHODS, Counting, pendulum, solve, waves

X0 = torch.tensor([[1.0, -0.5], [0.3, 2.0]], dtype=torch.float64)
OWN = ("euler", "rk4", "dopri5")
ADAPTIVE = ("dopri5", "bosh3", "fehlberg2", "adaptive_heun", "dopri8")


@pytest.mark.parametrize("tableau", [solver.tableau for solver in (Euler, RK4, Dopri5)], ids=OWN)
def test_tables_are_consistent(tableau: Tableau) -> None:
    assert sum(tableau.b) == pytest.approx(1.0, abs=1e-15)
    assert [sum(row) for row in tableau.a] == pytest.approx(list(tableau.c), abs=1e-14)
    assert [len(row) for row in tableau.a] == list(range(tableau.stages))
    assert sum(tableau.e) == pytest.approx(0.0, abs=1e-15)


def fixed(tableau: Tableau, steps: int, t1: float = 2.0) -> Tensor:
    split, h, x = split_for(AutogradField(waves), X0), t1 / steps, X0
    for i in range(steps):
        x = take_step(split, tableau, i * h, h, x).new
    return x


@pytest.mark.parametrize(("name", "order", "steps"), [("euler", 1, 400), ("rk4", 4, 20), ("dopri5", 5, 16)])
def test_order_of_convergence(name: str, order: int, steps: int) -> None:
    exact = X0 * math.exp(math.sin(2.0))
    errors = [(fixed(solver_named(name).tableau, count) - exact).abs().max().item() for count in (steps, 2 * steps)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


def test_order_of_the_error_estimate() -> None:
    # The estimate of one step compares orders 5 and 4, so it falls like h^5.
    estimates = []
    for h in (0.2, 0.1):
        k = [waves(0.0, X0)]
        for a, c in zip((*DOPRI5.a[1:], DOPRI5.b), (*DOPRI5.c[1:], 1.0), strict=True):
            k.append(waves(c * h, X0 + h * sum(w * v for w, v in zip(a, k, strict=False))))
        estimates.append((h * sum(w * v for w, v in zip(DOPRI5.e, k, strict=True))).abs().max().item())
    assert math.log2(estimates[0] / estimates[1]) == pytest.approx(5, abs=0.3)


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


def test_a_kick_is_rejected_and_resolved() -> None:
    # A narrow pulse of area one at t = 5: large steps must be taken back.
    def pulse(t: float, x: Tensor) -> Tensor:
        return torch.full_like(x, math.exp(-(((t - 5.0) / 0.05) ** 2)) / (0.05 * math.sqrt(math.pi)))

    solution = solve(pulse, torch.zeros(1, dtype=torch.float64), 10.0, rtol=1e-8, atol=1e-8, save_at=[4.9, 5.1])
    assert solution.stats.rejected > 0
    assert solution.state.item() == pytest.approx(1.0, abs=1e-6)


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


@pytest.mark.parametrize("method", [*OWN, "midpoint", "bosh3"])
@pytest.mark.parametrize("gradient", ["discrete", "autograd", "adjoint"])
@pytest.mark.parametrize("memory", [0, 400, 2**28])
@pytest.mark.slow
def test_evaluations_are_counted_truly(method: str, gradient: str, memory: int) -> None:
    p = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    field = Counting(p)
    options = {"step_size": 0.2, "rtol": 1e-5, "atol": 1e-5, "gradient": gradient, "memory": memory}
    solution = solve(field, X0.abs(), 1.0, method, save_at=[0.5], **options)
    assert solution.stats.evaluations == field.count() > 0
    assert solution.stats.backward_evaluations == 0
    forward = field.count()
    (solution.state.sum() + solution.saved.sum()).backward()
    assert solution.stats.evaluations == forward
    assert solution.stats.backward_evaluations == field.count() - forward > 0


def test_evaluations_without_a_gradient() -> None:
    for method, expected in (("euler", 5), ("rk4", 20), ("midpoint", 10)):
        field = Counting(torch.tensor(0.5))
        stats = solve(field, X0.abs(), 1.0, method, step_size=0.2).stats
        assert stats == Stats(evaluations=expected, accepted=5)
        assert field.count() == expected
    stats = solve(Counting(torch.tensor(0.5)), X0.abs(), 1.0).stats
    assert stats.evaluations == 2 + 6 * (stats.accepted + stats.rejected)


@pytest.mark.parametrize("method", [*OWN, "midpoint", "explicit_adams", "bosh3"])
def test_save_at_any_order_with_repeats(method: str) -> None:
    times = [0.7, 0.0, 1.0, 0.25, 0.7]
    solution = solve(waves, X0, 1.0, method, step_size=0.01, rtol=1e-8, atol=1e-8, save_at=times)
    expected = torch.stack([X0 * math.exp(math.sin(t)) for t in times])
    tolerance = {"euler": 2e-2, "midpoint": 1e-4, "explicit_adams": 1e-4}.get(method, 1e-6)
    torch.testing.assert_close(solution.saved, expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(solution.saved[2], solution.state)
    assert torch.equal(solution.saved[1], X0)
    assert {0.0, 0.25, 0.7, 1.0} <= set(solution.times)
    assert solve(waves, X0, 1.0, method, save_at=torch.tensor(times)[:2]).saved.shape == (2, 2, 2)
    assert solve(waves, X0, 1.0, method).saved.shape == (0, 2, 2)


@pytest.mark.parametrize("method", OWN)
def test_stops_a_rounding_error_apart(method: str) -> None:
    # 0.1 + 0.2 is the next number after 0.3.
    x0 = torch.ones(1, dtype=torch.float64, requires_grad=True)
    solution = solve(lambda t, x: -x, x0, 0.1 + 0.2, method, step_size=0.001, rtol=1e-8, atol=1e-8, save_at=[0.3])
    assert solution.times[-2:] == (0.3, 0.1 + 0.2)
    (grad,) = torch.autograd.grad(solution.state, x0)
    assert grad.item() == pytest.approx(math.exp(-0.3), abs=1e-3)


def test_a_short_step_to_a_stop_does_not_slow_the_rest() -> None:
    plain = solve(waves, X0, 6.0, rtol=1e-6, atol=1e-6).stats.accepted
    stopped = solve(waves, X0, 6.0, rtol=1e-6, atol=1e-6, save_at=[3.0, 3.0 + 1e-7]).stats.accepted
    assert stopped <= plain + 3


def test_last_fixed_step_is_shortened() -> None:
    solution = solve(lambda t, x: torch.ones_like(x), torch.zeros(1, dtype=torch.float64), 1.0, "euler", step_size=0.3)
    assert solution.times == pytest.approx((0.0, 0.3, 0.6, 0.9, 1.0))
    assert solution.state.item() == pytest.approx(1.0)


@pytest.mark.parametrize("method", [*OWN, "midpoint", "bosh3"])
@pytest.mark.parametrize("gradient", ["discrete", "autograd", "adjoint"])
def test_callback_sees_every_accepted_step(method: str, gradient: str) -> None:
    seen: list[tuple[float, Tensor]] = []
    x0 = X0.clone().requires_grad_()
    solution = solve(
        waves,
        x0,
        1.0,
        method,
        step_size=0.05,
        rtol=1e-6,
        atol=1e-6,
        gradient=gradient,
        save_at=[0.33],
        callback=lambda t, x: seen.append((t, x.clone())),
    )
    assert tuple(t for t, _ in seen) == solution.times[1:]
    torch.testing.assert_close(seen[-1][1], solution.state.detach())
    for t, x in seen:
        assert not x.requires_grad
        torch.testing.assert_close(x, X0 * math.exp(math.sin(t)), rtol=0, atol=5e-2)


def test_callback_errors_pass_through() -> None:
    class StopHere(Exception):
        pass

    def stop(t: float, x: Tensor) -> None:
        raise StopHere

    with pytest.raises(StopHere):
        solve(waves, X0, 1.0, callback=stop)


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


@pytest.mark.parametrize("method", OWN)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 2), (0, 4)])
def test_states_of_any_shape(method: str, shape: tuple[int, ...]) -> None:
    x0 = torch.ones(shape, dtype=torch.float64, requires_grad=True)
    solution = solve(lambda t, x: -x, x0, 1.0, method, step_size=0.01)
    torch.testing.assert_close(solution.state, x0 * math.exp(-1.0), rtol=1e-2, atol=0)
    solution.state.sum().backward()
    assert x0.grad.shape == shape


@pytest.mark.parametrize("method", OWN)
def test_input_is_neither_changed_nor_handed_out(method: str) -> None:
    x0 = X0.clone()
    solution = solve(waves, x0, 1.0, method, save_at=[0.0])
    solution.state.zero_()
    solution.saved.zero_()
    assert torch.equal(x0, X0)


def test_strided_input() -> None:
    x0 = X0.t()
    torch.testing.assert_close(solve(waves, x0, 1.0).state, solve(waves, x0.contiguous(), 1.0).state)


def test_float32_stays_float32() -> None:
    for method in (*OWN, "bosh3"):
        assert solve(lambda t, x: -x, X0.float(), 1.0, method).state.dtype == torch.float32


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_gradient_mode(mode: object) -> None:
    with mode():
        state = solve(waves, X0.clone().requires_grad_(), 1.0).state
    assert not state.requires_grad
    torch.testing.assert_close(state, solve(waves, X0, 1.0).state)


BAD = [
    ({"t": 0.0}, "positive"),
    ({"t": -1.0}, "positive"),
    ({"t": math.nan}, "positive"),
    ({"t": math.inf}, "finite"),
    ({"method": "eulr"}, "did you mean 'euler'.*Known: euler, rk4, dopri5"),
    ({"step_size": 0.0}, "step_size.*positive"),
    ({"step_size": -1.0}, "positive"),
    ({"rtol": -1.0}, "negative"),
    ({"rtol": 0.0, "atol": 0.0}, "both zero"),
    ({"rtol": math.nan}, "negative"),
    ({"max_steps": 0}, "at least 1"),
    ({"save_at": [2.0]}, r"give times in \[0, 1\]"),
    ({"save_at": [-0.1]}, "give times in"),
    ({"save_at": [math.nan]}, "give times in"),
    ({"adjoint": {"method": "eulr"}}, "method.*did you mean 'euler'"),
    ({"adjoint": {"step_size": 0.0}}, "step_size"),
    ({"adjoint": {"rtol": -1.0}}, "negative"),
    ({"x0": torch.ones(2, dtype=torch.int64)}, r"x0\.float\(\)"),
    ({"x0": [1.0]}, "tensor"),
]


@pytest.mark.parametrize(("wrong", "cure"), BAD)
def test_bad_options_are_refused_before_any_evaluation(wrong: dict[str, object], cure: str) -> None:
    field = Counting(torch.tensor(0.5))
    with pytest.raises(InputError, match=cure):
        solve(field, **{"x0": X0, "t": 1.0, **wrong})
    assert field.count() == 0


def test_parts_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(InputError, match="solver_named"):
        room.solve(waves, X0, 1.0, "euler")
    with pytest.raises(InputError, match=r"Discrete\(\)"):
        room.solve(waves, X0, 1.0, gradient="discrete")


def test_a_field_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"\[2, 2\] to one of \[2, 1\]"):
        solve(lambda t, x: x.mean(1, keepdim=True), X0, 1.0)


def test_an_equal_mesh_by_hand() -> None:
    # Steps of 1 and 2 at 0.5 and 1 of the longest that the tolerance allows: 1.5 such lengths, two steps of 0.75 each.
    assert equal_mesh([0.0, 1.0, 3.0], [0.5**5, 1.0], 5) == pytest.approx((1.5, 3.0))
    assert equal_mesh([0.0, 2.0], [0.0], 5) == (2.0,)


@pytest.mark.parametrize(
    ("shares", "count"),
    [
        ([0.69], 1),
        ([0.71], 2),
        ([0.5, 0.5, 0.59], 2),  # of two steps each at most 0.8 of the longest
        ([0.5, 0.5, 0.61], 3),
        ([0.849] * 4, 4),
        ([0.851] * 4, 5),
        ([0.889] * 20, 20),
        ([0.891] * 20, 21),
        ([0.0] * 27, 3),  # a step may be ten times as long as the last, nine by 0.9
    ],
)
def test_steps_of_an_equal_mesh(shares: list[float], count: int) -> None:
    mesh = equal_mesh(range(len(shares) + 1), [share**5 for share in shares], 5)
    assert len(mesh) == count
    assert mesh[-1] == len(shares)
    assert all(a < b for a, b in pairwise((0.0, *mesh)))


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
