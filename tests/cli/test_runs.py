"""The command that shows a store."""

import csv
import json

import pytest

from dissensus.cli import command_line
from dissensus.cli import runs as command
from dissensus.errors import InputError
from dissensus.runs import Store, StoreError
from runs_records import record


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "runs.db"
    with Store(path) as store:
        for name in ("bimp", "gcn"):
            for split in (1, 2):
                config = {"dataset": "cora", "model": {"name": name, "heads": 8.0}, "split": split}
                store.put(record(config, {"test": 0.8 + split / 100, "curve": [0.1] * 30}))
        store.put(record({"dataset": "cora", "model": {"name": "gcn"}, "split": 3}, error="ValueError: oops"))
    return path


@pytest.fixture
def call(path, capsys):
    def run(*arguments, store=path):
        parser = command_line()[1]["runs"]
        assert command.run(parser.parse_args([str(store), *map(str, arguments)])) == 0
        return capsys.readouterr().out

    return run


def test_listing_shows_what_varies_and_what_came_out(call):
    lines = call().splitlines()
    assert lines[0].split() == ["key", "status", "model.name", "model.heads", "split", "test", "seconds", "error"]
    assert lines[2].split()[1:] == ["done", "bimp", "8", "1", "0.8100", "1.5000", "–"]
    assert lines[6].split()[1:] == ["failed", "gcn", "–", "3", "–", "1.5000", "ValueError:", "oops"]
    assert len(lines) == 7


def test_listing_of_several_models_stays_narrow(tmp_path, call):
    path = tmp_path / "wide.db"
    with Store(path) as store:
        for name, options in (("bimp", {"alpha": 0.0, "time": 8.0}), ("gcn", {"layers": 2})):
            for split in (1, 2):
                config = {"data": {"name": "cora", "split": split}, "model": {"name": name, **options}}
                made = {"model": name, "split": split, "test": 80.0 + split, "options": {"dropout": 0.5}}
                store.put(record(config, made))
    assert call(store=path).splitlines()[0].split() == ["key", "status", "data.split", "model.name", "test", "seconds"]


def test_filters(call):
    found = json.loads(call("--json", "--where", "model.name=bimp", "--where", "split=2"))
    assert found["count"] == 1
    assert found["runs"][0]["config"] == {"dataset": "cora", "model": {"name": "bimp", "heads": 8.0}, "split": 2}
    failed = json.loads(call("--json", "--failed"))
    assert [run["error"] for run in failed["runs"]] == ["ValueError: oops"]
    with pytest.raises(InputError, match=r"did you mean 'model\.name'"):
        call("--where", "model.nmae=bimp")
    with pytest.raises(InputError, match="PATH=VALUE"):
        call("--where", "split")


def test_means(call):
    answer = json.loads(call("--json", "--mean", "test", "--by", "model.name"))
    assert answer["groups"] == [
        {"model.name": name, "runs": 2, "mean": pytest.approx(0.815), "std": pytest.approx(0.0070711, rel=1e-4)}
        for name in ("bimp", "gcn")
    ]
    assert call("--mean", "test").split()[-3:] == ["4", "0.8150", "0.0058"]
    with pytest.raises(InputError, match="--by needs --mean"):
        call("--by", "split")


def test_export(call, tmp_path):
    assert call("--export", tmp_path / "out.csv", "--where", "split=1").startswith("wrote 2 runs")
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["config.model.name"] for row in csv.DictReader(file)] == ["bimp", "gcn"]
    assert json.loads(call("--json", "--export", tmp_path / "out.jsonl"))["count"] == 5


def test_recovery(call, path, tmp_path):
    with path.open("r+b") as file:
        place = file.read().index(b"ValueError: oops")
        file.seek(place)
        file.write(b"KeyError")
    with pytest.raises(StoreError, match="--recover"):
        call()
    assert call("--recover", tmp_path / "good.db").startswith("recovered 4 runs")
    assert json.loads(call("--json", store=tmp_path / "good.db"))["count"] == 4


def test_a_store_that_is_not_there_is_said(call, tmp_path):
    with pytest.raises(InputError, match="no store of runs here"):
        call(store=tmp_path / "absent.db")


def test_an_empty_store(call, tmp_path):
    Store(tmp_path / "empty.db").close()
    assert call(store=tmp_path / "empty.db").strip() == ""
    assert json.loads(call("--json", store=tmp_path / "empty.db"))["runs"] == []
