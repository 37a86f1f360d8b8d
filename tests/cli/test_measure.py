import csv
import json
import sys

import numpy as np
import pytest
import torch

from dissensus import data, measure, nn, train
from dissensus.cli import command_line
from dissensus.cli import measure as command
from dissensus.errors import InputError, MissingExtraError

pytestmark = pytest.mark.slow


def call(*arguments: object) -> int:
    parser = command_line()[1]["measure"]
    return command.run(parser.parse_args([str(argument) for argument in arguments]))


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert call(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


@pytest.mark.parametrize("model", [name for name in nn.names() if name != "label-propagation"])
def test_every_model_is_measured_at_every_depth(capsys, model):
    found = answer(capsys, "--model", model, "--dataset", "karate", "--depths", "1,3", "--hidden", 8)
    assert [row["depth"] for row in found["rows"]] == [1, 3]
    assert found["model"] == model
    for row in found["rows"]:
        assert row["effective_rank"] >= 1
        assert row["gradient_norm"] > 0
        assert 0 <= row["sharpening"] <= 1


def test_rows_are_the_measures_of_the_last_hidden_state(capsys):
    found = answer(capsys, "--model", "gcn", "--dataset", "karate", "--depths", "2,4", "--hidden", 8, "--seed", 5)
    graph = data.load("karate").split(1)
    torch.manual_seed(5)
    channels = {"in_channels": 34, "hidden_channels": 8, "out_channels": int(graph.y.max()) + 1}
    model = nn.create("gcn", **channels, num_layers=5)
    (state,) = measure.watch(model, graph, times=[4]).states
    for name, value in measure.summary(state, graph.edge_index).items():
        assert found["rows"][1][name] == pytest.approx(value, rel=1e-4), name
    gradient = measure.gradient_norms(model, graph, of="states")["input"]
    assert found["rows"][1]["gradient_norm"] == pytest.approx(gradient, rel=1e-4)


def test_an_untrained_gcn_oversmooths_and_the_decay_is_fitted(capsys):
    found = answer(capsys, "--dataset", "karate", "--depths", "1,2,4,8,16,32,64", "--hidden", 16)
    energies = [row["dirichlet_energy"] for row in found["rows"]]
    assert energies[-1] < 1e-6 * energies[0]
    fit = found["decay"]["dirichlet_energy"]
    assert 0 < fit["lower"] < fit["rate"] < fit["upper"]
    assert fit["points"] == 7


def test_table_and_files(capsys, tmp_path):
    assert call("--dataset", "karate", "--depths", "1,2,4", "--hidden", 8, "-o", tmp_path / "out") == 0
    printed = capsys.readouterr()
    assert "gcn (untrained model) on karate" in printed.out
    assert "decay rate of the relative energy" in printed.out
    assert "gcn at depth 4" in printed.err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    charts = ["energy", "rank", "similarity", "gradient", "sharpening", "filter"]
    assert names == {"measure.csv", *(f"{chart}.{kind}" for chart in charts for kind in ("png", "svg"))}
    with (tmp_path / "out" / "measure.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["depth"] for row in rows] == ["1", "2", "4"]
    assert all(float(row["energy"]) > 0 for row in rows)


@pytest.mark.parametrize(
    ("name", "options", "depths"), [("gcn", {"num_layers": 4}, None), ("bimp", {"time": 3.0}, "1,5")]
)
def test_a_saved_model_is_read_at_its_depths(capsys, tmp_path, name, options, depths):
    graph = data.load("karate").split(1)
    classes = int(graph.y.max()) + 1
    model = nn.create(name, in_channels=34, hidden_channels=8, out_channels=classes, **options)
    model.save(tmp_path / "model.safetensors")
    arguments = ["--load", tmp_path / "model.safetensors", "--dataset", "karate"]
    found = answer(capsys, *arguments, *(["--depths", depths] if depths else []))
    expected = [1, 2, 3] if depths is None else [1, 5]
    assert [row["depth"] for row in found["rows"]] == expected
    trace = measure.watch(model, graph, times=expected)
    for row, state in zip(found["rows"], trace.states, strict=True):
        assert row["mad"] == pytest.approx(measure.mad(state, graph.edge_index).item(), rel=1e-4)
    assert found["gradient_norm"] > 0
    assert call(*arguments, "--depths", "1,2") == 0
    assert "whole model: gradient at the input" in capsys.readouterr().out


def test_edge_weights_of_a_file_are_used(capsys, tmp_path):
    ends = np.stack([np.arange(6), (np.arange(6) + 1) % 6])
    arrays = {"x": np.eye(6), "edge_index": np.concatenate([ends, ends[::-1]], 1)}
    np.savez(tmp_path / "plain.npz", **arrays)
    np.savez(tmp_path / "weighted.npz", **arrays, edge_weight=np.arange(1.0, 13.0))
    for model in ("gcn", "bimp"):
        plain, weighted = (
            answer(capsys, "--model", model, "--dataset", tmp_path / f"{name}.npz", "--depths", "2", "--hidden", 8)
            for name in ("plain", "weighted")
        )
        assert plain["rows"][0]["dirichlet_energy"] != weighted["rows"][0]["dirichlet_energy"]


def test_a_trained_folder_is_measured_on_its_graph_as_it_was_prepared(capsys, tmp_path):
    random, nodes = np.random.default_rng(0), np.arange(60)
    fields = {"x": random.standard_normal((60, 5)).astype(np.float32), "y": nodes % 2}
    np.savez(tmp_path / "ring.npz", edge_index=np.stack([nodes, (nodes + 1) % 60]), **fields)
    flags = {"train.epochs": 2, "data.undirected": True, "data.split": 3, "model.num_layers": 4}
    train.save(train.run(train.resolve(str(tmp_path / "ring.npz"), "gcn", preset="none", flags=flags)), tmp_path / "m")
    found = answer(capsys, "--load", tmp_path / "m")
    assert (found["dataset"], found["split"]) == (str(tmp_path / "ring.npz"), 3)
    graph = data.load(tmp_path / "ring.npz", undirected=True).split(3)
    model = train.load_saved(tmp_path / "m").model
    for row, state in zip(found["rows"], measure.watch(model, graph, times=[1, 2, 3]).states, strict=True):
        expected = measure.summary(state, graph.edge_index)
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    gradient = measure.gradient_norms(model, graph, of="states")["input"]
    assert found["gradient_norm"] == pytest.approx(gradient, rel=1e-4)

    # Named again, or by the file in the folder: the same preparation.
    named = ("--dataset", tmp_path / "ring.npz", "--split", 3)
    for path in (tmp_path / "m", tmp_path / "m" / "model.safetensors"):
        assert answer(capsys, "--load", path, *named)["rows"] == found["rows"]
    # A file on its own says nothing of any preparation, so the graph is taken as it is.
    model.save(tmp_path / "alone.safetensors")
    assert answer(capsys, "--load", tmp_path / "alone.safetensors", *named)["rows"] != found["rows"]
    with pytest.raises(InputError, match="the same features"):
        call("--load", tmp_path / "m", "--dataset", "karate")
    with pytest.raises(InputError, match="write one with train --save"):
        call("--load", tmp_path)


def trained(path, folder, model="gcn", **flags):
    settings = {"train.epochs": 2, "model.hidden_channels": 4, **{key.replace("__", "."): flags[key] for key in flags}}
    train.save(train.run(train.resolve(str(path), model, preset="none", flags=settings)), folder)
    return folder


def write_ring(path, *, names=("no", "yes"), tail=0, **fields):
    """A ring of 40 nodes in two classes, and ``tail`` more nodes in front of it that are joined to nothing."""
    nodes, ring = np.arange(40 + tail), np.arange(40)
    x = np.random.default_rng(0).standard_normal((40 + tail, 5)).astype(np.float32)
    edges = np.stack([ring, (ring + 1) % 40]) + tail
    edges = np.concatenate([edges, edges[::-1]], 1)
    np.savez(path, x=x, edge_index=edges, y=np.array(names)[nodes % 2], **fields)
    return path


def test_a_model_in_double_precision_is_measured(capsys, tmp_path):
    folder = trained(write_ring(tmp_path / "ring.npz"), tmp_path / "m", train__dtype="float64", model__num_layers=3)
    found = answer(capsys, "--load", folder)
    saved = train.load_saved(folder)
    graph = data.load(tmp_path / "ring.npz").graph
    (state,) = measure.watch(saved.model, graph.clone().update({"x": graph.x.double()}), times=[2]).states
    assert found["rows"][1]["mad"] == pytest.approx(measure.mad(state, graph.edge_index).item(), rel=1e-9)
    assert found["gradient_norm"] > 0


def test_the_split_is_the_first_or_that_of_the_saved_model(capsys, tmp_path, monkeypatch):
    masks = {f"{name}_mask": np.arange(40) % 3 == k for k, name in enumerate(("train", "val", "test"))}
    fixed = write_ring(tmp_path / "fixed.npz", **masks)
    assert answer(capsys, "--dataset", fixed, "--depths", "1", "--hidden", 4)["split"] == 0
    folder = trained(write_ring(tmp_path / "ring.npz"), tmp_path / "m", data__split=3)
    expected = {"ring.npz": 3, "fixed.npz": 0}
    monkeypatch.chdir(tmp_path)
    for name, split in expected.items():
        assert answer(capsys, "--load", folder, "--dataset", tmp_path / name)["split"] == split
    assert answer(capsys, "--load", folder, "--dataset", "ring.npz")["split"] == 3
    assert answer(capsys, "--load", folder, "--dataset", "ring.npz", "--split", 2)["split"] == 2


def test_labels_of_other_names_make_no_gradient(capsys, tmp_path):
    folder = trained(write_ring(tmp_path / "ring.npz"), tmp_path / "m")
    other = write_ring(tmp_path / "other.npz", names=("yes", "zebra"))
    assert answer(capsys, "--load", folder)["gradient_norm"] > 0
    assert answer(capsys, "--load", folder, "--dataset", other)["gradient_norm"] is None


def test_a_bound_model_is_measured_on_its_component_and_told_of_other_nodes(capsys, tmp_path):
    path = write_ring(tmp_path / "ring.npz", tail=3)
    folder = trained(path, tmp_path / "m", "grand++-l", data__largest_component=True)
    whole = answer(capsys, "--load", folder, "--depths", "1")
    assert call("--load", folder, "--depths", "1", "--dataset", path, "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["rows"] == whole["rows"]
    assert "the same nodes in the same order" not in printed.err
    assert call("--load", folder, "--depths", "1", "--dataset", write_ring(tmp_path / "other.npz")) == 0
    assert "only meaningful if it has the same nodes in the same order" in capsys.readouterr().err


def test_a_model_beside_another_programs_configuration_is_read_alone(capsys, tmp_path):
    path = write_ring(tmp_path / "ring.npz")
    file = trained(path, tmp_path / "m") / "model.safetensors"
    for text in ('{"model_type": "bert"}', "[]"):
        (tmp_path / "m" / "config.json").write_text(text)
        assert answer(capsys, "--load", file, "--dataset", path)["rows"]
    for text, message in (('{"format": 2}', "format"), ("{", "damaged")):
        (tmp_path / "m" / "config.json").write_text(text)
        with pytest.raises(InputError, match=message):
            call("--load", file, "--dataset", path)


def test_a_saved_model_without_hidden_layers_is_read_at_a_few(capsys, tmp_path):
    nn.create("dgc", in_channels=34, hidden_channels=8, out_channels=2).save(tmp_path / "dgc.safetensors")
    found = answer(capsys, "--load", tmp_path / "dgc.safetensors", "--dataset", "karate")
    assert [row["depth"] for row in found["rows"]] == [62, 125, 188, 250]
    # Its two scores have nothing to say about the third and fourth class.
    assert found["gradient_norm"] is None


def test_a_graph_without_labels_has_no_gradient(capsys, tmp_path):
    np.savez(tmp_path / "ring.npz", x=np.eye(6), edge_index=np.stack([np.arange(6), (np.arange(6) + 1) % 6]))
    found = answer(capsys, "--dataset", tmp_path / "ring.npz", "--depths", "1,2", "-o", tmp_path / "out")
    assert [row["gradient_norm"] for row in found["rows"]] == [None, None]
    assert (tmp_path / "out" / "energy.png").exists()
    assert not (tmp_path / "out" / "gradient.png").exists()


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--depths", "4,2"], "increasing"),
        (["--depths", "one"], "1,2,5-7"),
        (["--depths", "0,1"], "from 1"),
        (["--model", "gcnn"], "did you mean 'gcn'"),
        (["--hidden", "0"], "at least 1"),
        (["--load", "model.safetensors", "--model", "gcn"], "leave one of them out"),
        (["--load", "model.safetensors", "--hidden", "8"], "leave them out"),
        (["--load", "nowhere.safetensors", "--dataset", "karate"], "nowhere"),
        (["-o", __file__], "name a directory"),
    ],
)
def test_wrong_arguments_are_refused_with_a_cure(arguments, cure):
    with pytest.raises(InputError, match=cure):
        call(*arguments)


def test_a_model_without_hidden_states_is_refused(tmp_path):
    nn.create("gcn", in_channels=34, hidden_channels=8, out_channels=4, num_layers=1).save(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="no hidden state"):
        call("--load", tmp_path / "m.safetensors", "--dataset", "karate")


def test_depths_beyond_a_saved_model_are_refused(tmp_path):
    nn.create("gcn", in_channels=34, hidden_channels=8, out_channels=4, num_layers=4).save(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match=r"depths reaches 4.*3 hidden layers"):
        call("--load", tmp_path / "m.safetensors", "--dataset", "karate", "--depths", "1,4")


def test_charts_need_matplotlib_and_say_so_first(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"dissensus\[plot\]"):
        call("--dataset", "karate", "-o", tmp_path)
