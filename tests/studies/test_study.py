"""Studies: printed values, planned runs, rows, merging and estimates, without training anything."""

import json
from dataclasses import replace

import pytest

from dissensus import nn, runs
from dissensus.data import names
from dissensus.errors import InputError
from dissensus.runs import Record
from dissensus.studies import STUDIES, _results
from dissensus.studies._outlook import outlook_of
from dissensus.studies._printed import printed
from dissensus.studies._results import check_results, merge_rows, ordered, read_results, span, write_results
from dissensus.studies._study import Request

META = {"command": "c", "date": "d", "dissensus": "0", "torch": "2", "cpu": "c", "quick": False, "settings": {}}


def record(config, target="t", test=80.0, seconds=2.0, status="done"):
    result = {"val": test, "test": test, "epoch": 3, "epochs": 9, "seconds": seconds} if status == "done" else None
    error = None if status == "done" else "it broke"
    return Record(runs.key(config), target, status, config, result, error, None, seconds, "", "now", {})


def rows_of(study, configs, **options):
    return [row for config in configs for row in study.rows(record(config, **options))]


@pytest.mark.parametrize(
    ("study", "place", "value"),
    [
        ("homophilic", {"model": "bimp", "dataset": "cora"}, 83.19),
        ("homophilic", {"model": "sage", "dataset": "computers"}, 76.42),
        ("homophilic", {"model": "grand++-aa-rw", "dataset": "pubmed"}, 79.44),
        ("heterophilic", {"model": "bimp", "dataset": "cornell-geomgcn2020"}, 77.13),
        ("heterophilic", {"model": "graphcon-gcn", "dataset": "texas"}, 80.54),
        ("heterophilic", {"model": "bimp-aa-rw", "dataset": "wisconsin"}, 86.22),
        ("heterophilic", {"model": "bimp", "dataset": "cornell"}, 77.13),
        ("heterophilic", {"model": "mlp", "dataset": "texas"}, None),
        ("large", {"model": "gat", "dataset": "ogbn-arxiv"}, 69.86),
        ("large", {"model": "gat", "dataset": "arxiv-synthetic"}, None),
        ("nonlinearity", {"dataset": "cora", "saturation": "gelu", "depth": 128}, 26.27),
        ("nonlinearity", {"dataset": "cora", "saturation": "tanh", "depth": 16}, 82.83),
        ("nonlinearity", {"dataset": "karate", "saturation": "tanh", "depth": 16}, None),
        ("runtime", {"model": "kuramoto", "dataset": "citeseer"}, 252.73),
        ("depth", {"model": "bimp", "dataset": "cora"}, None),
    ],
)
def test_printed_values(study, place, value):
    assert STUDIES[study].printed.get(place) == value


def test_every_printed_value_is_there():
    counts = {name: len(printed(name).means) for name in STUDIES}
    tables = {"homophilic": 16 * 6, "heterophilic": 16 * 3, "large": 5, "nonlinearity": 7 * 8, "runtime": 10}
    assert counts == dict.fromkeys(STUDIES, 0) | tables
    # A slip of the pen in one value would move its table's mean.
    assert round(sum(printed("homophilic").means.values()), 2) == 7892.73
    assert round(sum(printed("heterophilic").means.values()), 2) == 3467.84


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


def test_results_come_back_as_they_were_written(tmp_path):
    study = STUDIES["homophilic"]
    configs = study.plan(Request(models=("gcn", "bimp"), datasets=("karate",), splits=(2, 1))).configs
    rows = [*rows_of(study, configs[:3], test=1 / 3), *rows_of(study, configs[3:], status="failed")]
    written = write_results(tmp_path, study, rows, META)
    back, meta = read_results(tmp_path, study)
    assert back == written
    assert sorted(map(str, back)) == sorted(map(str, rows))
    assert [(row["model"], row["split"]) for row in back] == [("bimp", 1), ("bimp", 2), ("gcn", 1), ("gcn", 2)]
    assert (meta["runs"], meta["failed"], meta["splits"], meta["commands"]) == (3, 1, {"karate": "1-2"}, ["c"])
    with pytest.raises(InputError, match="full runs already"):
        write_results(tmp_path, study, rows, {**META, "quick": True})
    assert read_results(tmp_path, study) == (back, meta)


