import math

import pytest
import torch
from torch import Tensor

from dissensus import solve as room
from dissensus.errors import InputError
from dissensus.solve._integrate import Stats
from solve_fields import Counting, solve, waves

X0 = torch.tensor([[1.0, -0.5], [0.3, 2.0]], dtype=torch.float64)
OWN = ("euler", "rk4", "dopri5")


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
    ({"rtol": 0.0, "atol": 0.0}, "one must be positive"),
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
