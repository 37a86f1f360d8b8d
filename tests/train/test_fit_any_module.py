"""``train.fit`` takes any module and any PyG graph with masks."""

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GAT, GCNConv, Sequential

from dissensus import data, nn, train
from dissensus.errors import InputError

FEW = train.TrainConfig(epochs=4, lr=0.05)


class Plain(torch.nn.Module):
    def __init__(self, width=34, outputs=4):
        super().__init__()
        self.conv = GCNConv(width, 8)
        self.linear = torch.nn.Linear(8, outputs)

    def forward(self, x, edge_index):
        return self.linear(self.conv(x, edge_index).relu())


class Weighted(Plain):
    def forward(self, x, edge_index, edge_weight, batch=None):
        self.seen = edge_weight, batch
        return super().forward(x, edge_index)


def karate():
    return data.load("karate").split(1)


def test_it_trains_in_place_and_returns_the_best_epoch():
    torch.manual_seed(0)
    model, graph = Plain(), karate()
    before = model.linear.weight.clone()
    result = train.fit(model, graph, train.TrainConfig(epochs=30, lr=0.05))
    assert result.model is model
    assert not model.training
    assert not torch.equal(before, model.linear.weight)
    right = model(graph.x, graph.edge_index).argmax(1) == graph.y
    assert result.val == pytest.approx(100 * float(right[graph.val_mask].float().mean()))
    assert result.test == pytest.approx(100 * float(right[graph.test_mask].float().mean()))
    assert result.val == max(epoch.val for epoch in result.history)
    assert result.history[result.epoch - 1].val == result.val
    assert result.seconds > 0


def test_the_same_module_gives_the_same_bits_and_the_random_state_stays():
    def trained():
        torch.manual_seed(3)
        result = train.fit(Plain(), karate(), FEW)
        return result.history, torch.rand(1)

    assert trained() == trained()


def test_modules_of_pyg_and_lazy_ones():
    graph = karate()
    lazy = Sequential("x, edge_index", [(GCNConv(-1, 8), "x, edge_index -> x"), torch.nn.Linear(8, 4)])
    mixed = Sequential("x, edge_index", [(nn.OpinionConv(34, 8, steps=2), "x, edge_index -> x"), torch.nn.Linear(8, 4)])
    for model in (GAT(34, 8, 2, 4), lazy, mixed):
        assert len(train.fit(model, graph, FEW).history) == 4


def test_weights_and_batch_are_passed_where_forward_takes_them():
    graph = karate()
    graph.edge_weight = torch.ones(graph.num_edges)
    model = Weighted()
    train.fit(model, graph, FEW)
    assert torch.equal(model.seen[0], graph.edge_weight)
    assert model.seen[1] is None
    weighted = Sequential(
        "x, edge_index, edge_weight", [(GCNConv(34, 8), "x, edge_index, edge_weight -> x"), torch.nn.Linear(8, 4)]
    )
    train.fit(weighted, graph, FEW)
    train.fit(Plain(), graph, FEW)  # which takes none


class Taking(Plain):
    """Records what it is given besides features and edges."""

    def forward(self, x, edge_index, pos=None, edge_attr=None, y=None, batch_size=None):
        self.seen = {"pos": pos, "edge_attr": edge_attr, "y": y, "batch_size": batch_size}
        return super().forward(x, edge_index)


class TakingAny(Plain):
    def forward(self, x, edge_index, **kwargs):
        self.seen = kwargs
        return super().forward(x, edge_index)


def with_fields():
    graph = karate()
    graph.pos, graph.edge_attr = torch.rand(34, 2, dtype=torch.float64), torch.rand(graph.num_edges, 3)
    graph.edge_weight, graph.batch_size = torch.rand(graph.num_edges), 34
    return graph


def test_every_field_that_forward_names_is_passed_but_no_label():
    graph, model = with_fields(), Taking()
    train.fit(model, graph, FEW)
    assert torch.equal(model.seen["edge_attr"], graph.edge_attr)
    assert model.seen["pos"].dtype == torch.float32
    assert model.seen["y"] is model.seen["batch_size"] is None
    train.fit(model, graph, train.TrainConfig(epochs=1, clusters=2))
    assert model.seen["edge_attr"].size(1) == 3


def test_a_forward_with_keywords_gets_what_belongs_to_the_edges():
    graph, model = with_fields(), TakingAny()
    train.fit(model, graph, FEW)
    assert model.seen.keys() == {"edge_weight", "edge_attr"}
    train.fit(model, karate(), FEW)
    assert model.seen == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # of torch.compile itself
def test_a_compiled_module_gets_what_it_names():
    graph, model = with_fields(), Taking()
    result = train.fit(torch.compile(model, backend="eager"), graph, FEW)
    assert len(result.history) == 4
    assert torch.equal(model.seen["edge_attr"], graph.edge_attr)
    train.fit(torch.compile(Plain(), backend="eager"), graph, FEW)  # which takes nothing else


def test_attributes_of_edges_reach_modules_of_pyg():
    graph = with_fields()
    model = GAT(34, 8, 1, 4, edge_dim=3)
    result = train.fit(model, graph, FEW)
    right = model(graph.x, graph.edge_index, edge_attr=graph.edge_attr).argmax(1) == graph.y
    assert result.test == pytest.approx(100 * float(right[graph.test_mask].float().mean()))


