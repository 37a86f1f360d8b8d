"""Coupled oscillators against their equations written out densely, and their derivatives."""

from __future__ import annotations

import pytest
import torch

from dissensus.dynamics import Kuramoto, Oscillators
from dissensus.solve import Euler, solve
from vector_fields import C, N, check, dense, graph, leaf


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


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
