"""The peers' vector fields against their equations written out densely, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from dissensus.dynamics import Kuramoto, Oscillators, ReactionDiffusion
from dissensus.graph import Pattern, build
from dissensus.solve import Euler, Field, solve

N, C = 7, 3


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


def graph(self_loops: bool = True) -> tuple[Pattern, Tensor]:
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 3, 6, 2], [1, 2, 3, 4, 5, 6, 4, 1, 0, 6]])
    pattern = build(edges, N, self_loops=self_loops).pattern
    return pattern, pattern.row_softmax(torch.randn(pattern.entries, dtype=torch.float64)).requires_grad_()


def leaf(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


def check(make: Callable[..., Field], parameters: list[Tensor], x: Tensor, expected: Tensor) -> None:
    """Value with and without ``out``, and every derivative against finite differences."""
    field = make(*parameters)
    out = torch.empty_like(x)
    torch.testing.assert_close(field(0.0, x.detach()), expected.detach())
    field(0.0, x.detach(), out)
    torch.testing.assert_close(out, expected.detach())
    value, pullback = field.vjp(0.0, x.detach(), torch.empty_like(x))
    torch.testing.assert_close(value, expected.detach())
    g = torch.randn_like(x)
    grads = [torch.ones_like(p) for p in field.parameters]
    by_x = pullback(g, grads, None)
    literal = torch.autograd.grad(expected, [x, *parameters], g, allow_unused=True)
    torch.testing.assert_close(by_x, literal[0])
    torch.testing.assert_close(pullback(g, [torch.zeros_like(p) for p in field.parameters], out), literal[0])
    torch.testing.assert_close(pullback(g, (), None), literal[0])  # the state's alone
    for total, grad in zip(grads, literal[1:], strict=True):
        torch.testing.assert_close(total - 1.0, grad)  # added to what was there
    assert torch.autograd.gradcheck(lambda x, *p: make(*p).differentiable(0.0, x), (x, *parameters))


def dense(pattern: Pattern, values: Tensor) -> Tensor:
    return torch.zeros(N, N, dtype=values.dtype).index_put((pattern.row.long(), pattern.col.long()), values)


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


@pytest.mark.parametrize("lookahead", [0.0, 0.7])
def test_oscillators_with_attention_are_their_equation(lookahead: float) -> None:
    pattern, values = graph()
    x = leaf(2, N, C)
    y, v = x
    force = dense(pattern, values) @ y - 0.8 * y - 0.3 * v
    expected = torch.stack([v + lookahead * force, force])
    check(
        lambda a: Oscillators(pattern, a, stiffness=0.8, damping=0.3, lookahead=lookahead),
        [values],
        x,
        expected,
    )


def test_oscillators_with_convolution_are_their_equation() -> None:
    pattern, values = graph()
    x, weight, residual, bias = leaf(2, N, C), leaf(C, C), leaf(C, C), leaf(C)
    y, v = x
    force = torch.relu(dense(pattern, values) @ (y @ weight.t()) + y @ residual.t() + bias) - y - v
    check(
        lambda a, w, r, b: Oscillators(pattern, a, weight=w, residual=r, bias=b, rectify=True, lookahead=0.5),
        [values, weight, residual, bias],
        x,
        torch.stack([v + 0.5 * force, force]),
    )


def test_oscillators_with_bias_alone_or_residual_alone() -> None:
    pattern, values = graph()
    x, extra, bias = leaf(2, N, C), leaf(C, C), leaf(C)
    y, v = x
    expected = torch.stack([v, dense(pattern, values) @ y + bias - y - v])
    check(lambda a, b: Oscillators(pattern, a, bias=b), [values, bias], x, expected)
    y, v = x
    expected = torch.stack([v, dense(pattern, values) @ y + y @ extra.t() - y - v])
    check(lambda a, r: Oscillators(pattern, a, residual=r), [values, extra], x, expected)


def test_a_lookahead_makes_euler_symplectic() -> None:
    pattern, values = graph()
    matrix, h = dense(pattern, values.detach()), 0.5
    state = torch.randn(2, N, C, dtype=torch.float64)
    field = Oscillators(pattern, values.detach(), lookahead=h)
    y, v = state
    for _ in range(4):
        v = v + h * (matrix @ y - y - v)
        y = y + h * v
    torch.testing.assert_close(solve(field, state, 2.0, Euler(h)).state, torch.stack([y, v]))


def test_kuramoto_is_its_equation() -> None:
    pattern, values = graph()
    x, frequency = leaf(N, C), leaf(N, C)
    matrix = dense(pattern, values)
    pairs = torch.sin(x.unsqueeze(0) - x.unsqueeze(1))  # [i, j, channel]: x_j - x_i
    expected = frequency + 3.0 * torch.einsum("ij,ijc->ic", matrix, pairs)
    check(lambda a, w: Kuramoto(pattern, a, w, coupling=3.0), [values, frequency], x, expected)


def test_kuramoto_with_the_mean_phase_is_its_equation() -> None:
    pattern, values = graph()
    x, frequency = leaf(N, C), leaf(N, C)
    matrix = dense(pattern, values)
    radius = torch.sqrt((matrix @ torch.cos(x)) ** 2 + (matrix @ torch.sin(x)) ** 2)
    expected = frequency + 2.0 * radius * torch.sin(matrix @ x - x)
    check(lambda a, w: Kuramoto(pattern, a, w, coupling=2.0, mean_phase=True), [values, frequency], x, expected)


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
