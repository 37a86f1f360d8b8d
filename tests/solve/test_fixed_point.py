import math

import numpy as np
import pytest
import torch
from torch import Tensor

from dissensus import solve
from dissensus.dynamics import Opinion
from dissensus.errors import InputError, SolverError
from dissensus.graph import build
from dissensus.solve._fixed_point import fixed_point

D, ALPHA = 0.7, 0.5


def opinion(scale: float = 1.0, attention: float | None = None, n: int = 40, o: int = 3, seed: int = 0) -> Opinion:
    """Opinion dynamics with right-stochastic matrices; every tensor parameter wants a gradient."""
    generator = torch.Generator().manual_seed(seed)
    graph = build(torch.randint(0, n, (2, 4 * n), generator=generator), n)
    weights = torch.rand(graph.pattern.entries, generator=generator, dtype=torch.float64) + 0.1
    values = graph.pattern.row_normalize(weights)
    options = torch.softmax(torch.randn(o, o, generator=generator, dtype=torch.float64), 1)
    source = scale * torch.randn(n, o, generator=generator, dtype=torch.float64)
    for parameter in (values, options, source):
        parameter.requires_grad_()
    u = D / (ALPHA + 3) if attention is None else attention
    return Opinion(graph.pattern, values, options, source, damping=D, attention=u, self_reinforcement=ALPHA)


def with_parameters(field: Opinion, *parameters: Tensor) -> Opinion:
    values, options, source = parameters
    return Opinion(
        field.pattern, values, options, source, damping=D, attention=field.attention, self_reinforcement=ALPHA
    )


@pytest.mark.parametrize("method", ["picard", "anderson"])
def test_known_fixed_point(method: str) -> None:
    found = fixed_point(torch.cos, torch.zeros(3, dtype=torch.float64), tol=1e-12, method=method)
    assert found.converged
    assert found.state.allclose(torch.full((3,), 0.7390851332151607, dtype=torch.float64), atol=1e-11)
    assert found.residual == pytest.approx(float((found.state.cos() - found.state).abs().max()), abs=1e-15)


def test_iterations_count_evaluations() -> None:
    calls = []

    def step(x: Tensor) -> Tensor:
        calls.append(x)
        return 0.5 * x + 1.0

    found = fixed_point(step, torch.zeros(2), tol=1e-5)
    assert found.iterations == len(calls)


def test_linear_map_takes_as_many_anderson_steps_as_it_has_modes() -> None:
    rates = torch.tensor([0.9, -0.5, 0.2], dtype=torch.float64)
    found = fixed_point(lambda x: rates * x + 1.0, torch.zeros(3, dtype=torch.float64), tol=1e-10)
    assert found.state.allclose(1.0 / (1.0 - rates), atol=1e-8)
    assert found.iterations <= 7


@pytest.mark.parametrize(("relative", "scale"), [(0.9, 1.0), (1.0, 1.0), (1.0, 0.1)])
def test_anderson_is_not_slower_than_picard(relative: float, scale: float) -> None:
    field = opinion(scale, attention=relative * D / (ALPHA + 3))
    start = torch.zeros(40, 3, dtype=torch.float64)
    picard, anderson = (
        solve.equilibrium(field, start, tol=1e-7, max_iter=20_000, method=method) for method in ("picard", "anderson")
    )
    assert anderson.iterations <= picard.iterations
    assert anderson.state.allclose(picard.state, atol=1e-4)


def test_equilibrium_rests_and_does_not_depend_on_the_start() -> None:
    field = opinion()
    near, far = (
        solve.equilibrium(field, torch.full((40, 3), start, dtype=torch.float64), tol=1e-13) for start in (0.0, 50.0)
    )
    assert float(field(0.0, near.state.detach()).abs().max()) < 1e-12
    assert near.state.allclose(far.state, atol=1e-10)


def test_picard_with_step_one_over_d_is_the_textbook_iteration() -> None:
    field = opinion()
    x = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = solve.equilibrium(field, x, max_iter=1, method="picard", strict=False)
    textbook = (field(0.0, x) + D * x) / D  # (S(..) + B)/d
    assert found.state.allclose(textbook, atol=1e-14)


def test_long_integration_ends_at_the_equilibrium() -> None:
    field = opinion()
    start = torch.zeros(40, 3, dtype=torch.float64)
    integrated = solve.solve(field, start, 200.0, solve.RK4(0.5)).state
    assert solve.equilibrium(field, start, tol=1e-10).state.allclose(integrated, atol=1e-8)


