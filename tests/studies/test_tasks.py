"""Studies of tasks that need depth: what is planned, what rows they become, and that they run."""

import pytest

from dissensus import runs
from dissensus.report import Curves
from dissensus.runs import Record
from dissensus.studies import STUDIES, reproduce, run_cost
from dissensus.studies._as_printed import UNCHANGED
from dissensus.studies._show import items
from dissensus.studies._study import Request
from dissensus.train import read_preset, resolve

DEPTHS = {"missing-depth", "missing-share", "long-range", "minesweeper", "cost", "ablation-gcn"}
TASKS = DEPTHS | {"missing", "missing-ablation", "labels", "ring-transfer"}


def rows_of(name, **request):
    study = STUDIES[name]
    return [row for config in study.plan(Request(**request)).configs for row in study.rows(finished(study, config))]


def finished(study, config, **result):
    result = {"val": 70.0, "test": 70.0, "epoch": 1, "epochs": 2, "seconds": 1.0, "memory": 5.0, **result}
    return Record(runs.key(config), study.target, "done", config, result, None, None, 1.0, "", "now", {})


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_cell_is_one_setting(name):
    study, found = STUDIES[name], {}
    for row in rows_of(name, splits=(1,), seeds=(1,)):
        found.setdefault(tuple(row[column] for column in study.dimensions), set()).add(row["settings"])
    assert len(found) > 1
    assert all(None not in cell and len(settings) == 1 for cell, settings in found.items())


def test_the_axes_are_what_changes():
    shares = {(row["missing"], row["depth"]) for row in rows_of("missing-share", models=("bimp",))}
    assert shares == {(share, depth) for share in (0.0, 0.5, 0.9, 0.99, 1.0) for depth in (2, 8, 32)}
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


def test_a_gcn_gets_skip_connections_and_normalisation_and_bimp_runs_once():
    study = STUDIES["ablation-gcn"]
    plan = study.plan(Request(datasets=("cora",), splits=(1,), depths=(8,)))
    made = {row["added"]: config for config in plan.configs for row in study.rows(finished(study, config))}
    assert set(plan.presets.values()) == {"tuned"}
    assert [*made] == ["bimp", "gcn", "gcn + skip", "gcn + norm", "gcn + skip + norm"]
    assert len(plan.configs) == 5
    tuned = read_preset("tuned", "cora", "gcn")
    for name, config in made.items():
        if name != "bimp":
            assert config["model"]["residual"] == ("skip" in name)
            assert config["model"]["norm"] == ("batch" if "norm" in name else "none")
            assert config["model"]["num_layers"] == 8
            assert config["train"]["lr"] == tuned["train"]["lr"]


def test_the_protocol_of_tuned_classic_gnns():
    study = STUDIES["tuned-gnn"]
    plan = study.plan(Request())
    assert len(plan.configs) == 2 * (3 * 5 + 2 * 10)
    for config in plan.configs:
        fixed = config["data"]["name"] in ("minesweeper", "squirrel-filtered")
        assert config["data"].get("protocol") == (None if fixed else "tunedgnn")
        assert fixed or config["data"]["split"] == 123
    (cora,) = study.plan(Request(models=("gcn-res",), datasets=("cora",), seeds=(1,))).configs
    assert (cora["model"]["num_layers"], cora["model"]["hidden_channels"], cora["model"]["norm"]) == (3, 512, "none")
    assert set(study.plan(Request(models=("bimp",), datasets=("cora",))).presets.values()) == {"tuned"}
    assert study.printed.get({"model": "gcn-res", "dataset": "minesweeper"}) == 97.86
    assert study.printed.get({"model": "bimp", "dataset": "minesweeper"}) is None


def test_the_attention_is_a_curve_of_the_ablations():
    for name, own in (("ablation", 0.9), ("missing-ablation", 1.2)):
        study = STUDIES[name]
        rows = rows_of(name, datasets=("cora",), splits=(1, 2))
        (curve,) = [item.content for item in items(study, rows) if item.stem.startswith("attention")]
        assert sorted(curve.series[0].x) == sorted([0.5, 0.75, 1.0, 1.25, 1.5, own])


def test_cost_has_accuracy_against_seconds_and_memory():
    study, rows = STUDIES["cost"], []
    for config in study.plan(Request(models=("bimp",), datasets=("cora",), depths=(2, 8))).configs:
        depth, seed = config["cost"]["model"]["time"], config["cost"]["train"]["seed"]
        rows += study.rows(finished(study, config, test=60.0 + depth, seconds=depth * seed, memory=depth))
    drawn = {item.stem: item.content for item in items(study, rows) if isinstance(item.content, Curves)}
    assert (drawn["seconds-cora"].series[0].x, drawn["seconds-cora"].series[0].y) == ([4.0, 16.0], [62.0, 68.0])
    assert drawn["memory-cora"].series[0].x == [2.0, 8.0]


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
