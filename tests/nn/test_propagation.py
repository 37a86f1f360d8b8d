import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.transforms import FeaturePropagation as PyGFeaturePropagation

from dissensus.errors import InputError
from dissensus.nn._propagation import FeaturePropagation, LabelPropagation
from model_graphs import close


def test_label_propagation_is_pygs_and_needs_the_labels(ring_graph: Data) -> None:
    model = LabelPropagation(5, 8, 3, alpha=0.8, num_layers=7)
    with pytest.raises(InputError, match=r"model\.prepare"):
        model(ring_graph.x, ring_graph.edge_index)
    model.prepare(ring_graph)
    reference = pyg.LabelPropagation(num_layers=7, alpha=0.8)
    expected = reference(ring_graph.y, ring_graph.edge_index, ring_graph.train_mask, post_step=lambda y: y)
    assert close(model(ring_graph.x, ring_graph.edge_index), expected)
    again = LabelPropagation(5, 8, 3, alpha=0.8, num_layers=7)
    again.load_state_dict(model.state_dict())
    assert close(again(ring_graph.x, ring_graph.edge_index), expected)


def test_label_propagation_of_numbers_averages_the_training_targets(ring_graph: Data) -> None:
    ring_graph.y = 10.0 + torch.arange(ring_graph.num_nodes).float()
    targets = ring_graph.y[ring_graph.train_mask]
    model = LabelPropagation(5, 8, 1, num_layers=1)
    model.prepare(ring_graph)
    scores = model(ring_graph.x, ring_graph.edge_index)
    assert scores.shape == (ring_graph.num_nodes, 1)
    assert targets.min() <= scores.min()
    assert scores.max() <= targets.max()
    lonely = model(ring_graph.x, torch.zeros(2, 0, dtype=torch.int64))[~ring_graph.train_mask]
    assert close(lonely, targets.mean().expand_as(lonely))


def test_label_propagation_refuses_one_label_a_graph(ring_graph: Data) -> None:
    ring_graph.batch = torch.zeros(ring_graph.num_nodes, dtype=torch.int64)
    with pytest.raises(InputError, match="choose another model"):
        LabelPropagation(5, 8, 3).prepare(ring_graph)


def test_feature_propagation_fills_in_as_pyg_does(ring_graph: Data) -> None:
    missing = ~ring_graph.train_mask
    x = ring_graph.x.masked_fill(missing[:, None], 0.0)
    model = FeaturePropagation(5, 8, 3, iterations=20).eval()
    wanted = PyGFeaturePropagation(missing_mask=missing[:, None].expand_as(x), num_iterations=20)(
        Data(x=x, edge_index=ring_graph.edge_index)
    ).x
    filled = model.fill(x, ring_graph.edge_index)
    assert close(filled, wanted)
    assert torch.equal(filled[~missing], x[~missing])
    first = model(x, ring_graph.edge_index)
    x.mul_(2.0)  # changed in place: what was filled in before is not used again
    assert not close(model(x, ring_graph.edge_index), first)
