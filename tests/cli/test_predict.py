"""dissensus predict: whose graph, whose features, whose nodes."""

import csv
import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from dissensus import data, runs, train
from train_graphs import write_graph, write_tables

QUICK = ("--preset", "none", "--epochs", "25", "--hidden-channels", "8", "--lr", "0.03", "--set", "model.time=2.0")


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.npz"
    write_graph(path)
    return path


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.slow
def test_from_a_users_graph_to_a_table_of_predictions(answer, graph, tmp_path):
    folder, out = tmp_path / "model", tmp_path / "out.csv"
    trained = answer("train", graph, *QUICK, "--splits", "1-2", "--save", folder)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    best = max(trained["runs"], key=lambda run: run["val"])
    assert (trained["save"]["split"], trained["save"]["test"]) == (best["split"], best["test"])

    unseen = tmp_path / "unseen.npz"
    y = write_graph(unseen, nodes=90, seed=7, labels=False)
    summary = answer("predict", folder, unseen, "-o", out)
    assert (summary["nodes"], summary["model"]) == (90, "bimp")
    assert sum(summary["classes"].values()) == 90
    header, *rows = read(out)
    assert header == ["node", "class", "probability", "p(no)", "p(yes)"]
    assert [row[0] for row in rows] == [str(node) for node in range(90)]
    probabilities = np.array([[float(value) for value in row[3:]] for row in rows])
    assert np.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert all(float(row[2]) == max(map(float, row[3:])) for row in rows)
    assert np.mean([row[1] == ("no", "yes")[label] for row, label in zip(rows, y, strict=True)]) > 0.9


def test_node_names_and_csv_tables(answer, call, graph, tmp_path):
    answer("train", graph, *QUICK, "--splits", "1", "--save", tmp_path / "model")
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "nodes.csv").write_text("id,a,b,c,d,e\n" + "\n".join(f"n{i},{i},0,0,0,0" for i in range(4)) + "\n")
    (folder / "edges.csv").write_text("source,target\nn0,n1\nn2,n3\n")
    code, out, _ = call("predict", tmp_path / "model", folder)
    assert code == 0
    rows = list(csv.reader(out.splitlines()))
    assert [row[0] for row in rows] == ["node", "n0", "n1", "n2", "n3"]


def fit_tables(folder, tmp_path, model="gcn", **flags):
    flags = {"train.epochs": 20, "model.hidden_channels": 8, "train.lr": 0.05, **flags}
    train.save(train.run(train.resolve(str(folder), model, preset="none", flags=flags)), tmp_path / "model")
    return tmp_path / "model"


def test_features_are_matched_by_name(call, tmp_path):
    model = fit_tables(write_tables(tmp_path / "one"), tmp_path)
    turned = write_tables(tmp_path / "turned", columns=("c", "b", "a"), labels=False)
    (_, straight, _), (code, found, err) = (call("predict", model, tmp_path / name) for name in ("one", "turned"))
    assert (code, found, err) == (0, straight, "")
    assert data.load(turned).feature_names == ("c", "b", "a")
    assert train.prepare(train.load_saved(model), turned).feature_names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("a", "b"), "has no feature 'c', which the model was trained on: add the column"),
        (("a", "b", "d"), "has no feature 'c'"),
        (("a", "b", "c", "d"), "has the feature 'd', which the model was trained without: drop the column"),
    ],
)
def test_missing_and_extra_features_are_refused_by_name(columns, message, call, tmp_path):
    model = fit_tables(write_tables(tmp_path / "one"), tmp_path)
    code, out, err = call("predict", model, write_tables(tmp_path / "other", columns=columns))
    assert (code, out) == (1, "")
    assert message in err


def test_a_model_saved_without_names_counts_features(call, tmp_path):
    folder = fit_tables(write_tables(tmp_path / "one"), tmp_path)
    facts = json.loads((folder / "config.json").read_text())
    assert facts.pop("features") == ["a", "b", "c"]
    assert facts.pop("nodes") is None
    (folder / "config.json").write_text(json.dumps(facts))
    assert call("predict", folder, write_tables(tmp_path / "other", columns=("a", "b", "d")))[0] == 0
    assert "trained with 3" in call("predict", folder, write_tables(tmp_path / "fewer", columns=("a", "b")))[2]


@pytest.mark.parametrize(("model", "flags"), [("grand++-l", {}), ("bimp", {"model.option_attention": "node"})])
def test_a_model_bound_to_nodes_wants_them_in_their_order(model, flags, call, tmp_path):
    folder = fit_tables(write_tables(tmp_path / "one"), tmp_path, model, **flags)
    unlabelled = write_tables(tmp_path / "unlabelled", labels=False)
    assert call("predict", folder, unlabelled)[::2] == (0, "")
    turned = write_tables(tmp_path / "turned", ids=range(11, -1, -1))
    code, _, err = call("predict", folder, turned)
    assert code == 1
    assert "has others or another order: give the same nodes in the same order" in err
    graph = data.load(turned).graph
    np.savez(tmp_path / "nameless.npz", x=graph.x, edge_index=graph.edge_index)
    code, out, err = call("predict", folder, tmp_path / "nameless.npz")
    assert (code, len(out.splitlines())) == (0, 13)
    assert "only meaningful if it has the same nodes in the same order" in err


def test_a_model_bound_to_nodes_without_names_knows_its_own_graph(answer, call, graph, tmp_path):
    answer(
        "train",
        graph,
        "--model",
        "grand++-l",
        "--preset",
        "none",
        "--epochs",
        2,
        "--splits",
        1,
        "--save",
        tmp_path / "m",
    )
    assert call("predict", tmp_path / "m", graph)[2] == ""
    write_graph(tmp_path / "same.npz", labels=False)
    assert "the same nodes in the same order" in call("predict", tmp_path / "m", tmp_path / "same.npz")[2]


