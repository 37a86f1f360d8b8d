from __future__ import annotations

from typing import Any

import pytest
import torch

from continuous_models import EULER, HIDDEN, IN, OUT, make, slope
from dissensus import nn
from dissensus.errors import InputError


def test_kuramoto(data: Any) -> None:
    a, x, velocity = slope(make("kuramoto", coupling=2.5, **EULER), data)
    assert float(x.min()) >= 0.0
    pairs = torch.sin(x.unsqueeze(0) - x.unsqueeze(1))
    torch.testing.assert_close(velocity, x + 2.5 * torch.einsum("ij,ijc->ic", a, pairs))
    a, x, velocity = slope(make("kuramoto", equation="code", **EULER), data)
    radius = torch.sqrt((a @ x.cos()) ** 2 + (a @ x.sin()) ** 2)
    torch.testing.assert_close(velocity, x + 3.0 * radius * torch.sin(a @ x - x))
    with pytest.raises(InputError, match="coupling"):
        make("kuramoto", coupling=0.0)
    with pytest.raises(InputError, match="equation"):
        make("kuramoto", equation="papre")


@pytest.mark.parametrize("symplectic", [True, False])
def test_graphcon_tran_steps_as_the_paper_does(data: Any, symplectic: bool) -> None:
    model = make("graphcon-tran", method="euler", step_size=0.5, stiffness=0.9, damping=0.4, symplectic=symplectic)
    a = model.graphs(data.x, data.edge_index)[0].to_dense()
    with torch.no_grad():
        y = v = model.encoder(data.x)
        for _ in range(3):
            moved = v + 0.5 * (a @ y - 0.9 * y - 0.4 * v)
            y, v = y + 0.5 * (moved if symplectic else v), moved
        torch.testing.assert_close(model.trajectory(data.x, data.edge_index, [1.5])[0], y)


def test_graphcon_gcn_steps_as_the_paper_does(data: Any) -> None:
    torch.manual_seed(0)
    model = nn.GraphCONGCN(IN, HIDDEN, OUT, method="euler", residual=True).double().eval()
    adjacency = torch.eye(34, dtype=torch.float64)
    adjacency[data.edge_index[1], data.edge_index[0]] = 1.0
    degree = adjacency.sum(1)
    normalised = adjacency / (degree.unsqueeze(0) * degree.unsqueeze(1)).sqrt()
    with torch.no_grad():
        y = v = model.encoder(data.x)
        for _ in range(4):
            coupling = torch.relu(model.convolution(normalised @ y) + model.residual(y))
            v = v + coupling - y - v
            y = y + v
        torch.testing.assert_close(model.trajectory(data.x, data.edge_index, [4.0])[0], y)
    # With unit stiffness, damping and step the symplectic step is a convolution: Y <- relu(A Y W' + Y R' + b).
    torch.testing.assert_close(y, coupling)
    with pytest.raises(InputError, match="stiffness"):
        nn.GraphCONGCN(IN, HIDDEN, OUT, stiffness=-1.0)


def test_graphcon_under_an_adaptive_solver_is_the_limit_of_small_steps(data: Any) -> None:
    exact = make("graphcon-tran", rtol=1e-8, atol=1e-10, time=2.0)
    steps = make("graphcon-tran", method="euler", step_size=1e-3, time=2.0)
    with torch.no_grad():
        torch.testing.assert_close(steps(data.x, data.edge_index), exact(data.x, data.edge_index), atol=1e-3, rtol=1e-2)
