"""Fields whose affine part the solver takes into its weights: the same solution and gradients as the whole field."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dissensus.dynamics import Kuramoto, Opinion, ReactionDiffusion
from dissensus.graph import build
from dissensus.solve import AutogradField, Field, Semilinear, solver_named
from dissensus.solve._tableau import Weights
from solve_fields import solve

NODES, CHANNELS = 11, 3


def put_together(split: Semilinear, x: Tensor, core: Tensor) -> Tensor:
    """f from the value of g."""
    return split.gain * core + (0.0 if split.drive is None else split.drive) - split.decay * x


def fields(dtype: torch.dtype = torch.float64) -> dict[str, tuple[Field, tuple[Tensor, ...]]]:
    generator = torch.Generator().manual_seed(0)
    pattern = build(torch.randint(0, NODES, (2, 40), generator=generator), NODES).pattern
    values = pattern.row_softmax(torch.randn(pattern.entries, generator=generator, dtype=torch.float64))
    options = torch.rand(CHANNELS, CHANNELS, generator=generator, dtype=torch.float64)
    source = torch.randn(NODES, CHANNELS, generator=generator, dtype=torch.float64)
    rates = torch.rand(NODES, 1, generator=generator, dtype=torch.float64)
    given = [p.detach().to(dtype).requires_grad_() for p in (values, options, source, rates)]
    values, options, source, rates = given
    made: dict[str, Field] = {
        name: Opinion(pattern, values, options, source, damping=0.7, attention=0.3, saturation=name)
        for name in ("tanh", "arctan", "softsign", "gelu", "linear")
    }
    made["own attention"] = Opinion(pattern, values, options, source, damping=0.7, attention=rates)
    made["own damping"] = Opinion(pattern, values, options, source, damping=rates + 1.0, attention=0.2)
    made["fixed source"] = Opinion(pattern, values, options, source.detach(), damping=0.7, attention=0.3)
    made["one source"] = Opinion(pattern, values, options, source.detach()[0], damping=0.7, attention=0.3)
    made["diffusion"] = ReactionDiffusion(pattern, values, source, linear=-1.0)
    made["reaction"] = ReactionDiffusion(pattern, values, source, linear=rates - 2.0, cubic=-0.1)
    made["phases"] = Kuramoto(pattern, values, source, coupling=0.8)
    made["mean phase"] = Kuramoto(pattern, values, source, coupling=0.8, mean_phase=True)
    return {name: (field, (values, options, source, rates)) for name, field in made.items()}


def whole(field: Field) -> Field:
    """The same field, which the solver cannot take apart."""
    return AutogradField(field.differentiable, field.parameters)


@pytest.mark.parametrize("name", list(fields()))
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("memory", [0, 4000, 2**28])
@pytest.mark.slow
def test_solution_and_gradients_are_those_of_the_whole_field(name: str, method: str, memory: int) -> None:
    results = []
    for take in (lambda field: field, whole):
        field, parameters = fields()[name]
        x0 = torch.linspace(-1.0, 1.0, NODES * CHANNELS, dtype=torch.float64).view(NODES, CHANNELS).requires_grad_()
        options: dict[str, Any] = {"step_size": 0.15, "rtol": 1e-6, "atol": 1e-6, "memory": memory, "save_at": [0.4]}
        solution = solve(take(field), x0, 2.0, method, **options)
        loss = solution.state.sin().sum() + solution.saved.square().sum()
        grads = torch.autograd.grad(loss, (x0, *parameters), allow_unused=True)
        results.append((solution.times, solution.state.detach(), [g for g in grads if g is not None]))
    (times, state, grads), (other_times, other_state, other_grads) = results
    np.testing.assert_allclose(times, other_times, rtol=1e-7)
    torch.testing.assert_close(state, other_state, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(grads, other_grads, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", list(fields()))
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("memory", [0, 2000, 2**28])
@pytest.mark.slow
def test_single_precision(name: str, method: str, memory: int) -> None:
    results = []
    for dtype in (torch.float64, torch.float32):
        field, parameters = fields(dtype)[name]
        x0 = torch.linspace(-1.0, 1.0, NODES * CHANNELS, dtype=dtype).view(NODES, CHANNELS).requires_grad_()
        options: dict[str, Any] = {"step_size": 0.15, "rtol": 1e-5, "atol": 1e-5, "memory": memory, "save_at": [0.4]}
        solution = solve(field, x0, 2.0, method, **options)
        loss = solution.state.sin().sum() + solution.saved.square().sum()
        grads = torch.autograd.grad(loss, (x0, *parameters), allow_unused=True)
        results.append([solution.state.detach().double(), *(g.double() for g in grads if g is not None)])
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", list(fields()))
def test_the_parts_make_up_the_field(name: str) -> None:
    field, _ = fields()[name]
    x = torch.linspace(-1.0, 1.0, NODES * CHANNELS, dtype=torch.float64).view(NODES, CHANNELS)
    form = field.semilinear
    torch.testing.assert_close(put_together(form, x, form.value(0.0, x, None)), field(0.0, x), rtol=1e-14, atol=1e-14)
    assert (form.value is not field) == (name != "own damping")
    assert (form.index is None) == (name in ("own damping", "fixed source", "one source"))


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_weights_follow_the_stages(method: str) -> None:
    # f(x) = gain g(x) + drive - decay x with numbers in place of tensors, stage by stage.
    tableau, h, gain, decay, drive, x = solver_named(method).tableau, 0.8, 1.7, 0.6, 0.4, -0.9
    weights, values, slopes = Weights.of(tableau, h, gain, decay), [], []
    for i, row in enumerate((*tableau.a, tableau.b)):
        stage = x + h * sum(a * slope for a, slope in zip(row, slopes, strict=True))
        combined = weights.stages[i]
        assert len(combined.values) == len(values) == i
        got = combined.state * x + combined.drive * drive + np.dot(combined.values, values)
        assert got == pytest.approx(stage, abs=1e-14)
        values.append(np.cos(stage))
        slopes.append(gain * values[-1] + drive - decay * stage)
    if tableau.adaptive:
        error = weights.error.state * x + weights.error.drive * drive + np.dot(weights.error.values, values)
        assert error == pytest.approx(h * np.dot(tableau.e, slopes), abs=1e-14)


def test_a_field_is_its_own_core() -> None:
    field = AutogradField(lambda t, x: -x)
    assert field.semilinear == Semilinear(field, field.vjp)
    x = torch.ones(2)
    torch.testing.assert_close(put_together(field.semilinear, x, field(0.0, x)), -x)
