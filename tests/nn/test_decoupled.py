from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn import SGConv

from dissensus.errors import InputError
from dissensus.nn._decoupled import APPNP, GPRGNN
from model_graphs import close
from pyg_models import IN, OUT, N, make, same


def test_appnp_propagates_as_pyg_does(ring_graph: Data) -> None:
    model = APPNP(5, 8, 3, num_layers=6, alpha=0.15).eval()
    scores = model.decoder(model.encode(ring_graph.x))
    assert close(model(ring_graph.x, ring_graph.edge_index), pyg.APPNP(6, 0.15)(scores, ring_graph.edge_index))


def test_gprgnn_starts_as_appnp_and_learns_its_weights(ring_graph: Data) -> None:
    torch.manual_seed(1)
    model = GPRGNN(5, 8, 3, num_layers=6, alpha=0.15).eval()
    other = APPNP(5, 8, 3, num_layers=6, alpha=0.15).eval()
    other.load_state_dict({k: v for k, v in model.state_dict().items() if k != "gamma"})
    assert float(model.gamma.detach().sum()) == pytest.approx(1.0)
    assert close(model(ring_graph.x, ring_graph.edge_index), other(ring_graph.x, ring_graph.edge_index))
    model(ring_graph.x, ring_graph.edge_index).sum().backward()
    assert model.gamma.grad is not None
    assert bool(model.gamma.grad.ne(0).all())


def test_sgc_is_pygs(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, weight = graph
    model = make("sgc", num_layers=4)
    layer = SGConv(IN, OUT, K=4).double()
    layer.lin.load_state_dict(model.linear.state_dict())
    same(model, layer, x, edges, weight)


def test_dgc_is_its_equation(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    model = make("dgc", num_layers=6, time=3.0)
    adjacency = torch.zeros(N, N, dtype=torch.float64)
    adjacency[edges[1], edges[0]] = 1.0
    adjacency.fill_diagonal_(1.0)
    degree = adjacency.sum(1)
    step = 0.5 * torch.eye(N, dtype=torch.float64) + 0.5 * adjacency / (degree[:, None] * degree[None]).sqrt()
    with torch.no_grad():
        expected = model.linear(torch.linalg.matrix_power(step, 6) @ x)
        torch.testing.assert_close(model(x, edges), expected)
    with pytest.raises(InputError, match="time"):
        make("dgc", time=0.0)
