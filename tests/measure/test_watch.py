import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from dissensus import measure
from dissensus import nn as models
from dissensus.errors import InputError
from dissensus.nn import BIMP
from measured_models import Flow, Stack, make_data


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.fixture
def data() -> Data:
    return make_data()


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_watch_reads_a_plain_stack(data):
    model = Stack(3)
    model.convs[1].eval()
    modes = [module.training for module in model.modules()]
    trace = measure.watch(model, data)
    assert trace.names == ("convs.0", "convs.1", "convs.2")
    x = data.x
    for conv, state in zip(model.convs, trace.states, strict=True):
        expected = conv(x, data.edge_index).detach()
        torch.testing.assert_close(state, expected)
        assert not state.requires_grad
        x = expected.relu()
    assert [module.training for module in model.modules()] == modes
    assert hooks_of(model) == 0
    assert len(trace) == 3
    assert "convs.1: [12, 5]" in repr(trace)


def test_further_fields_go_to_models_that_name_them(data):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.NNConv(5, 4, nn.Linear(2, 20))

        def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
            return self.conv(x, edge_index, edge_attr)

    data.edge_attr = torch.rand(data.num_edges, 2)
    model = Net()
    expected = model(data.x, data.edge_index, data.edge_attr)
    assert torch.equal(measure.watch(model, data).states[0], expected)
    assert measure.gradient_norms(model, data, of="states")["input"] > 0
    data.batch = torch.arange(12) // 6
    pairs = models.create("gcn-pairnorm", in_channels=5, hidden_channels=8, out_channels=3).eval()
    expected = pairs.trajectory(data.x, data.edge_index, [1], batch=data.batch)
    assert torch.equal(torch.stack(measure.watch(pairs, data, times=[1]).states), expected)


def test_weights_of_the_graph_go_to_models_that_take_them(data):
    data.edge_weight = torch.rand(data.num_edges) + 0.1
    bare = data.clone()
    del bare.edge_weight
    plain = Stack(2)
    for one, other in zip(measure.watch(plain, data).states, measure.watch(plain, bare).states, strict=True):
        assert torch.equal(one, other)
    theirs = pyg.GCN(5, 8, 2)
    expected = theirs.convs[0](data.x, data.edge_index, data.edge_weight)
    assert torch.equal(measure.watch(theirs, data, layers="convs.0").states[0], expected)
    ours = BIMP(5, 8, 3, method="euler", time=2.0).eval()
    along = [torch.stack(measure.watch(ours, graph, times=[1, 2]).states) for graph in (data, bare)]
    assert torch.equal(along[0], ours.trajectory(data.x, data.edge_index, [1, 2], data.edge_weight))
    assert not torch.equal(along[0], along[1])
    assert measure.gradient_norms(ours, data) != measure.gradient_norms(ours, bare)
    responses = [measure.filter_response(ours, graph, bands=0).sharpening for graph in (data, bare)]
    assert responses[0] != responses[1]


def test_table_has_a_row_of_measures_for_each_layer(data):
    trace = measure.watch(Stack(2), data)
    table = trace.table()
    assert [row["layer"] for row in table] == ["convs.0", "convs.1"]
    for row, state in zip(table, trace.states, strict=True):
        assert row == {"layer": row["layer"], **measure.summary(state, data.edge_index)}


def test_watch_reads_pyg_sequential_and_its_layers_by_choice(data):
    model = pyg.Sequential(
        "x, edge_index",
        [(pyg.GCNConv(5, 6), "x, edge_index -> x"), nn.ReLU(inplace=True), (pyg.SAGEConv(6, 4), "x, edge_index -> x")],
    )
    by_default, children = measure.watch(model, data), measure.watch(model, data, layers="children")
    assert len(by_default) == 2
    assert len(children) == 3
    assert by_default.states[0].min() < 0
    torch.testing.assert_close(children.states[1], by_default.states[0].relu())
    chosen = measure.watch(model, data, layers=[children.names[1]])
    assert chosen.names == children.names[1:2]
    assert measure.watch(model, data, layers=children.names[1]).names == chosen.names
    whole = measure.watch(model, data, layers=[type(model).__name__])
    torch.testing.assert_close(whole.states[0], by_default.states[1])


