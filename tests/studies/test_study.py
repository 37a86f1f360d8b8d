"""Studies: printed values, planned runs, rows, merging and estimates, without training anything."""

from dataclasses import replace
from pathlib import Path

import pytest

from dissensus import nn, runs
from dissensus.data import names
from dissensus.errors import InputError
from dissensus.studies import STUDIES
from dissensus.studies._study import Request
from study_rows import planned_rows, record, rows_of


@pytest.mark.parametrize(
    ("study", "count", "splits", "seeds"),
    [
        ("homophilic", 16 * 6 * 20, range(101, 121), [1]),
        ("heterophilic", 17 * 4 * 100, range(10), range(1, 11)),
        ("large", 5 * 5, [0], range(1, 6)),
        ("depth", 16 * 3 * 8 * 20, range(101, 121), [1]),
        ("nonlinearity", 2 * 7 * 8 * 20, range(101, 121), [1]),
        ("nonlinearity-critical", 2 * 2 * 4 * 20, range(101, 121), [1]),
        ("runtime", 5 * 2 * 5, [101], [1, 2, 3, 4, 5]),
        ("memory", 5 * 2, [101], [1]),
    ],
)
@pytest.mark.slow
def test_the_runs_that_are_planned(study, count, splits, seeds):
    study = STUDIES[study]
    configs = study.plan(Request()).configs
    assert len({runs.key(config) for config in configs}) == len(configs) == count
    rows = rows_of(study, configs)
    assert {row["split"] for row in rows} == set(splits)
    assert {row["seed"] for row in rows} == set(seeds)
    for column, known in (("model", nn.names()), ("dataset", names())):
        assert {row[column] for row in rows} <= set(known)


def test_a_request_narrows_and_quick_is_tiny():
    study = STUDIES["homophilic"]
    request = Request(models=("gcn",), datasets=("karate", "cora"), splits=(1, 2), seeds=(4,))
    rows = rows_of(study, study.plan(request).configs)
    assert [(row["dataset"], row["split"], row["seed"]) for row in rows] == [
        *(("karate", split, 4) for split in (1, 2)),
        *(("cora", split, 4) for split in (1, 2)),
    ]
    for study in STUDIES.values():
        quick = study.plan(Request(quick=True)).configs
        assert 1 <= len(quick) <= 8
    for wrong in ({"models": ("bmip",)}, {"datasets": ("coar",)}, {"preset": "tunned"}):
        with pytest.raises(InputError, match="did you mean"):
            Request(**wrong)


def test_depth_is_layers_or_euler_steps_with_all_else_fixed():
    study = STUDIES["depth"]
    plan = study.plan(Request(preset="paper", datasets=("cora",), splits=(1,), models=("grand-l", "bimp", "gcn")))
    by_model = {}
    for config in plan.configs:
        by_model.setdefault(config["model"]["name"], []).append(config)
    depths = [1, 2, 4, 8, 16, 32, 64, 128]
    assert [row["depth"] for row in rows_of(study, plan.configs)] == 3 * depths
    assert [config["model"]["num_layers"] for config in by_model["gcn"]] == depths
    for model in ("grand-l", "bimp"):
        assert [config["model"].pop("time") for config in by_model[model]] == depths
        assert all(config == by_model[model][0] for config in by_model[model])
        assert by_model[model][0]["model"]["method"] == "euler"
    assert by_model["grand-l"][0]["model"]["learn_time_scale"] is False


def test_a_model_without_settings_takes_default_ones_and_says_so(tmp_path):
    study = STUDIES["homophilic"]
    request = Request(preset="paper", models=("bimp",), datasets=("karate", "cora"), splits=(1,))
    plan = study.plan(request)
    assert [plan.presets[row["settings"]] for row in rows_of(study, plan.configs)] == ["default", "paper"]
    with pytest.raises(InputError, match="cannot be read"):
        study.plan(replace(request, preset=str(tmp_path / "missing.toml")))


def test_timed_runs_are_their_own():
    request = Request(datasets=("cora",), splits=(101,), seeds=(1,), models=("bimp",))
    timed = STUDIES["runtime"].plan(request).configs[0]
    assert timed["timed"]["train"]["epochs"] == 100
    assert timed["timed"]["train"]["patience"] == 0
    assert STUDIES["runtime"].target != STUDIES["homophilic"].target
    assert STUDIES["runtime"].rows(record(timed))[0]["model"] == "bimp"


def test_a_generated_graph_stands_in_and_is_labelled():
    study = STUDIES["large"]
    rows = rows_of(study, study.plan(Request(synthetic=True)).configs)
    assert {row["dataset"] for row in rows} == {"arxiv-synthetic"}
    assert "say nothing about the real one" in study.notes(rows)[0]
    assert study.notes(rows_of(study, study.plan(Request()).configs)) == []