@pytest.mark.slow
def test_gradcheck() -> None:
    field = opinion(n=7, o=2)
    parameters = [p.detach().clone().requires_grad_() for p in field.parameters]
    start = torch.zeros(7, 2, dtype=torch.float64)

    def state(*given: Tensor) -> Tensor:
        return solve.equilibrium(with_parameters(field, *given), start, tol=1e-13).state

    assert torch.autograd.gradcheck(state, parameters)


def test_gradcheck_of_a_plain_function() -> None:
    weight = torch.tensor([[0.3, -0.4], [0.1, 0.2]], dtype=torch.float64, requires_grad=True)
    bias = torch.tensor([0.5, -0.2], dtype=torch.float64, requires_grad=True)
    start = torch.zeros(3, 2, dtype=torch.float64)

    def state(weight: Tensor, bias: Tensor) -> Tensor:
        field = solve.AutogradField(lambda t, x: torch.tanh(x @ weight + bias) - x, (weight, bias))
        return solve.equilibrium(field, start, tol=1e-13).state

    assert torch.autograd.gradcheck(state, (weight, bias))


def test_implicit_gradient_is_that_of_a_very_long_integration() -> None:
    field = opinion()
    cotangent = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    start = torch.zeros(40, 3, dtype=torch.float64)
    found = solve.equilibrium(field, start, tol=1e-11)
    implicit = torch.autograd.grad(found.state, field.parameters, cotangent)
    integrated = solve.solve(field, start, 150.0 / D, solve.Euler(1.0 / D), solve.Autograd()).state
    through_time = torch.autograd.grad(integrated, field.parameters, cotangent)
    for one, other in zip(implicit, through_time, strict=True):
        assert one.allclose(other, atol=1e-6)
    assert found.stats.backward_evaluations > 1


def test_memory_does_not_depend_on_the_iterations() -> None:
    field = opinion()
    start = torch.zeros(40, 3, dtype=torch.float64)

    def kept(tol: float) -> tuple[int, int]:
        saved: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
            found = solve.equilibrium(field, start, tol=tol, method="picard")
        return sum(saved), found.iterations

    (few, short), (many, long) = kept(1e-2), kept(1e-12)
    assert long > 3 * short
    assert few == many == start.numel()


def test_the_start_has_no_gradient() -> None:
    start = torch.zeros(40, 3, dtype=torch.float64, requires_grad=True)
    solve.equilibrium(opinion(), start).state.sum().backward()
    assert start.grad is None


def test_zero_cotangent_needs_no_iteration() -> None:
    field = opinion()
    found = solve.equilibrium(field, torch.zeros(40, 3, dtype=torch.float64))
    grads = torch.autograd.grad(found.state, field.parameters, torch.zeros(40, 3, dtype=torch.float64))
    assert all(not grad.any() for grad in grads)
    assert found.stats.backward_evaluations == 0


def test_no_convergence_names_the_cure() -> None:
    start = torch.ones(2, dtype=torch.float64)
    with pytest.raises(SolverError, match="Raise max_iter"):
        fixed_point(lambda x: -x + 1.0, start, method="picard", max_iter=9)
    found = fixed_point(lambda x: -x + 1.0, start, method="picard", max_iter=9, strict=False)
    assert not found.converged
    assert found.iterations == 9


def test_overflow_ends_the_iteration() -> None:
    found = fixed_point(lambda x: x * 1e200, torch.ones(2, dtype=torch.float64), method="picard", strict=False)
    assert not found.converged
    assert found.iterations < 10


def test_anderson_starts_anew_where_the_residual_grows() -> None:
    def kinked(x: Tensor) -> Tensor:
        # Two slopes: a linear model made on one side is wrong by far on the other.
        return torch.where(x > 0, 0.999 * x - 0.01, -0.9 * x - 0.01)

    found = fixed_point(kinked, torch.full((1,), 5.0, dtype=torch.float64), tol=1e-9)
    assert found.converged
    assert float(found.state) == pytest.approx(-0.01 / 1.9, abs=1e-8)


def test_float32_and_empty_states() -> None:
    assert fixed_point(torch.cos, torch.zeros(3), tol=1e-6).state.dtype == torch.float32
    assert fixed_point(torch.cos, torch.zeros(0)).converged


@pytest.mark.parametrize(
    "wrong", [{"tol": 0.0}, {"max_iter": 0}, {"memory": 0}, {"method": "newton"}, {"tol": math.nan}]
)
def test_bad_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        fixed_point(torch.cos, torch.zeros(1), **wrong)


@pytest.mark.parametrize("step_size", [0.0, -1.0, np.inf])
def test_bad_step_is_refused(step_size: float) -> None:
    with pytest.raises(InputError, match="step_size"):
        solve.equilibrium(opinion(), torch.zeros(40, 3, dtype=torch.float64), step_size=step_size)