def test_a_hash_without_letters_stays_text(tmp_path):
    study = STUDIES["homophilic"]
    configs = study.plan(Request(models=("gcn",), datasets=("karate",), splits=(1, 2))).configs
    first, second = ({**row, "settings": "047e29183645"} for row in rows_of(study, configs, test=1 / 3))
    write_results(tmp_path, study, [first], META)
    write_results(tmp_path, study, [second], META)
    assert read_results(tmp_path, study)[0] == [first, second]


def test_a_kill_while_results_are_written_leaves_them_readable(tmp_path, monkeypatch):
    study = STUDIES["homophilic"]
    configs = study.plan(Request(models=("gcn",), datasets=("karate",), splits=(1, 2))).configs
    first, second = rows_of(study, configs, test=1 / 3)
    whole = _results._replace

    def killed(path, text):
        if path.name == "runs.csv":
            raise KeyboardInterrupt
        whole(path, text)

    for row, kept in ((first, []), (second, [first])):
        with monkeypatch.context() as patch:
            patch.setattr(_results, "_replace", killed)
            with pytest.raises(KeyboardInterrupt):
                write_results(tmp_path, study, [row], META)
        if kept:
            assert read_results(tmp_path, study)[0] == kept
        write_results(tmp_path, study, [row], META)
    assert read_results(tmp_path, study)[0] == [first, second]


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_kill_never_parts_rows_from_their_settings(writes, tmp_path, monkeypatch):
    study, place = STUDIES["homophilic"], tmp_path / "homophilic" / "meta.json"
    configs = study.plan(Request(models=("gcn",), datasets=("karate",), splits=(1, 2, 3))).configs
    old = [{**row, "settings": "old"} for row in rows_of(study, configs[:2])]
    new = [{**row, "settings": "new"} for row in rows_of(study, configs[2:])]
    write_results(tmp_path, study, old, {**META, "settings": {"old": {"lr": 1}}})
    whole, left = _results._replace, [writes]

    def killed(path, text):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        whole(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(_results, "_replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write_results(tmp_path, study, new, {**META, "settings": {"new": {"lr": 2}}})
    rows, meta = read_results(tmp_path, study)
    assert rows == (new if writes == 3 else old)
    assert (meta["runs"], meta["splits"]) == ((1, {"karate": "3"}) if writes == 3 else (2, {"karate": "1-2"}))
    assert {row["settings"] for row in rows} <= meta["settings"].keys()
    assert meta["settings"].get("old", {"lr": 1}) == {"lr": 1}
    write_results(tmp_path, study, new, {**META, "settings": {"new": {"lr": 2}}})
    assert json.loads(place.read_text())["settings"] == {"new": {"lr": 2}}


def test_rows_of_other_settings_are_replaced_only_if_asked(tmp_path):
    study = STUDIES["homophilic"]
    rows = rows_of(study, study.plan(Request(models=("gcn", "bimp"), datasets=("karate",), splits=(1, 2))).configs)
    gcn, bimp = ([row for row in rows if row["model"] == name] for name in ("gcn", "bimp"))
    changed = [{**gcn[0], "settings": "other"}]
    write_results(tmp_path, study, gcn, META)
    assert write_results(tmp_path, study, changed, {**META, "command": "none"}, replace=False) == gcn
    assert read_results(tmp_path, study)[1]["commands"] == ["c"]
    # What replaces nothing is written, the same run again too.
    again = [{**gcn[0], "test": 1.0}]
    assert write_results(tmp_path, study, [*changed, *bimp], META, replace=False) == [*bimp, *gcn]
    assert write_results(tmp_path, study, again, META, replace=False) == [*bimp, *again, gcn[1]]
    assert write_results(tmp_path, study, changed, META) == [*bimp, *changed]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("runs.csv", b"", "holds no runs of a study"),
        ("runs.csv", b"a,b\n1,2\n", "holds no runs of a study"),
        ("runs.csv", b"status,settings,split,seed\ndone,s,one,1\n", "damaged: restore or delete it"),
        ("runs.csv", b"status,settings,split,seed\ndone,s,1,1,5\n", "damaged: restore or delete it"),
        ("runs.csv", b"\xff\xfe", r"runs\.csv cannot be read"),
        ("meta.json", b"[]", "does not say how the runs were made"),
        ("meta.json", b'{"date": "d"}', "no commands, dissensus, torch"),
        ("meta.json", b"{", r"meta\.json cannot be read"),
    ],
)
def test_damaged_results_are_refused(name, text, message, tmp_path):
    study = STUDIES["homophilic"]
    write_results(tmp_path, study, rows_of(study, study.plan(Request(datasets=("karate",))).configs[:1]), META)
    (tmp_path / "homophilic" / name).write_bytes(text)
    with pytest.raises(InputError, match=message):
        read_results(tmp_path, study)
    with pytest.raises(InputError, match=message):
        check_results(tmp_path, study, quick=False)


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


