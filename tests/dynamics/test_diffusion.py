"""Reaction and diffusion against its equation written out densely, and its derivatives."""

from __future__ import annotations

import pytest
import torch

from dissensus.dynamics import Kuramoto, ReactionDiffusion
from vector_fields import C, N, check, dense, graph, leaf


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


@pytest.mark.parametrize("self_loops", [True, False])
def test_reaction_diffusion_is_its_equation(self_loops: bool) -> None:
    pattern, values = graph(self_loops)
    x, source, linear, quadratic, cubic = leaf(N, C), leaf(N, C), leaf(), leaf(C), leaf(N, 1)
    expected = dense(pattern, values) @ x + linear * x + quadratic * x**2 + cubic * x**3 + source
    check(
        lambda v, s, r1, r2, r3: ReactionDiffusion(pattern, v, s, linear=r1, quadratic=r2, cubic=r3),
        [values, source, linear, quadratic, cubic],
        x,
        expected,
    )


@pytest.mark.parametrize("linear", [-1.0, 0.5])
def test_reaction_diffusion_with_plain_numbers(linear: float) -> None:
    pattern, values = graph()
    x = leaf(N, C)
    expected = dense(pattern, values) @ x + linear * x - 0.25 * x**2
    check(lambda v: ReactionDiffusion(pattern, v, linear=linear, quadratic=-0.25), [values], x, expected)


def test_reaction_diffusion_with_a_linear_term_per_node() -> None:
    pattern, values = graph()
    x, linear = leaf(N, C), leaf(N, 1)
    expected = dense(pattern, values) @ x + linear * x
    check(lambda v, r: ReactionDiffusion(pattern, v, linear=r), [values, linear], x, expected)


def test_euler_limit_is_that_of_the_decay() -> None:
    pattern, values = graph()
    assert ReactionDiffusion(pattern, values, linear=-4.0).euler_limit == 0.25
    assert ReactionDiffusion(pattern, values, linear=torch.tensor(-2.0)).euler_limit == 0.5
    assert ReactionDiffusion(pattern, values, linear=1.0).euler_limit == float("inf")


def test_parameters_that_need_no_gradient_cost_none() -> None:
    pattern, values = graph()
    x, frequency = torch.randn(N, C, dtype=torch.float64), torch.randn(N, C, dtype=torch.float64)
    fields = (
        ReactionDiffusion(pattern, values.detach(), x.clone(), linear=-1.0),
        Kuramoto(pattern, values.detach(), frequency, coupling=1.0),
    )
    for field in fields:
        grads = [torch.zeros_like(p) for p in field.parameters]
        field.vjp(0.0, x)[1](torch.ones_like(x), grads, None)
        assert all(float(grad.abs().sum()) == 0.0 for grad in grads)