def test_watch_reads_pyg_models_and_falls_back_to_children(data):
    assert len(measure.watch(pyg.GCN(5, 8, num_layers=4), data)) == 4
    mlp = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
    trace = measure.watch(mlp, data, forward=lambda model, data: model(data.x))
    assert trace.names == ("0", "1", "2")


def test_watch_takes_the_state_out_of_tuples_and_dictionaries(data):
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = pyg.GATConv(5, 4, heads=2)
            self.second = pyg.GATConv(8, 3, heads=1)

        def forward(self, x: Tensor, edge_index: Tensor) -> dict[str, Tensor]:
            x, _ = self.first(x, edge_index, return_attention_weights=True)
            x, (_, weights) = self.second(x, edge_index, return_attention_weights=True)
            return {"weights": weights, "state": x}

    model = Attention()
    trace = measure.watch(model, data)
    assert [list(state.shape) for state in trace.states] == [[12, 8], [12, 3]]
    whole = measure.watch(model, data, layers=["Attention"])
    torch.testing.assert_close(whole.states[0], trace.states[1])


def test_watch_names_repeated_calls_and_leaves_out_pooled_outputs(data):
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.GCNConv(5, 5)
            self.pool = nn.AdaptiveAvgPool2d((1, 5))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for _ in range(3):
                x = self.conv(x, edge_index)
            return self.pool(x[None])[0]

    assert measure.watch(Shared(), data).names == ("conv", "conv#2", "conv#3")
    assert measure.watch(Shared(), data, layers="children").names == ("conv", "conv#2", "conv#3")
    with pytest.raises(InputError, match=r"12 rows.*layers="):
        measure.watch(Shared(), data, layers=["pool"])


@pytest.mark.parametrize("reader", [measure.watch, measure.gradient_norms, measure.filter_response])
def test_a_model_that_raises_is_left_as_it_was(data, reader):
    class Failing(Stack):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            super().forward(x, edge_index)
            raise RuntimeError("on purpose")

    model = Failing(2)
    options = {"of": "states"} if reader is measure.gradient_norms else {}
    with pytest.raises(RuntimeError, match="on purpose"):
        reader(model, data, **options)
    assert hooks_of(model) == 0
    assert model.training
    assert model.dropout.training


def test_watch_with_times_reads_the_trajectory(data):
    model = Flow()
    trace = measure.watch(model, data, times=[0, 1.5])
    assert trace.times == (0.0, 1.5)
    assert trace.names == ("t=0", "t=1.5")
    torch.testing.assert_close(trace.states[1], data.x * 2**1.5)
    assert [row["time"] for row in trace.table()] == [0.0, 1.5]
    assert model.dropout.training
    # Any model that names its milestones is read there.
    model.milestones = (0, 2)
    torch.testing.assert_close(measure.watch(model, data).states[1], data.x * 4)


def test_milestones_of_a_model_without_a_trajectory_mean_something_else(data):
    model = Stack(2)
    model.milestones = "30,60"
    assert measure.watch(model, data).times is None


@pytest.mark.parametrize("name", [name for name in models.names() if name != "label-propagation"])
@pytest.mark.slow
def test_watch_reads_every_model_of_ours_without_further_arguments(data, name):
    # Small features: under Fisher's reaction (gread-f) large negative ones run away within the default time.
    data.x *= 0.3
    model = models.create(name, in_channels=5, hidden_channels=8, out_channels=3)
    trace = measure.watch(model, data)
    assert model.training
    assert all(state.size(0) == 12 and not state.requires_grad for state in trace.states)
    assert all(row["effective_rank"] >= 1 for row in trace.table())
    model.eval()
    if name == "dgc":
        assert trace.times == (0, 62, 125, 188, 250)
    elif name == "sgc":
        assert trace.times == (0, 1, 2)
        torch.testing.assert_close(model.linear(trace.states[-1]), model(data.x, data.edge_index))
    elif models.info(name).continuous:
        assert trace.times == tuple(model.time * k / 4 for k in range(5))
        # Stops may change the steps of an adaptive solver, within its tolerance.
        torch.testing.assert_close(
            model.decoder(trace.states[-1]), model(data.x, data.edge_index), atol=0.02, rtol=0.02
        )
    elif model.milestones:
        assert trace.times == model.milestones
    else:
        assert trace.names == ("layers.0", "layers.1")
        torch.testing.assert_close(trace.states[-1], model(data.x, data.edge_index))


