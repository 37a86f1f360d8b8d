import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Data

from dissensus import measure
from dissensus.errors import InputError
from measured_models import Flow, Stack, make_data


@pytest.fixture
def data() -> Data:
    return make_data()


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_gradient_norms_of_parameters_are_those_of_backward(data):
    model = Stack(3)
    found = measure.gradient_norms(model, data)
    assert list(found) == ["convs.0", "convs.1", "convs.2", "out"]
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    model.eval()
    nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
    for name, module in [("convs.1", model.convs[1]), ("out", model.out)]:
        expected = torch.cat([p.grad.flatten() for p in module.parameters()]).norm()
        assert found[name] == pytest.approx(expected.item(), rel=1e-5)
    total = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
    assert sum(norm**2 for norm in found.values()) ** 0.5 == pytest.approx(total, rel=1e-5)


def test_gradient_norms_respect_the_training_mask_and_the_given_loss(data):
    model = Stack(1)
    data.train_mask = torch.arange(12) < 4
    masked = measure.gradient_norms(model, data)
    by_hand = measure.gradient_norms(
        model, data, loss=lambda output, data: nn.functional.cross_entropy(output[:4], data.y[:4])
    )
    assert masked == by_hand
    del data.train_mask
    assert measure.gradient_norms(model, data) != masked
    data.y[4:] = -1
    assert measure.gradient_norms(model, data) == masked
    constant = measure.gradient_norms(model, data, loss=lambda output, data: torch.zeros(()))
    assert set(constant.values()) == {0.0}


def test_gradient_norms_of_states_by_the_chain_rule():
    data = make_data(dtype=torch.float64)
    model = pyg.Sequential(
        "x, edge_index", [(pyg.SimpleConv("sum"), "x, edge_index -> x"), (pyg.SimpleConv("sum"), "x, edge_index -> x")]
    )
    found = measure.gradient_norms(model, data, of="states", loss=lambda output, data: output.sum())
    adjacency = torch.zeros(12, 12, dtype=torch.float64)
    adjacency[data.edge_index[1], data.edge_index[0]] = 1
    last = torch.ones(12, 5, dtype=torch.float64)
    first = adjacency.T @ last
    assert next(iter(found)) == "input"
    assert list(found.values()) == pytest.approx([g.norm().item() for g in (adjacency.T @ first, first, last)])


def test_gradients_vanish_with_depth_in_a_deep_stack(data):
    norms = list(measure.gradient_norms(Stack(30), data, of="states").values())
    assert len(norms) == 31
    assert norms[0] < 1e-4 * norms[-1]


def test_gradient_norms_refuse_what_they_cannot_measure(data):
    with pytest.raises(InputError, match="loss="):
        measure.gradient_norms(Stack(1), Data(x=data.x, edge_index=data.edge_index))
    with pytest.raises(InputError, match="parameters, states"):
        measure.gradient_norms(Stack(1), data, of="layers")
    with pytest.raises(InputError, match="of='states'"):
        measure.gradient_norms(Stack(1), data, layers="children")
    with pytest.raises(InputError, match="no trainable parameters"):
        measure.gradient_norms(Flow(), data)