def test_what_cannot_be_had_names_the_stand_in(monkeypatch):
    def absent(config):
        raise InputError("no network")

    monkeypatch.setattr("dissensus.train.DataConfig.load", absent)
    request = Request(models=("gcn",), splits=(0,), seeds=(1,))
    study = STUDIES["large"]
    with pytest.raises(InputError, match=r"no network\n.*--synthetic"):
        study.validate(study.plan(request).configs)
    other = STUDIES["homophilic"]
    with pytest.raises(InputError, match=r"^no network$"):
        other.validate(other.plan(replace(request, datasets=("karate",))).configs)


def test_options_and_splits_are_checked_before_any_run():
    study = STUDIES["nonlinearity"]
    with pytest.raises(InputError, match="saturation"):
        study.validate(study.plan(Request(models=("gcn",), datasets=("karate",), splits=(1,))).configs)


def test_depths_narrow_the_studies_that_have_them():
    request = Request(depths=(2, 64), datasets=("cora",), splits=(1,))
    for name, count in (("depth", 16 * 2), ("nonlinearity", 2 * 7 * 2), ("homophilic", 16)):
        plan = STUDIES[name].plan(request)
        assert len(plan.configs) == count
        assert ("depths" in STUDIES[name].takes) == (name != "homophilic")
    rows = rows_of(STUDIES["depth"], STUDIES["depth"].plan(request).configs)
    assert {row["depth"] for row in rows} == {2, 64}
    with pytest.raises(InputError, match=r"unknown depth '3'.*1, 2, 4"):
        STUDIES["depth"].plan(Request(depths=(3,)))


def test_only_some_values_of_an_axis():
    study = STUDIES["nonlinearity-critical"]
    only = {"saturation": ("linear", "gelu"), "attention": ("1.0",)}
    rows = rows_of(study, study.plan(Request(only=only, preset="tuned", splits=(1,))).configs)
    assert [(row["attention"], row["saturation"]) for row in rows] == [(1.0, "linear"), (1.0, "gelu")]
    # An axis that a study does not have is for another one.
    assert len(STUDIES["homophilic"].plan(Request(only=only, models=("gcn",), splits=(1,))).configs) == 6
    with pytest.raises(InputError, match=r"unknown saturation 'relu'.*tanh, linear"):
        study.plan(Request(only={"saturation": ("relu",)}))


def test_the_critical_attention_of_a_preset_is_run_once():
    found = {}
    for name in ("nonlinearity", "nonlinearity-critical"):
        request = Request(
            preset="paper", only={"depth": (64,), "attention": (1.0,), "saturation": ("tanh",)}, splits=(1,)
        )
        found[name] = STUDIES[name].plan(request).configs
    assert found["nonlinearity"] == found["nonlinearity-critical"]
    assert len(found["nonlinearity"]) == 1


@pytest.mark.slow
def test_studies_can_be_made_by_others():
    """A study is plain data: another model list is one call away, and nothing of the first changes."""
    other = replace(STUDIES["homophilic"], name="mine", models=("mlp", "sgc"), datasets=("karate",))
    plan = other.plan(Request(splits=(1,)))
    assert [config["model"]["name"] for config in plan.configs] == ["mlp", "sgc"]
    assert other.printed.get({"model": "bimp", "dataset": "cora"}) is None


DEPTHS = {"missing-depth", "missing-share", "long-range", "minesweeper", "cost", "ablation-gcn"}
TASKS = DEPTHS | {"missing", "missing-ablation", "labels", "ring-transfer"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_cell_is_one_setting(name):
    study, found = STUDIES[name], {}
    for row in planned_rows(name, splits=(1,), seeds=(1,)):
        found.setdefault(tuple(row[column] for column in study.dimensions), set()).add(row["settings"])
    assert len(found) > 1
    assert all(None not in cell and len(settings) == 1 for cell, settings in found.items())


def test_the_axes_are_what_changes():
    shares = {(row["missing"], row["depth"]) for row in planned_rows("missing-share", models=("bimp",))}
    assert shares == {(share, depth) for share in (0.0, 0.5, 0.9, 0.99, 1.0) for depth in (2, 8, 32)}
    assert {row["labels"] for row in planned_rows("labels", models=("gcn",))} == {1, 2, 5, 10, 20}
    configs = STUDIES["ring-transfer"].plan(Request(models=("bimp", "gcn"))).configs
    assert {(c["data"]["distance"], c["model"].get("time", c["model"].get("num_layers"))) for c in configs} == {
        (distance, 2 * distance) for distance in (2, 5, 10, 20, 40)
    }
    for name in DEPTHS:
        assert "depths" in STUDIES[name].takes


@pytest.mark.parametrize("study", ["homophilic", "depth", "energy", "memory", "cost"])
def test_an_edited_file_of_a_model_is_run_again(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text((Path(__file__).parents[2] / "examples" / "my_model.py").read_text())

    def keys(name):
        return {runs.key(config) for config in STUDIES[study].plan(Request(models=(name,), quick=True)).configs}

    before = keys("mine.py:MyNet")
    assert keys(f"{file}:MyNet") == before
    file.write_text(file.read_text() + "# edited\n")
    assert not before & keys("mine.py:MyNet")
    assert keys("gcn") == keys("gcn")
