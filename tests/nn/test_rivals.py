"""The deep rivals against PyG's own layers and transforms, with the same parameters."""

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.transforms import FeaturePropagation as PyGFeaturePropagation

from dissensus.errors import InputError
from dissensus.nn._decoupled import APPNP, GPRGNN
from dissensus.nn._propagation import FeaturePropagation, LabelPropagation
from dissensus.nn._recurrent import ADGN, G2
from dissensus.nn._residual import GCNII, JKNet, ResidualModel

LEARNED = (GCNII, APPNP, GPRGNN, JKNet, ADGN, G2, ResidualModel, FeaturePropagation)


@pytest.fixture
def graph() -> Data:
    """A connected undirected graph on 12 nodes with 5 features and 3 classes."""
    torch.manual_seed(0)
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    extra = torch.tensor([[0, 2, 5], [6, 9, 11]])
    edges = torch.cat([ring, extra], 1)
    train = torch.zeros(12, dtype=torch.bool)
    train[:6] = True
    return Data(
        x=torch.rand(12, 5) + 0.1,
        edge_index=torch.cat([edges, edges.flip(0)], 1),
        y=torch.arange(12) // 4,
        train_mask=train,
    )


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, atol=1e-5)


def test_gcnii_is_a_stack_of_pygs_layers(graph: Data) -> None:
    model = GCNII(5, 8, 3, num_layers=4, alpha=0.2, strength=0.7).eval()
    state = start = model.encode(graph.x)
    for i in range(4):
        layer = pyg.GCN2Conv(8, alpha=0.2, theta=0.7, layer=i + 1, add_self_loops=True)
        layer.load_state_dict(model.layers[i].state_dict())
        state = torch.relu(layer(state, start, graph.edge_index))
    assert close(model(graph.x, graph.edge_index), model.decoder(state))


def test_appnp_propagates_as_pyg_does(graph: Data) -> None:
    model = APPNP(5, 8, 3, num_layers=6, alpha=0.15).eval()
    scores = model.decoder(model.encode(graph.x))
    assert close(model(graph.x, graph.edge_index), pyg.APPNP(6, 0.15)(scores, graph.edge_index))


def test_gprgnn_starts_as_appnp_and_learns_its_weights(graph: Data) -> None:
    torch.manual_seed(1)
    model = GPRGNN(5, 8, 3, num_layers=6, alpha=0.15).eval()
    other = APPNP(5, 8, 3, num_layers=6, alpha=0.15).eval()
    other.load_state_dict({k: v for k, v in model.state_dict().items() if k != "gamma"})
    assert float(model.gamma.detach().sum()) == pytest.approx(1.0)
    assert close(model(graph.x, graph.edge_index), other(graph.x, graph.edge_index))
    model(graph.x, graph.edge_index).sum().backward()
    assert model.gamma.grad is not None
    assert bool(model.gamma.grad.ne(0).all())


def test_adgn_is_pygs_antisymmetric_layer_again_and_again(graph: Data) -> None:
    model = ADGN(5, 8, 3, num_layers=5, epsilon=0.2, gamma=0.3).eval()
    layer = pyg.AntiSymmetricConv(8, num_iters=5, epsilon=0.2, gamma=0.3)
    layer.load_state_dict(model.antisymmetric.state_dict())
    expected = layer(model.encode(graph.x), graph.edge_index)
    assert close(model(graph.x, graph.edge_index), model.decoder(expected))


def test_g2_gates_by_the_squared_differences_to_the_neighbours(graph: Data) -> None:
    model = G2(5, 8, 3, num_layers=1).eval()
    x = model.encode(graph.x)
    own = torch.stack([torch.arange(12)] * 2)
    source, target = torch.cat([graph.edge_index, own], 1)
    hat = pyg.GCNConv(8, 8)
    hat.load_state_dict(model.gate.state_dict())
    y = torch.relu(hat(x, graph.edge_index))
    square = (y[target] - y[source]) ** 2
    total = torch.zeros(12, 8).index_add(0, target, square)
    gate = torch.tanh(total / torch.bincount(target)[:, None])
    hat.load_state_dict(model.update.state_dict())
    expected = (1 - gate) * x + gate * torch.relu(hat(x, graph.edge_index))
    assert close(model(graph.x, graph.edge_index), model.decoder(expected))


