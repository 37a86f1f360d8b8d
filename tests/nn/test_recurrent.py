import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from dissensus.nn._recurrent import ADGN, G2
from model_graphs import close


def test_adgn_is_pygs_antisymmetric_layer_again_and_again(ring_graph: Data) -> None:
    model = ADGN(5, 8, 3, num_layers=5, epsilon=0.2, gamma=0.3).eval()
    layer = pyg.AntiSymmetricConv(8, num_iters=5, epsilon=0.2, gamma=0.3)
    layer.load_state_dict(model.antisymmetric.state_dict())
    expected = layer(model.encode(ring_graph.x), ring_graph.edge_index)
    assert close(model(ring_graph.x, ring_graph.edge_index), model.decoder(expected))


def test_g2_gates_by_the_squared_differences_to_the_neighbours(ring_graph: Data) -> None:
    model = G2(5, 8, 3, num_layers=1).eval()
    x = model.encode(ring_graph.x)
    own = torch.stack([torch.arange(12)] * 2)
    source, target = torch.cat([ring_graph.edge_index, own], 1)
    hat = pyg.GCNConv(8, 8)
    hat.load_state_dict(model.gate.state_dict())
    y = torch.relu(hat(x, ring_graph.edge_index))
    square = (y[target] - y[source]) ** 2
    total = torch.zeros(12, 8).index_add(0, target, square)
    gate = torch.tanh(total / torch.bincount(target)[:, None])
    hat.load_state_dict(model.update.state_dict())
    expected = (1 - gate) * x + gate * torch.relu(hat(x, ring_graph.edge_index))
    assert close(model(ring_graph.x, ring_graph.edge_index), model.decoder(expected))
