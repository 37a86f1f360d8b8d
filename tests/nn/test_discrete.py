"""The discrete models against PyG's own layers, and their particulars."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import DiffGroupNorm, GATConv, GCNConv, PairNorm, SAGEConv, SGConv
from torch_geometric.utils import barabasi_albert_graph

from dissensus import measure, nn
from dissensus.errors import InputError
from dissensus.kernels import dropout

N, IN, HIDDEN, OUT = 20, 5, 8, 3


@pytest.fixture
def graph() -> tuple[Tensor, Tensor, Tensor]:
    """Features, directed edges (one node listens to nobody, one has a self-loop) and weights."""
    generator = torch.Generator().manual_seed(0)
    adjacency = torch.rand(N, N, generator=generator) < 0.2
    adjacency.fill_diagonal_(False)
    adjacency[:, 7] = False
    adjacency[3, 3] = True
    edges = adjacency.nonzero().t().contiguous()
    return (
        torch.randn(N, IN, generator=generator, dtype=torch.float64),
        edges,
        0.2 + torch.rand(edges.shape[1], generator=generator, dtype=torch.float64),
    )


def reference(model: Any, layers: list[torch.nn.Module], activation: Any, norms: Any = None) -> Any:
    """PyG's layers with the model's parameters, which go by the same names."""
    for own, layer in zip(model.layers, layers, strict=True):
        layer.double().load_state_dict(own.state_dict())
        layer.eval()

    def forward(x: Tensor, edges: Tensor, *weight: Tensor) -> Tensor:
        for i, layer in enumerate(layers):
            x = layer(x, edges, *weight)
            if i < len(layers) - 1:
                x = activation(x if norms is None else norms[i](x))
        return x

    return forward


def make(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.create(name, in_channels=IN, hidden_channels=HIDDEN, out_channels=OUT, **options)
    return model.double().eval()


def same(model: Any, other: Any, x: Tensor, *graph: Tensor) -> None:
    """Equal scores, and equal gradients of the features."""
    results = []
    for function in (model, other):
        leaf = x.clone().requires_grad_()
        out = function(leaf, *graph)
        out.square().sum().backward()
        results.append((out.detach(), leaf.grad))
    torch.testing.assert_close(results[0], results[1])


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


def test_mlp_never_looks_at_the_graph(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    model = make("mlp", num_layers=3)
    first, second, last = ((layer.weight, layer.bias) for layer in model.layers)
    expected = F.linear(F.relu(F.linear(F.relu(F.linear(x, *first)), *second)), *last)
    torch.testing.assert_close(model(x, edges), expected)
    with pytest.raises(InputError, match="edge_index"):
        model(x, edges + N)


def test_dropout_has_the_distribution_of_pytorchs() -> None:
    torch.manual_seed(0)
    x = torch.ones(200, 500, dtype=torch.float64)
    dropped = dropout(x, 0.3, True)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / 0.7))
    assert abs(float(kept.double().mean()) - 0.7) < 0.01
    assert dropout(x, 0.3, False) is x
    assert dropout(x, 0.0, True) is x


def test_batches_are_checked(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    with pytest.raises(InputError, match="batch"):
        make("gcn-pairnorm")(x, edges, batch=torch.arange(N).flip(0))


def test_layers_can_be_watched(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    from torch_geometric.data import Data

    x, edges, _ = graph
    for name in ("gcn", "gat", "sage"):
        trace = measure.watch(make(name, num_layers=4), Data(x=x, edge_index=edges))
        assert [tuple(state.shape) for state in trace.states] == [(N, HIDDEN)] * 3 + [(N, OUT)]


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
