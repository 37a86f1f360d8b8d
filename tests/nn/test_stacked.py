from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import DiffGroupNorm, GATConv, GCNConv, PairNorm, SAGEConv
from torch_geometric.utils import barabasi_albert_graph

from dissensus import nn
from dissensus.errors import InputError
from pyg_models import HIDDEN, IN, OUT, N, make, reference, same


@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_is_pygs(graph: tuple[Tensor, Tensor, Tensor], weighted: bool) -> None:
    x, *rest = graph if weighted else graph[:2]
    model = make("gcn", num_layers=3)
    same(
        model, reference(model, [GCNConv(IN, HIDDEN), GCNConv(HIDDEN, HIDDEN), GCNConv(HIDDEN, OUT)], F.relu), x, *rest
    )


def test_normalised_gcn_is_pygs(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    layers = [GCNConv(IN, HIDDEN), GCNConv(HIDDEN, OUT)]
    model = make("gcn-pairnorm")
    same(model, reference(model, layers, F.relu, [PairNorm()]), x, edges)
    model = make("gcn-group", groups=4, group_weight=0.1)
    norm = DiffGroupNorm(HIDDEN, 4, 0.1).double()
    norm.load_state_dict(model.norms[0].state_dict())
    same(model, reference(model, layers, F.relu, [norm.eval()]), x, edges)


def test_pair_norm_keeps_nodes_apart_where_gcn_does_not() -> None:
    torch.manual_seed(0)
    edges = barabasi_albert_graph(60, 4)
    x = torch.randn(60, IN)
    energy = {}
    for name in ("gcn", "gcn-pairnorm"):
        torch.manual_seed(0)
        model = nn.create(name, in_channels=IN, hidden_channels=16, out_channels=OUT, num_layers=33).eval()
        state = model.trajectory(x, edges, [32])[0].detach()
        energy[name] = float((state - state.mean(0)).norm())
    assert energy["gcn"] < 1e-3 * energy["gcn-pairnorm"]


def test_gat_is_pygs(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    model = make("gat", heads=4)
    layers = [GATConv(IN, 2, 4), GATConv(HIDDEN, OUT, 4, concat=False)]
    same(model, reference(model, layers, F.elu), x, edges)
    _, (loops, attention) = layers[0](x, edges, return_attention_weights=True)
    expected = torch.zeros(N, N, dtype=torch.float64)
    expected[loops[1], loops[0]] = attention.mean(1).detach()
    torch.testing.assert_close(model.graphs(x, edges)[0].to_dense(), expected)
    with pytest.raises(InputError, match="hidden_channels = 9"):
        make("gat", heads=3)


def test_sage_is_pygs(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, weight = graph
    model = make("sage")
    same(model, reference(model, [SAGEConv(IN, HIDDEN), SAGEConv(HIDDEN, OUT)], F.relu), x, edges)
    first = model.layers[0]
    with torch.no_grad():
        state = torch.zeros(N, IN, dtype=torch.float64)
        for i in range(N):
            into = edges[1] == i
            if into.any():
                state[i] = (weight[into, None] * x[edges[0, into]]).sum(0) / weight[into].sum()
        expected = torch.relu(first.lin_l(state) + first.lin_r(x))
        torch.testing.assert_close(model.trajectory(x, edges, [1], weight)[0], expected)


def test_mlp_never_looks_at_the_graph(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    model = make("mlp", num_layers=3)
    first, second, last = ((layer.weight, layer.bias) for layer in model.layers)
    expected = F.linear(F.relu(F.linear(F.relu(F.linear(x, *first)), *second)), *last)
    torch.testing.assert_close(model(x, edges), expected)
    with pytest.raises(InputError, match="edge_index"):
        model(x, edges + N)


@pytest.mark.slow
def test_depth_128_is_quick() -> None:
    torch.manual_seed(0)
    edges = barabasi_albert_graph(2000, 3)
    model = nn.create("gcn", in_channels=32, hidden_channels=32, out_channels=7, num_layers=128)
    x = torch.rand(2000, 32)
    model(x, edges).sum().backward()
    start = time.perf_counter()
    model(x, edges).sum().backward()
    assert time.perf_counter() - start < 5.0