@pytest.mark.parametrize("conv", ["gcn", "gat", "sage"])
def test_residual_layers_are_pygs_plus_a_linear_map(graph: Data, conv: str) -> None:
    model = ResidualModel(5, 8, 3, conv=conv, num_layers=2, norm="layer", heads=2 if conv == "gat" else 1).eval()
    state = graph.x
    for layer, residual, norm in zip(model.layers, model.residuals, model.norms, strict=True):
        width = state.shape[1]
        same = {
            "gcn": lambda w=width: pyg.GCNConv(w, 8),
            "gat": lambda w=width: pyg.GATConv(w, 4, 2),
            "sage": lambda w=width: pyg.SAGEConv(w, 8),
        }[conv]()
        same.load_state_dict(layer.state_dict())
        state = torch.relu(norm(same(state, graph.edge_index) + residual(state)))
    assert close(model(graph.x, graph.edge_index), model.decoder(state))


def test_residual_networks_follow_the_whole_recipe(graph: Data) -> None:
    torch.manual_seed(0)
    recipe = {"num_layers": 15, "norm": "layer", "pre_linear": True, "dropout": 0.0, "input_dropout": 0.0}
    model = ResidualModel(5, 8, 3, **recipe)
    state = model.pre_linear(graph.x)
    for layer, residual, norm in zip(model.layers, model.residuals, model.norms, strict=True):
        same = pyg.GCNConv(8, 8)
        same.load_state_dict(layer.state_dict())
        state = torch.relu(norm(same(state, graph.edge_index) + residual(state)))
    scores = model(graph.x, graph.edge_index)
    assert close(scores, model.decoder(state))
    scores.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_jumping_knowledge_reads_every_layer(graph: Data) -> None:
    model = JKNet(5, 8, 3, num_layers=3).eval()
    states = model.trajectory(graph.x, graph.edge_index, [1, 2, 3])
    assert close(model(graph.x, graph.edge_index), model.decoder(torch.cat(list(states), 1)))
    with pytest.raises(InputError, match="jump"):
        JKNet(5, 8, 3, jump="sum")


def test_label_propagation_is_pygs_and_needs_the_labels(graph: Data) -> None:
    model = LabelPropagation(5, 8, 3, alpha=0.8, num_layers=7)
    with pytest.raises(InputError, match=r"model\.prepare"):
        model(graph.x, graph.edge_index)
    model.prepare(graph)
    reference = pyg.LabelPropagation(num_layers=7, alpha=0.8)
    expected = reference(graph.y, graph.edge_index, graph.train_mask, post_step=lambda y: y)
    assert close(model(graph.x, graph.edge_index), expected)
    again = LabelPropagation(5, 8, 3, alpha=0.8, num_layers=7)
    again.load_state_dict(model.state_dict())
    assert close(again(graph.x, graph.edge_index), expected)


def test_feature_propagation_fills_in_as_pyg_does(graph: Data) -> None:
    missing = ~graph.train_mask
    x = graph.x.masked_fill(missing[:, None], 0.0)
    model = FeaturePropagation(5, 8, 3, iterations=20).eval()
    wanted = PyGFeaturePropagation(missing_mask=missing[:, None].expand_as(x), num_iterations=20)(
        Data(x=x, edge_index=graph.edge_index)
    ).x
    filled = model.fill(x, graph.edge_index)
    assert close(filled, wanted)
    assert torch.equal(filled[~missing], x[~missing])
    first = model(x, graph.edge_index)
    x.mul_(2.0)  # changed in place: what was filled in before is not used again
    assert not close(model(x, graph.edge_index), first)


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.slow
def test_every_rival_trains_saves_and_shows_its_layers(kind: type, graph: Data, tmp_path) -> None:
    torch.manual_seed(0)
    model = kind(5, 8, 3, num_layers=3, dropout=0.0, input_dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(graph.x, graph.edge_index), graph.y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.9 * losses[0]
    assert all(p.grad is not None for p in model.parameters())
    states = model.eval().trajectory(graph.x, graph.edge_index, [1, 2])
    assert states.shape[:2] == (2, 12)
    model.save(tmp_path / "model.safetensors")
    again = kind.load(tmp_path / "model.safetensors")
    assert close(again(graph.x, graph.edge_index), model(graph.x, graph.edge_index))