@pytest.mark.parametrize(
    ("method", "step", "time", "times"),
    [
        ("euler", 1.0, 3.0, (0, 1, 2, 3)),
        ("euler", 1.0, 2.5, (0, 1, 2, 2.5)),
        ("euler", 1.0, 0.01, (0, 0.01)),
        ("rk4", 0.1, 0.7, (0, 0.2, 0.4, 0.5, 0.7)),
        ("midpoint", 0.5, 20.0, (0, 5, 10, 15, 20)),
    ],
)
def test_watch_cuts_no_step_of_a_fixed_size(data, method, step, time, times):
    options = {"method": method, "step_size": step, "time": time}
    model = models.create("bimp", in_channels=5, hidden_channels=8, out_channels=3, **options).eval()
    trace = measure.watch(model, data)
    assert trace.times == pytest.approx(times)
    torch.testing.assert_close(model.decoder(trace.states[-1]), model(data.x, data.edge_index))


def test_watch_reads_the_transient_towards_an_equilibrium(data):
    model = models.BIMP(5, 8, 3, depth="equilibrium", time=2.0)
    trace = measure.watch(model, data)
    assert trace.times == (0, 0.5, 1, 1.5, 2)
    expected = model.eval().trajectory(data.x, data.edge_index, trace.times)
    torch.testing.assert_close(torch.stack(trace.states), expected)
    assert measure.watch(model, data, layers="children").names == ("encoder", "decoder")


def test_watch_reads_the_members_of_a_list_of_modules(data):
    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleDict({"hidden": nn.ModuleList([nn.Linear(5, 4), nn.Tanh()])})
            self.last = nn.Linear(4, 3)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for part in self.parts["hidden"]:
                x = part(x)
            return self.last(x)

    trace = measure.watch(Dense(), data)
    assert trace.names == ("parts.hidden.0", "parts.hidden.1", "last")
    assert list(measure.gradient_norms(Dense(), data, of="states")) == ["input", *trace.names]


def test_watch_refuses_what_it_cannot_read(data):
    with pytest.raises(InputError, match=r"no trajectory.*leave times= out"):
        measure.watch(Stack(1), data, times=[0])
    with pytest.raises(InputError, match="leave them out"):
        measure.watch(Flow(), data, times=[0], layers="children")
    with pytest.raises(InputError, match=r"did you mean 'convs\.0'"):
        measure.watch(Stack(1), data, layers=["conv.0"])
    with pytest.raises(InputError, match="no layers"):
        measure.watch(nn.Identity(), data)
    with pytest.raises(InputError, match=r"data\.x is missing"):
        measure.watch(Stack(1), Data(edge_index=data.edge_index))


@pytest.mark.slow
def test_large_graphs_are_watched_without_a_dense_square():
    nodes = 100_000
    around = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    x = torch.randn(nodes, 8, generator=torch.Generator().manual_seed(0))
    data = Data(x=x, edge_index=to_undirected(around), y=torch.arange(nodes) % 2)
    table = measure.watch(pyg.GCN(8, 8, num_layers=2), data).table()
    energies = [measure.summary(x, data.edge_index)["relative_dirichlet_energy"]]
    energies += [row["relative_dirichlet_energy"] for row in table]
    assert energies == sorted(energies, reverse=True)
    response = measure.filter_response(pyg.GCN(8, 8, num_layers=2), data, probes=1)
    assert 0.6 < response.smoothing < 0.95
    assert response.gain[0] > 5 * response.gain[-3]
