"""Trained models as folders."""

import json

import pytest
import torch
from safetensors import safe_open

from dissensus import data, train
from dissensus.errors import InputError
from dissensus.train._save import prepare, undirected
from train_graphs import write_graph


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.npz"
    write_graph(path)
    return path


@pytest.mark.parametrize("undirected", [None, False, True])
def test_a_graph_is_prepared_as_in_training(graph, tmp_path, undirected, monkeypatch):
    flags = {"train.epochs": 1} | ({} if undirected is None else {"data.undirected": undirected})
    train.save(train.run(train.resolve(str(graph), "gcn", preset="none", flags=flags)), tmp_path / "model")
    asked = []
    load = data.load
    monkeypatch.setattr(data, "load", lambda *given, **options: asked.append(options) or load(*given, **options))
    prepare(train.load_saved(tmp_path / "model"), graph)
    assert asked == [{"undirected": bool(undirected)}]


def test_a_model_of_a_dataset_predicts_on_the_edges_of_its_protocol():
    settings = {name: {"data": {"name": name}} for name in ("karate", "ogbn-arxiv", "ogbn-arxiv-nofeatures")}
    expected = {"karate": False, "ogbn-arxiv": True, "ogbn-arxiv-nofeatures": True}
    assert {name: undirected(train.Config.from_dict(values)) for name, values in settings.items()} == expected
    kept = {"data": {"name": "ogbn-arxiv-nofeatures", "undirected": False}}
    assert not undirected(train.Config.from_dict(kept))


def test_what_is_predicted_is_what_was_trained(graph, tmp_path):
    flags = {"train.epochs": 10, "train.dtype": "float64", "train.select_time": True, "model.method": "euler"}
    result = train.run(train.resolve(str(graph), preset="none", flags=flags))
    train.save(result, tmp_path / "model")
    saved = train.load_saved(tmp_path / "model")
    assert saved.config == result.config
    assert saved.classes == ("no", "yes")
    data = result.dataset.graph
    with torch.no_grad():
        expected = result.model(data.x.double(), data.edge_index).softmax(1)
    found = train.predict(saved, graph).values
    assert torch.equal(found, expected)
    mask = result.dataset.split(1).test_mask
    assert 100 * (found.argmax(1) == data.y)[mask].double().mean().item() == pytest.approx(result.test)
    with safe_open(tmp_path / "model" / "model.safetensors", framework="pt") as file:
        assert file.metadata()["class"] == "BIMP"
    assert json.loads((tmp_path / "model" / "config.json").read_text())["result"]["test"] == result.test


def test_damaged_folders_are_refused(graph, tmp_path):
    result = train.run(train.resolve(str(graph), "gcn", flags={"train.epochs": 1}))
    folder = tmp_path / "model"
    train.save(result, folder)
    whole = (folder / "config.json").read_text()
    for text, message in (
        (whole[:50], "damaged"),
        ('{"format": 2}', "format"),
        ('{"format": 1}', "incomplete"),
        (whole.replace('"yes"', '"yes", "maybe"'), "different models"),
    ):
        (folder / "config.json").write_text(text)
        with pytest.raises(InputError, match=message):
            train.load_saved(folder)
    (folder / "config.json").write_text(whole)
    (folder / "model.safetensors").write_bytes(b"\x80\x04 pickle")
    with pytest.raises(InputError, match="not a safetensors file"):
        train.load_saved(folder)
