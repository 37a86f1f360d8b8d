import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from dissensus.errors import InputError
from dissensus.nn._residual import GCNII, JKNet, ResidualModel
from model_graphs import close


def test_gcnii_is_a_stack_of_pygs_layers(ring_graph: Data) -> None:
    model = GCNII(5, 8, 3, num_layers=4, alpha=0.2, strength=0.7).eval()
    state = start = model.encode(ring_graph.x)
    for i in range(4):
        layer = pyg.GCN2Conv(8, alpha=0.2, theta=0.7, layer=i + 1, add_self_loops=True)
        layer.load_state_dict(model.layers[i].state_dict())
        state = torch.relu(layer(state, start, ring_graph.edge_index))
    assert close(model(ring_graph.x, ring_graph.edge_index), model.decoder(state))


@pytest.mark.parametrize("conv", ["gcn", "gat", "sage"])
def test_residual_layers_are_pygs_plus_a_linear_map(ring_graph: Data, conv: str) -> None:
    model = ResidualModel(5, 8, 3, conv=conv, num_layers=2, norm="layer", heads=2 if conv == "gat" else 1).eval()
    state = ring_graph.x
    for layer, residual, norm in zip(model.layers, model.residuals, model.norms, strict=True):
        width = state.shape[1]
        same = {
            "gcn": lambda w=width: pyg.GCNConv(w, 8),
            "gat": lambda w=width: pyg.GATConv(w, 4, 2),
            "sage": lambda w=width: pyg.SAGEConv(w, 8),
        }[conv]()
        same.load_state_dict(layer.state_dict())
        state = torch.relu(norm(same(state, ring_graph.edge_index) + residual(state)))
    assert close(model(ring_graph.x, ring_graph.edge_index), model.decoder(state))


def test_residual_networks_follow_the_whole_recipe(ring_graph: Data) -> None:
    torch.manual_seed(0)
    recipe = {"num_layers": 15, "norm": "layer", "pre_linear": True, "dropout": 0.0, "input_dropout": 0.0}
    model = ResidualModel(5, 8, 3, **recipe)
    state = model.pre_linear(ring_graph.x)
    for layer, residual, norm in zip(model.layers, model.residuals, model.norms, strict=True):
        same = pyg.GCNConv(8, 8)
        same.load_state_dict(layer.state_dict())
        state = torch.relu(norm(same(state, ring_graph.edge_index) + residual(state)))
    scores = model(ring_graph.x, ring_graph.edge_index)
    assert close(scores, model.decoder(state))
    scores.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_jumping_knowledge_reads_every_layer(ring_graph: Data) -> None:
    model = JKNet(5, 8, 3, num_layers=3).eval()
    states = model.trajectory(ring_graph.x, ring_graph.edge_index, [1, 2, 3])
    assert close(model(ring_graph.x, ring_graph.edge_index), model.decoder(torch.cat(list(states), 1)))
    with pytest.raises(InputError, match="jump"):
        JKNet(5, 8, 3, jump="sum")