@pytest.mark.slow
def test_a_model_bound_to_a_largest_component_finds_it_again(call, tmp_path):
    edges = "source,target\n" + "".join(f"n{i},n{(i - 1) % 8 + 2}\n" for i in range(2, 10))
    tables = write_tables(tmp_path / "tables", edges=edges)
    graph = data.load(tables).graph
    np.savez(tmp_path / "nameless.npz", x=graph.x, edge_index=graph.edge_index, y=graph.y)
    for path, names in ((tables, [f"n{i}" for i in range(2, 10)]), (tmp_path / "nameless.npz", list("23456789"))):
        folder = fit_tables(path, tmp_path, "grand++-l", **{"data.largest_component": True})
        code, out, err = call("predict", folder, path)
        assert (code, err) == (0, "")
        assert [row[0] for row in csv.reader(out.splitlines())][1:] == names


@pytest.mark.slow
def test_graphs_that_the_model_cannot_take_are_refused(answer, call, graph, tmp_path):
    answer("train", graph, *QUICK, "--splits", "1", "--save", tmp_path / "any")
    bound = ("--set", "model.option_attention=node")
    answer("train", graph, *QUICK, *bound, "--splits", "1", "--save", tmp_path / "bound")
    sources = (
        "--preset",
        "none",
        "--model",
        "grand++-l",
        "--epochs",
        2,
        "--splits",
        "1",
        "--save",
        tmp_path / "sources",
    )
    answer("train", graph, *sources)
    write_graph(tmp_path / "wide.npz", features=6)
    write_graph(tmp_path / "large.npz", nodes=61)
    out = tmp_path / "out.csv"
    for folder, name, message in (
        ("any", "wide.npz", "6 features per node, and the model was trained with 5"),
        ("bound", "large.npz", "option_attention=gram"),
        ("sources", "large.npz", "only works on the 60"),
        ("any", "none.npz", "does not exist"),
        ("nothing", "graph.npz", "holds no trained model"),
    ):
        code, _, err = call("predict", tmp_path / folder, tmp_path / name, "-o", out)
        assert code == 1
        assert message in err
    assert not out.exists()
    for folder in ("bound", "sources"):
        assert call("predict", tmp_path / folder, graph, "-o", out)[0] == 0
    assert call("predict", tmp_path / "any", graph, "--json")[0] == 1
    assert call("predict", tmp_path / "any", graph, "-o", tmp_path / "no" / "out.csv")[0] == 1


@pytest.mark.slow
def test_saving_a_run_found_in_the_store_makes_it_again(answer, graph, tmp_path):
    arguments = ("train", graph, *QUICK, "--splits", "1-2", "--store", tmp_path / "runs.db")
    first = answer(*arguments)
    second = answer(*arguments, "--save", tmp_path / "model")
    assert second["runs"] == first["runs"]
    best = max(first["runs"], key=lambda run: (run["val"], -run["split"]))
    assert (second["save"]["split"], second["save"]["val"], second["save"]["test"]) == (
        1 + (best["split"] == 2),
        best["val"],
        best["test"],
    )
    with runs.Store(tmp_path / "runs.db") as store:
        assert len(store) == 2


def test_a_folder_that_cannot_be_written_is_told(graph, call, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = call("train", graph, *QUICK, "--splits", "1", "--save", tmp_path / "file")
    assert code == 1
    assert "give another folder" in err


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [False, True])
def test_a_collection_of_graphs_from_a_file_to_a_row_for_each(answer, numbers, tmp_path):
    """Rings are told from stars, or measured, by their degrees; unlabelled graphs and a single one get predictions."""
    node = torch.arange(8)
    ends = torch.stack([node, (node + 1) % 8]), torch.stack([torch.zeros(7, dtype=torch.long), node[1:]])
    graphs = []
    for k in range(30):
        edges = torch.cat([ends[k % 2], ends[k % 2].flip(0)], 1)
        x = torch.stack([torch.ones(8), torch.bincount(edges[0], minlength=8) ** 2 / 4], 1)
        graphs.append(Data(x=x, edge_index=edges, y=torch.tensor([k % 2 + 0.5 if numbers else k % 2])))
    torch.save(graphs, tmp_path / "graphs.pt")
    settings = (
        "--epochs",
        60,
        "--lr",
        0.05,
        "--set",
        "model.input_dropout=0",
        "--set",
        "model.dropout=0",
        "--hidden-channels",
        8,
    )
    model = ("--model", "gcn", "--preset", "none", *settings, "--splits", "1", "--save", tmp_path / "model")
    found = answer("train", tmp_path / "graphs.pt", *model)
    assert found["metric"] == ("mae" if numbers else "accuracy")
    # The errors of the means of both kinds are 0.5.
    assert found["test_mean"] < 0.25 if numbers else found["test_mean"] == 100.0, found["test_mean"]
    for graph in graphs:
        del graph.y
    torch.save(graphs[:4], tmp_path / "unlabelled.pt")
    torch.save(graphs[1], tmp_path / "one.pt")
    for file, count in (("unlabelled.pt", 4), ("one.pt", 1)):
        prediction = train.predict(tmp_path / "model", tmp_path / file)
        assert (prediction.per, len(prediction.values)) == ("graph", count)
    assert [row[0] for row in prediction.rows()] == ["graph", 0]
    if not numbers:
        assert prediction.values.argmax(1).tolist() == [1]
