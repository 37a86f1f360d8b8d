"""Studies of tasks that need depth: what is planned, what rows they become, and that they run."""

import pytest

from dissensus import runs
from dissensus.runs import Record
from dissensus.studies import STUDIES, reproduce, run_cost
from dissensus.studies._as_printed import UNCHANGED
from dissensus.studies._study import Request
from dissensus.train import read_preset, resolve

DEPTHS = {"missing-depth", "long-range", "minesweeper", "cost"}
TASKS = DEPTHS | {"missing", "missing-share", "missing-ablation", "labels", "ring-transfer"}


def rows_of(name, **request):
    study = STUDIES[name]
    result = {"val": 70.0, "test": 70.0, "epoch": 1, "epochs": 2, "seconds": 1.0, "memory": 5.0}
    return [
        row
        for config in study.plan(Request(**request)).configs
        for row in study.rows(
            Record(runs.key(config), study.target, "done", config, result, None, None, 1.0, "", "now", {})
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_cell_is_one_setting(name):
    study, found = STUDIES[name], {}
    for row in rows_of(name, splits=(1,), seeds=(1,)):
        found.setdefault(tuple(row[column] for column in study.dimensions), set()).add(row["settings"])
    assert len(found) > 1
    assert all(None not in cell and len(settings) == 1 for cell, settings in found.items())


def test_the_axes_are_what_changes():
    assert {row["missing"] for row in rows_of("missing-share", models=("bimp",))} == {0.0, 0.5, 0.9, 0.99, 1.0}
    assert {row["labels"] for row in rows_of("labels", models=("gcn",))} == {1, 2, 5, 10, 20}
    configs = STUDIES["ring-transfer"].plan(Request(models=("bimp", "gcn"))).configs
    assert {(c["data"]["distance"], c["model"].get("time", c["model"].get("num_layers"))) for c in configs} == {
        (distance, 2 * distance) for distance in (2, 5, 10, 20, 40)
    }
    for name in DEPTHS:
        assert "depths" in STUDIES[name].takes


def test_nodes_outside_the_training_set_have_no_features_over_depth():
    for name in ("missing", "missing-depth", "missing-ablation"):
        configs = STUDIES[name].plan(Request(datasets=("cora",), splits=(1,))).configs
        assert {config["data"]["missing_features"] for config in configs} == {1.0}


def test_the_preset_missing_names_its_settings_once():
    for dataset in ("cora", "citeseer", "pubmed"):
        for model in STUDIES["missing"].models:
            assert resolve(dataset, model, preset="missing").as_dict()
        assert read_preset("missing", dataset, "bimp")["model"]["normalizer"] == "symmetric"


def test_the_ablation_changes_one_thing():
    study = STUDIES["missing-ablation"]
    configs = study.plan(Request(datasets=("cora",), splits=(1,))).configs
    rows = rows_of("missing-ablation", datasets=("cora",), splits=(1,))
    assert [row["change"] for row in rows] == [*study.axes["change"]]
    kept = configs[rows.index(next(row for row in rows if row["change"] == UNCHANGED))]
    for config in configs:
        changed = [
            (section, name)
            for section in ("data", "model", "train")
            for name in config[section].keys() | kept[section].keys()
            if config[section].get(name) != kept[section].get(name)
        ]
        assert len(changed) <= 2, changed


def test_a_run_of_the_study_cost_tells_its_memory():
    config = resolve("karate", "gcn", preset="none", flags={"train.epochs": 2}).as_dict()
    result = run_cost({"cost": config})
    assert result["epochs"] == 2
    # At least the features of 34 nodes after input dropout, and two hidden states.
    assert 34 * (34 + 2 * 64) * 4 / 2**20 < result["memory"] < 10


@pytest.mark.slow
def test_a_study_of_missing_features_runs(tmp_path):
    made = reproduce("missing", models=["gcn"], datasets=["karate"], splits=[1, 2], quick=True, output=tmp_path)
    assert made.studies["missing"].tables["accuracy"].rows[0][0] == "gcn"
    assert (tmp_path / "missing" / "runs.csv").is_file()