def test_new_runs_join_old_ones_unless_their_settings_changed():
    study = STUDIES["homophilic"]

    def made(model="gcn", preset="none", splits=(1, 2), **options):
        request = Request(preset=preset, models=(model,), datasets=("karate",), splits=splits)
        return rows_of(study, study.plan(request).configs, **options)

    def seen(rows):
        return [(row["model"], row["split"], row["test"]) for row in rows]

    old = [*made("bimp", test=70.0), *made(test=60.0)]
    more = merge_rows(study, old, made(splits=(2, 3), test=61.0))
    assert seen(more) == [("bimp", 1, 70), ("bimp", 2, 70), ("gcn", 1, 60), ("gcn", 2, 61), ("gcn", 3, 61)]
    # Other settings for gcn: none of its old runs may stay beside the new ones.
    changed = [{**row, "settings": "other"} for row in made(splits=(3,), test=62.0)]
    assert seen(merge_rows(study, more, changed)) == [("bimp", 1, 70), ("bimp", 2, 70), ("gcn", 3, 62)]
    assert merge_rows(study, more, []) == more


def test_order_and_spans():
    study = STUDIES["depth"]
    assert ordered(study, "model", ["gcn", "mlp", "bimp", "gcn"]) == ["bimp", "gcn", "mlp"]
    assert ordered(study, "depth", [128, 3, 2]) == [2, 128, 3]
    assert ordered(STUDIES["energy"], "layer", [100, 9]) == [9, 100]
    assert [span(numbers) for numbers in ([1, 2, 3, 7], [5], [])] == ["1-3,7", "5", ""]


def test_the_outlook_counts_and_estimates():
    study = STUDIES["homophilic"]
    plan = study.plan(Request(models=("bimp", "gcn", "gat"), datasets=("karate",), splits=(1, 2, 3)))
    bimp, gcn = plan.configs[0], plan.configs[3]
    stored = [record(bimp, seconds=10.0), record(plan.configs[1], seconds=20.0), record(gcn, status="failed")]
    found = outlook_of(study, plan, {found.key: found for found in stored})
    seen = {group.group[1]: (group.done, group.failed, group.missing, group.seconds) for group in found.groups}
    # gcn and gat have no time of their own yet, so the mean of the study is taken.
    assert seen == {"bimp": (2, 0, 1, 15.0), "gcn": (0, 1, 2, 30.0), "gat": (0, 0, 3, 45.0)}
    assert found.seconds == 90.0
    nothing = outlook_of(study, plan, {})
    assert [group.seconds for group in nothing.groups] == [None] * 3
    assert nothing.seconds is None