class Flow(Plain):
    """Explicit Euler steps of size 1/2 of heat diffusion, up to ``time``."""

    has_solver_time = True

    def __init__(self, report=True):
        super().__init__()
        self.time, self.report = 2.0, report

    def forward(self, x, edge_index):
        found = {}
        self.scores_over_time(x, edge_index, self.time, found.__setitem__, every=True)
        return found[self.time]

    def scores_over_time(self, x, edge_index, end, callback, every=False):
        x = self.conv.lin(x)
        for step in range(int(2 * end)):
            x = x + 0.5 * (self.conv.propagate(edge_index, x=x, edge_weight=None) / 5 - x)
            if self.report or every:
                callback((step + 1) / 2, self.linear(x))


def test_the_time_of_any_module_can_be_selected():
    torch.manual_seed(0)
    graph, settings = karate(), train.TrainConfig(epochs=20, lr=0.02, select_time=True)
    model = Flow()
    result = train.fit(model, graph, settings)
    assert result.time == model.time <= 6.0
    right = model(graph.x, graph.edge_index).argmax(1) == graph.y
    assert result.test == pytest.approx(100 * float(right[graph.test_mask].float().mean()))
    with pytest.raises(InputError, match=r"scores_over_time does not reach the time 2: call callback"):
        train.fit(Flow(report=False), graph, settings)


def graphs():
    """Twelve small graphs, the target of each the mean of its first feature; three of PyG's are of each mask."""
    torch.manual_seed(0)
    found = []
    for k in range(12):
        x = torch.randn(4 + k % 3, 3)
        ends = torch.arange(len(x) - 1)
        mask = {
            part: torch.tensor([k % 4 in kept]) for part, kept in (("train", (0, 1)), ("val", (2,)), ("test", (3,)))
        }
        found.append(
            Data(
                x=x,
                edge_index=torch.stack([ends, ends + 1]),
                y=x[:, 0].mean().view(1),
                **{f"{part}_mask": value for part, value in mask.items()},
            )
        )
    return found


@pytest.mark.slow
def test_graphs_have_one_target_each():
    graph = Batch.from_data_list(graphs())
    model = Plain(3, 1)
    result = train.fit(model, graph, train.TrainConfig(epochs=60, lr=0.05, metric="rmse"))
    scores = model(graph.x, graph.edge_index)[:, 0].detach()
    means = torch.stack([scores[graph.batch == k].mean() for k in range(12)])
    error = (means - graph.y)[graph.test_mask].square().mean().sqrt()
    assert result.test == pytest.approx(float(error), rel=1e-4)
    assert result.history[-1].loss < result.history[0].loss


def test_a_module_without_parameters_is_evaluated_once():
    class Mean(torch.nn.Module):
        def forward(self, x, edge_index):
            return x[:, :4]

    result = train.fit(Mean(), karate(), FEW)
    assert (result.epoch, len(result.history)) == (1, 1)


def broken(**changes):
    graph = karate()
    for name, value in changes.items():
        graph[name] = value
    return graph


@pytest.mark.parametrize(
    ("model", "graph", "message"),
    [
        (Plain(), broken(y=None), r"data\.y is missing"),
        (Plain(), broken(train_mask=None), r"data\.train_mask is missing: add three boolean masks"),
        (Plain(), broken(val_mask=torch.ones(30, dtype=torch.bool)), r"shape \[30\]: give booleans, one for each of"),
        (Plain(), broken(val_mask=torch.ones(34)), r"float32 of shape \[34\]: give booleans"),
        (Plain(), broken(test_mask=torch.ones(34, 2, dtype=torch.bool)), r"choose one, such as data\.test_mask\["),
        (Plain(), broken(val_mask=torch.zeros(34, dtype=torch.bool)), r"val_mask is empty"),
        (Plain(), broken(y=torch.full((34,), -1)), "marks an unknown target"),
        (Plain(), broken(y=torch.zeros(34, 2)), "one target per node"),
        (Plain(), broken(y=torch.zeros(3)), "y has 3 entries: give one for each of the 34 nodes"),
        (Plain(outputs=3), karate(), r"3 scores, but the target is classes 0 to 3: create it with out_channels=4"),
        (Plain(outputs=2), broken(y=torch.rand(34)), r"2 scores, but the target is one number: .* out_channels=1"),
        (Plain(width=9), karate(), r"Plain\.forward fails when called with x, edge_index of this graph"),
        (Weighted(), karate(), r"Weighted\.forward fails .*edge_weight.*it must accept"),
        (torch.nn.Linear(34, 4), karate(), r"Linear\.forward fails"),
        ("gcn", karate(), r"the model is str: give a torch\.nn\.Module"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_any_work(model, graph, message):
    with pytest.raises(InputError, match=message):
        train.fit(model, graph, FEW)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"select_time": True}, "Plain has no solver time to select"),
        ({"metric": "mae"}, r"train\.metric=mae is for numbers"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        train.fit(Plain(), karate(), train.TrainConfig(**settings))
    with pytest.raises(InputError, match="give a TrainConfig"):
        train.fit(Plain(), karate(), train.resolve("karate", "gcn"))


def test_numbers_and_collections_refuse_what_is_for_classes_and_one_graph():
    collection = data.load("shortest-path", graphs=10, nodes=12).split(1)
    for settings, message in (({"consistency": 0.5}, "y has numbers"), ({"clusters": 2}, "a collection of graphs")):
        with pytest.raises(InputError, match=message):
            train.fit(Plain(2, 1), collection, train.TrainConfig(**settings))
