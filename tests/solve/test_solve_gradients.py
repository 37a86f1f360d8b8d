import gc
import math
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from dissensus.solve import AutogradField
from solve_fields import Counting, Drift, solve, waves

TIGHT = {"rtol": 1e-9, "atol": 1e-9}
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    *((method, "discrete", {"memory": memory}) for method in ("euler", "rk4", "dopri5") for memory in (0, 300, 2**28)),
    *((method, "autograd", {}) for method in ("euler", "rk4", "dopri5", "midpoint", "explicit_adams", "bosh3")),
    *((method, "adjoint", {}) for method in ("rk4", "dopri5", "midpoint", "bosh3")),
    ("euler", "adjoint", {"adjoint": {"method": "dopri5"}, "step_size": 0.002}),
    ("dopri5", "adjoint", {"adjoint": {"method": "rk4", "step_size": 0.05}}),
    ("dopri5", "adjoint", {"adjoint": {"method": "bosh3", "rtol": 1e-7, "atol": 1e-7}}),
    ("rk4", "adjoint", {"adjoint": {"method": "adaptive_heun", "rtol": 1e-4, "atol": 1e-4}}),
]


def start(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize(("method", "gradient", "options"), KINDS)
@pytest.mark.slow
def test_gradcheck_of_the_whole_solve(method: str, gradient: str, options: dict[str, Any]) -> None:
    drift = Drift()

    def run(x0: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        field = AutogradField(lambda t, x: torch.tanh(x @ weight) + t * bias - x, (weight, bias))
        fixed = {"step_size": 0.02 if gradient == "adjoint" else 0.25}
        tolerances = {"rtol": 1e-6, "atol": 1e-6} if method == "bosh3" else TIGHT
        solution = solve(field, x0, 0.6, method, gradient=gradient, save_at=[0.0, 0.25], **fixed | tolerances | options)
        return solution.state, solution.saved

    inputs = (start(2, 2), drift.weight, drift.bias)
    # The continuous adjoint is exact only as far as its steps are small; torchdiffeq's step sizes move with the input.
    loose = gradient == "adjoint" or method == "bosh3"
    assert gradcheck(run, inputs, atol=2e-3 if loose else 1e-5, rtol=1e-3, fast_mode=loose)


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_discrete_adjoint_is_backpropagation_to_rounding(method: str) -> None:
    results = []
    for gradient, memory in (("autograd", 0), ("discrete", 0), ("discrete", 700), ("discrete", 2**28)):
        drift, x0 = Drift(), start(3, 2)
        solution = solve(
            drift, x0, 3.0, method, step_size=0.3, gradient=gradient, memory=memory, save_at=[0.0, 1.1, 3.0]
        )
        loss = solution.state.square().sum() + (solution.saved * torch.arange(1.0, 4.0).view(3, 1, 1)).sum()
        results.append((loss.detach(), *torch.autograd.grad(loss, (x0, *drift.parameters()))))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_steps_are_held_fixed() -> None:
    # x' = a x by one Euler step: dx/da = h x0, whatever decided on h.
    a = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    field = AutogradField(lambda t, x: a * x, (a,))
    solve(field, torch.ones(1, dtype=torch.float64), 0.5, "euler", step_size=0.5).state.backward()
    assert a.grad.item() == pytest.approx(0.5)


@pytest.mark.parametrize("gradient", ["discrete", "autograd", "adjoint"])
@pytest.mark.parametrize("method", ["rk4", "dopri5", "bosh3"])
def test_parameters_get_gradients_when_the_start_needs_none(method: str, gradient: str) -> None:
    grads = []
    for needs in (False, True):
        drift = Drift()
        x0 = start(2, 2).detach().requires_grad_(needs)
        solve(drift, x0, 1.0, method, step_size=0.1, gradient=gradient).state.sum().backward()
        grads.append((drift.weight.grad, drift.bias.grad))
    torch.testing.assert_close(*grads)
    assert all(g.abs().max() > 1e-3 for g in grads[0])


@pytest.mark.parametrize("gradient", ["discrete", "autograd", "adjoint"])
def test_frozen_parameters_get_none(gradient: str) -> None:
    drift, x0 = Drift(), start(2, 2)
    drift.weight.requires_grad_(False)
    solve(drift, x0, 1.0, gradient=gradient).state.sum().backward()
    assert drift.weight.grad is None
    assert drift.bias.grad is not None
    assert x0.grad is not None


@pytest.mark.parametrize("gradient", ["discrete", "autograd", "adjoint"])
def test_field_without_state_or_parameters(gradient: str) -> None:
    x0 = start(2, 2)
    solve(lambda t, x: torch.ones_like(x), x0, 1.0, gradient=gradient).state.sum().backward()
    torch.testing.assert_close(x0.grad, torch.ones_like(x0))


@pytest.mark.parametrize("gradient", ["discrete", "autograd", "adjoint"])
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_cotangents_of_any_stride(method: str, gradient: str) -> None:
    weight = start(2, 3).detach()
    grads = []
    for transposed in (False, True):
        x0 = start(3, 2)
        state = solve(waves, x0, 1.0, method, step_size=0.1, gradient=gradient).state
        (state.t() * weight if transposed else state * weight.t().contiguous()).sum().backward()
        grads.append(x0.grad)
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("memory", [0, 2**28])
def test_backward_twice(memory: int) -> None:
    drift, x0 = Drift(), start(2, 2)
    loss = solve(drift, x0, 1.0, memory=memory).state.sum()
    first = torch.autograd.grad(loss, (x0, drift.weight), retain_graph=True)
    torch.testing.assert_close(first, torch.autograd.grad(loss, (x0, drift.weight)))


def test_changes_in_place_before_the_backward_pass_are_noticed() -> None:
    for changed in ("state", "parameter"):
        drift, x0 = Drift(), (start(2, 2) * 1.0)
        loss = solve(drift, x0, 1.0, memory=0).state.sum()
        with torch.no_grad():
            (x0 if changed == "state" else drift.weight).mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@pytest.mark.parametrize(("method", "stages"), [("euler", 1), ("rk4", 4), ("dopri5", 6)])
def test_stages_are_kept_within_the_budget(method: str, stages: int) -> None:
    x0 = start(6, 2)
    state, cost = (states * x0.numel() * x0.element_size() for states in (1, 3 * stages))
    solution = solve(Drift(), x0, 2.0, method, step_size=0.2, rtol=1e-5, atol=1e-5, memory=3 * cost + 11 * state)
    count, tape = solution.stats.accepted, solution.state.grad_fn.tape
    assert 4 < count <= 11
    assert list(tape.states) == list(range(count))
    assert [len(pullbacks) for pullbacks in tape.pullbacks] == [stages] * 3
    assert all(x.untyped_storage().nbytes() == state for x in tape.states.values())
    solution.state.sum().backward()
    # Kept stages are pulled back; the others are evaluated first.
    assert solution.stats.backward_evaluations == stages * (3 + 2 * (count - 3))


def test_rejected_steps_leave_nothing_behind() -> None:
    def pulse(t: float, x: Tensor) -> Tensor:
        return x * math.exp(-(((t - 2.0) / 0.05) ** 2))

    solution = solve(pulse, start(2, 2), 4.0, rtol=1e-6, atol=1e-6, save_at=[1.9, 2.1])
    assert solution.stats.rejected > 0
    assert [len(pullbacks) for pullbacks in solution.state.grad_fn.tape.pullbacks] == [6] * solution.stats.accepted
    solution.state.sum().backward()
    assert solution.stats.backward_evaluations == 6 * solution.stats.accepted


def test_states_are_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        x0 = start(2, 2) * 1.0
        solution = solve(waves, x0, 1.0, "rk4", step_size=0.25, save_at=[0.5])
        state = weakref.ref(solution.state.grad_fn.tape.states[2])
        assert state() is not None
        del solution, x0
        assert state() is None
    finally:
        gc.enable()


def test_evaluate_is_differentiable() -> None:
    p = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda p, x: Counting(p).differentiable(0.0, x), (p, start(2, 2)))
    drift = Drift()
    assert gradcheck(lambda x: AutogradField(drift, tuple(drift.parameters())).differentiable(0.5, x), (start(2, 2),))


def test_adjoint_tolerances_matter() -> None:
    exact = math.exp(math.sin(2.0))
    errors = []
    for tol in (1e-2, 1e-9):
        x0 = torch.ones(1, dtype=torch.float64, requires_grad=True)
        options = {"gradient": "adjoint", "adjoint": {"rtol": tol, "atol": tol}, **TIGHT}
        solve(waves, x0, 2.0, **options).state.sum().backward()
        errors.append(abs(x0.grad.item() - exact))
    assert errors[1] < 1e-7 < errors[0]


def test_adjoint_keeps_no_steps() -> None:
    solution = solve(waves, start(2, 2), 5.0, gradient="adjoint")
    assert solution.stats.accepted > 3
    assert len(solution.state.grad_fn.saved_tensors) == 1
