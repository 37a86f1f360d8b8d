"""Numbers, graphs and plain modules through train, save and predict."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from dissensus import data, runs, train
from dissensus.errors import InputError
from train_graphs import write_graph

PLAIN = """
import torch
from torch_geometric.nn import GCNConv
class Net(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv = GCNConv(in_channels, out_channels)
    def forward(self, x, edge_index):
        return self.conv(x, edge_index)
"""


@pytest.fixture
def numbers(tmp_path):
    """A graph of one's own whose targets are numbers, the last one unknown."""
    path = tmp_path / "numbers.npz"
    write_graph(path)
    with np.load(path) as archive:
        fields = dict(archive)
    fields["y"] = fields["x"][:, 0] + 0.25
    fields["y"][-1] = np.nan
    np.savez(path, **fields)
    return path


def test_a_regression_on_a_graph_of_ones_own(answer, call, numbers, tmp_path):
    arguments = ("--model", "gcn", "--epochs", "3", "--splits", "1", "--store", tmp_path / "s.db")
    found = answer("train", numbers, *arguments, "--save", tmp_path / "m")
    assert (found["metric"], found["runs"][0]["test"]) == ("mae", found["test_mean"])
    code, out, _ = call("predict", tmp_path / "m", numbers)
    header, *rows = csv.reader(out.splitlines())
    assert (code, header, len(rows)) == (0, ["node", "value"], 60)
    values = np.array([float(row[1]) for row in rows])
    graph = data.load(numbers).split(1)
    error = np.abs(values - graph.y.numpy())[graph.test_mask.numpy()].mean()
    assert error == pytest.approx(found["test_mean"], rel=1e-4)
    assert answer("train", numbers, *arguments)["runs"] == found["runs"]


def test_one_prediction_for_each_graph(tmp_path):
    flags = {"data.graphs": 10, "data.nodes": 12, "train.epochs": 2}
    config = train.resolve("diameter", "gcn", preset="none", flags=flags)
    result = train.run(config)
    train.save(result, tmp_path / "m")
    header, *rows = train.predict(tmp_path / "m", "diameter").rows()
    assert header == ["graph", "value"]
    assert len(rows) == len(data.load("diameter").graph.y)


def test_a_plain_module_of_a_file_is_saved_and_known_by_its_content(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(PLAIN)
    config = train.resolve("karate", f"{file}:Net", preset="none", flags={"train.epochs": 3})
    found = runs.repeat(config, splits=[1, 2])
    assert found.best is not None
    found.save(tmp_path / "m")
    graph = data.load("karate").graph
    assert np.allclose(
        train.predict(tmp_path / "m", "karate").values,
        found.best.model(graph.x, graph.edge_index).softmax(1).detach(),
    )
    pinned = config.pinned()
    file.write_text(PLAIN + "\n# another\n")
    assert config.pinned().model.fingerprint != pinned.model.fingerprint
    with pytest.raises(InputError, match="has changed since this configuration was created"):
        train.run(pinned)


FLOW = """
import torch
class Flow(torch.nn.Module):
    has_solver_time = True
    def __init__(self, in_channels, hidden_channels, out_channels, *, time=2.0):
        super().__init__()
        self.time, self.lin = time, torch.nn.Linear(in_channels, out_channels)
    def forward(self, x, edge_index):
        return dict(self.steps(x, self.time))[self.time]
    def steps(self, x, end):
        for step in range(1, int(2 * end) + 1):
            yield step / 2, self.lin(x) * (1.0 + 0.1 * step) ** 2 - step
    def scores_over_time(self, x, edge_index, end, callback):
        for time, scores in self.steps(x, end):
            callback(time, scores if time < 2 * self.time else -scores)
"""


def test_the_selected_time_of_a_plain_module_is_saved(tmp_path):
    file = tmp_path / "flow.py"
    file.write_text(FLOW)
    flags = {"train.epochs": 3, "train.select_time": True}
    result = train.run(train.resolve("karate", f"{file}:Flow", preset="none", flags=flags))
    assert result.time == result.model.time
    result.model.time = 1.5
    result = replace(result, time=1.5)
    train.save(result, tmp_path / "m")
    assert train.load_saved(tmp_path / "m").model.time == 1.5
    file.write_text(PLAIN)
    config = train.resolve("karate", f"{file}:Net", preset="none", flags=flags)
    with pytest.raises(InputError, match="Net has no solver time to select"):
        config.check()


def test_settings_of_the_data_reach_the_split_and_leave_old_configurations_alone():
    flags = {"data.missing_features": 1.0, "data.labels_per_class": 1}
    config = train.resolve("karate", "gcn", preset="none", flags=flags)
    graph = config.data.load().split(1)
    assert int(graph.train_mask.sum()) == 4
    assert float(graph.x[~graph.train_mask].abs().sum()) == 0.0
    assert train.resolve("karate", "gcn", preset="none").as_dict()["data"] == {
        "name": "karate",
        "split": 1,
        "largest_component": False,
    }
