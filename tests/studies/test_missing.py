import pytest

from dissensus.studies import STUDIES, reproduce
from dissensus.studies._as_printed import UNCHANGED
from dissensus.studies._show import items
from dissensus.studies._study import Request
from dissensus.train import read_preset, resolve
from study_rows import planned_rows


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
    rows = planned_rows("missing-ablation", datasets=("cora",), splits=(1,))
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


def test_the_attention_is_a_curve_of_the_ablations():
    for name, own in (("ablation", 0.9), ("missing-ablation", 1.1)):
        study = STUDIES[name]
        rows = planned_rows(name, datasets=("cora",), splits=(1, 2))
        (curve,) = [item.content for item in items(study, rows) if item.stem.startswith("attention")]
        assert sorted(curve.series[0].x) == sorted([0.5, 0.75, 1.0, 1.25, 1.5, own])


@pytest.mark.slow
def test_a_study_of_missing_features_runs(tmp_path):
    made = reproduce("missing", models=["gcn"], datasets=["karate"], splits=[1, 2], quick=True, output=tmp_path)
    assert made.studies["missing"].tables["accuracy"].rows[0][0] == "gcn"
    assert (tmp_path / "missing" / "runs.csv").is_file()
