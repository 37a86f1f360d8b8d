"""BIMP's dynamics as a layer inside networks that are not ours."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import GCNConv, Sequential
from torch_geometric.transforms import ToSparseTensor

from dissensus import data, train
from dissensus.errors import InputError
from dissensus.nn import BIMP, OpinionConv

EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 2, 0]])


def layer(in_channels: int = 3, out_channels: int = 4, steps: int = 8, **options: Any) -> OpinionConv:
    torch.manual_seed(0)
    return OpinionConv(in_channels, out_channels, steps, heads=2, attention_channels=4, **options).double()


def states(n: int = 5, channels: int = 3) -> Tensor:
    return torch.randn(n, channels, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def literal_step(conv: OpinionConv, x: Tensor, edge_index: Tensor) -> Tensor:
    """One Euler step of size 1 from X(0), with dense matrices built from the layer's weights."""
    x0, n = conv.lin(x), x.shape[0]
    loops = torch.arange(n)
    source, target = torch.cat([edge_index, torch.stack([loops, loops])], 1)
    keys, queries = (part(x0).view(n, 2, 2) for part in (conv.communication.key, conv.communication.query))
    communication = torch.zeros(n, n, dtype=x.dtype)
    for head in range(2):
        scores = torch.full((n, n), -torch.inf, dtype=x.dtype)
        scores[target, source] = (keys[target, head] * queries[source, head]).sum(-1) / 2**0.5
        communication = communication + scores.softmax(1) / 2
    gram = x0.T @ x0 / n
    keys, queries = (part(gram).view(4, 2, 2) for part in (conv.options.key, conv.options.query))
    own = conv.options.own_score * torch.eye(4, dtype=x.dtype)
    options = sum((keys[:, h] @ queries[:, h].T / 2**0.5 + own).softmax(1) / 2 for h in range(2))
    eye_n, eye_o = (torch.eye(k, dtype=x.dtype) for k in (n, 4))
    # u = d/(alpha + 3) with d = 0.8, alpha = 1.5
    drive = 0.8 / 4.5 * (0.5 * x0 + (communication + eye_n) @ x0 @ (options + eye_o).T)
    return x0 + (-0.8 * x0 + torch.tanh(drive) + x0)


def test_one_step_is_the_equation() -> None:
    conv = layer(steps=1, damping=0.8, self_reinforcement=1.5)
    torch.testing.assert_close(conv(states(), EDGES), literal_step(conv, states(), EDGES))


@pytest.mark.parametrize("options", [{"steps": 5}, {"steps": 6, "step_size": 0.5}, {"time": 3.0}])
def test_agrees_with_bimp(options: dict[str, Any]) -> None:
    conv = layer(**options)
    depth = {"method": "euler", "step_size": conv.step_size, "time": conv.steps * conv.step_size}
    model = BIMP(3, 4, 2, heads=2, attention_channels=4, **({"time": 3.0} if conv.time is not None else depth)).double()
    model.eval()
    model.encoder.linear.load_state_dict(conv.lin.state_dict())
    model.communication.load_state_dict(conv.communication.state_dict())
    model.options.load_state_dict(conv.options.state_dict())
    weight = 0.5 + torch.rand(EDGES.shape[1], generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    expected = model.integrate(states(), EDGES, weight).state
    torch.testing.assert_close(conv(states(), EDGES, weight), expected)


@pytest.mark.parametrize("options", [{}, {"option_attention": "identity"}, {"time": 2.0, "method": "rk4"}])
def test_permutation_equivariance(options: dict[str, Any]) -> None:
    conv, order = layer(**options), torch.tensor([3, 0, 4, 1, 2])
    place = torch.argsort(order)
    torch.testing.assert_close(conv(states()[order], place[EDGES]), conv(states(), EDGES)[order])


@pytest.mark.slow
def test_gradcheck() -> None:
    conv = layer(steps=3)
    names, parameters = zip(*conv.named_parameters(), strict=True)

    def run(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, EDGES))

    inputs = [states().requires_grad_(), *(p.detach().clone().requires_grad_() for p in parameters)]
    assert torch.autograd.gradcheck(run, inputs, atol=1e-6)


