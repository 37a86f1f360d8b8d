from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from continuous_models import EULER, make, slope
from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import SolverError
from dissensus.graph import build
from dissensus.solve import solve


def test_gread(data: Any) -> None:
    alpha, beta = torch.sigmoid(torch.tensor([-0.5, 0.8], dtype=torch.float64))

    def chosen(name: str, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
        model = make(name, **options, **EULER)
        with torch.no_grad():
            model.time_scale.logit.fill_(-0.5)
            model.strength.logit.fill_(0.8)
        return slope(model, data)

    a, x, velocity = chosen("gread-f")
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + beta * x * (1 - x))
    a, x, velocity = chosen("gread-fb")
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + beta * ((x - a @ x) + x))
    a, x, velocity = chosen("gread-fb", equation="code")
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + beta * ((x + a @ x) + x))
    a, x, velocity = slope(make("gread-f", learn_time_scale=False, **EULER), data)
    torch.testing.assert_close(velocity, a @ x - x + 0.5 * x * (1 - x))


def ring(n: int = 12) -> tuple[Any, Tensor]:
    nodes = torch.arange(n)
    pattern = build(torch.stack([nodes, (nodes + 1) % n]), n).pattern
    return pattern, pattern.row_normalize(torch.ones(pattern.entries, dtype=torch.float64))


def test_fishers_reaction_diverges_below_a_threshold() -> None:
    pattern, values = ring()
    field = ReactionDiffusion(pattern, values, linear=0.0, quadratic=-1.0)  # (A - I)X + X(1 - X)
    torch.manual_seed(0)
    low = -3.0 - torch.rand(12, 2, dtype=torch.float64)
    assert bool((field(0.0, low) < 0).all())
    with pytest.raises(SolverError):
        solve(field, low, 2.0)
    inside = torch.rand(12, 2, dtype=torch.float64)
    torch.testing.assert_close(solve(field, inside, 40.0).state, torch.ones_like(inside), atol=1e-2, rtol=0.0)


def test_the_filter_bank_is_dominated_by_the_ones_vector() -> None:
    pattern, values = ring(6)
    alpha, beta = 1.0, 0.4
    field = ReactionDiffusion(pattern, (alpha - beta) * values, linear=2 * beta - alpha)
    x = solve(field, torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), 60.0).state
    spread = (x - x.mean(0)).norm() / x.norm()
    assert float(spread) < 1e-3
    assert float(x.norm()) > 1e6
