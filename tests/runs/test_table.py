import csv
import json
import math
from pathlib import Path

import pytest

from dissensus import runs
from dissensus.errors import InputError
from dissensus.runs import Store
from runs_records import record


@pytest.mark.slow
def test_export_to_csv_jsonl_and_parquet(full, tmp_path):
    with Store(full) as store:
        store.put(record({"x": 0.5, "model": {"name": "gcn"}, "layers": [1, 2]}, {"test": math.nan, "flag": "a"}))
        store.put(record({"x": 2, "model": {"name": "gcn", "flag": 1}}, error="oops, with a\ncomma"))
        records = store.query()
    assert runs.export(records, tmp_path / "out.csv") == 302
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[3]["config.x"] == "3"
    assert rows[3]["result.test"] == "0.01"
    assert json.loads(rows[3]["result.curve"]) == [3] * 50
    assert rows[-2]["config.layers"] == "[1, 2]"
    assert rows[-1]["error"] == "oops, with a\ncomma"

    runs.export(records, tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines[3]["config"] == {"x": 3, "model": {"name": "bimp"}}
    assert lines[-2]["result"]["test"] is None
    assert lines[-1]["traceback"].startswith("Traceback")

    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra 'parquet' is not installed")
    runs.export(records, tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["config.x"][-2:] == [0.5, 2.0]
    assert table["result.test"][30] == pytest.approx(0.1)
    assert table["error"][-1] == "oops, with a\ncomma"


def test_export_of_no_runs_and_of_an_unknown_format(tmp_path):
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        assert runs.export([], tmp_path / name) == 0
        assert (tmp_path / name).is_file()
    with pytest.raises(InputError, match=r"unknown export format '.xlsx'"):
        runs.export([], tmp_path / "out.xlsx")
    with pytest.raises(InputError, match="create it first"):
        runs.export([], tmp_path / "absent" / "out.csv")


def test_an_export_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    goal = tmp_path / "out.csv"
    goal.write_text("old")

    def full_disk(records, path):
        Path(path).write_text("half")
        raise OSError("no space left")

    monkeypatch.setattr("dissensus.runs._table._csv", full_disk)
    with pytest.raises(OSError, match="no space"):
        runs.export([record({"x": 1}, {})], goal)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_aggregate_is_mean_and_sample_deviation():
    records = [
        record({"model": {"name": name}, "split": split}, {"test": value})
        for name, split, value in [("gcn", 1, 0.5), ("bimp", 1, 0.8), ("bimp", 2, 0.9), ("bimp", 10, 1)]
    ]
    records.append(record({"model": {"name": "bimp"}, "split": 3}, error="oops"))
    by_name = runs.aggregate(records, "test", ["model.name"])
    assert by_name == [
        {"model.name": "bimp", "runs": 3, "mean": pytest.approx(0.9), "std": pytest.approx(0.1)},
        {"model.name": "gcn", "runs": 1, "mean": 0.5, "std": None},
    ]
    assert [group["split"] for group in runs.aggregate(records, "test", ["split"])] == [1, 2, 10]
    assert runs.aggregate(records, "test")[0]["runs"] == 4
    assert runs.aggregate([], "test") == []
    with pytest.raises(InputError, match="unknown result field 'tset': did you mean 'test'"):
        runs.aggregate(records, "tset")
    with pytest.raises(InputError, match=r"unknown configuration key 'modle.name'"):
        runs.aggregate(records, "test", ["modle.name"])
    with pytest.raises(InputError, match="only numbers"):
        runs.aggregate([record({"x": 1}, {"test": "high"})], "test")