def test_a_batch_is_its_graphs_one_by_one() -> None:
    conv = layer()
    graphs = [Data(x=states(), edge_index=EDGES), Data(x=states(3) + 1.0, edge_index=torch.tensor([[0, 1], [1, 2]]))]
    batch = Batch.from_data_list(graphs)
    together = conv(batch.x, batch.edge_index, batch=batch.batch)
    torch.testing.assert_close(together, torch.cat([conv(graph.x, graph.edge_index) for graph in graphs]))


@pytest.mark.slow
def test_trains_inside_a_network_that_is_not_ours() -> None:
    data = KarateClub()[0]
    torch.manual_seed(0)
    model = Sequential(
        "x, edge_index",
        [
            (GCNConv(data.num_features, 16), "x, edge_index -> x"),
            torch.nn.ReLU(),
            (OpinionConv(16, 16, steps=4), "x, edge_index -> x"),
            (GCNConv(16, 4), "x, edge_index -> x"),
        ],
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for _ in range(60):
        optimizer.zero_grad()
        scores = model(data.x, data.edge_index)
        F.cross_entropy(scores[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    assert all(not torch.equal(p, before[name]) for name, p in model.named_parameters())
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1) == data.y
    assert float(right[~data.train_mask].float().mean()) > 0.6  # four classes, one labelled node each


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_sparse_matrix_in_place_of_edges(layout: torch.layout) -> None:
    weight = 0.5 + torch.rand(EDGES.shape[1], generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    graph = ToSparseTensor(attr="edge_weight", layout=layout)(Data(states(), EDGES, edge_weight=weight))
    model = Sequential("x, adj_t", [(layer(), "x, adj_t -> x"), torch.nn.Linear(4, 2).double()])
    torch.testing.assert_close(model(graph.x, graph.adj_t), model[1](model[0](states(), EDGES, weight)))
    with pytest.raises(InputError, match="leave out edge_weight"):
        model[0](graph.x, graph.adj_t, weight)
    with pytest.raises(InputError, match=r"5 x 5, but x has 4 nodes"):
        model[0](states(4), graph.adj_t)


def test_a_sparse_matrix_without_values() -> None:
    sparse = pytest.importorskip("torch_sparse")
    conv, adj_t = layer(), sparse.SparseTensor(row=EDGES[1], col=EDGES[0], sparse_sizes=(5, 5))
    torch.testing.assert_close(conv(states(), adj_t), conv(states(), EDGES))


def test_the_width_of_the_input_is_taken_from_the_first_one() -> None:
    torch.manual_seed(0)
    model = Sequential("x, edge_index", [(OpinionConv(-1, 4, steps=2), "x, edge_index -> x"), torch.nn.Linear(4, 2)])
    copied = deepcopy(model)
    assert model(states().float(), EDGES).shape == (5, 2)
    assert model[0].lin.weight.shape == (4, 3)
    copied.load_state_dict(model.state_dict())
    assert torch.equal(copied(states().float(), EDGES), model(states().float(), EDGES))
    model[0].reset_parameters()
    assert not torch.equal(copied[0].lin.weight, model[0].lin.weight)
    result = train.fit(
        Sequential("x, edge_index", [(OpinionConv(-1, 4), "x, edge_index -> x")]),
        data.load("karate").split(1),
        train.TrainConfig(epochs=2),
    )
    assert len(result.history) == 2


def test_reset_parameters() -> None:
    conv = layer()
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.fill_(100.0)
    conv.reset_parameters()
    assert conv.lin.weight.abs().max() < 1.0
    assert conv.communication.key.weight.abs().max() < 0.1
    assert conv.options.own_score == 8.0


def test_repr() -> None:
    assert repr(OpinionConv(3, 4)) == "OpinionConv(3, 4, steps=8)"
    assert repr(OpinionConv(3, 4, time=2.0)) == "OpinionConv(3, 4, time=2.0, method='dopri5')"


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"in_channels": -2}, "in_channels is -2"),
        ({"step_size": 0.0}, "step_size is 0.0: give a positive"),
        ({"time": -1.0}, "time is -1.0: give a positive"),
        ({"attention_ratio": 0.0}, "attention_ratio is 0.0: give a positive"),
        ({"method": "eulr"}, "did you mean 'euler'"),
        ({"option_attention": "node"}, "Known: gram, identity"),
        ({"saturation": "than"}, "did you mean 'tanh'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        layer(**options)
