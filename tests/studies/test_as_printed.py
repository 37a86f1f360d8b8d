"""The paper's settings, its open choices and our changes: what is planned, and how a run is told apart again."""

import json

import pytest

from dissensus import cli, runs
from dissensus.errors import InputError
from dissensus.runs import Record
from dissensus.studies import STUDIES
from dissensus.studies._study import Request

AS_PRINTED, READINGS, ABLATION = (STUDIES[name] for name in ("as-printed", "readings", "ablation"))


def record(config):
    result = {"val": 80.0, "test": 80.0, "epoch": 3, "epochs": 9, "seconds": 2.0}
    return Record(runs.key(config), "t", "done", config, result, None, None, 2.0, "", "now", {})


def planned(study, **request):
    """By change: the configuration of the one run planned for it."""
    configs = study.plan(Request(splits=(1,), seeds=(1,), **request)).configs
    found = {study.rows(record(config))[0]["change"]: config for config in configs}
    assert len(found) == len(configs)
    return found


def differences(one, other):
    """Settings in which two configurations differ."""
    return {
        f"{section}.{name}": other[section].get(name)
        for section in one
        for name in one[section].keys() | other[section].keys()
        if one[section].get(name) != other[section].get(name)
    }


def test_only_published_settings_are_as_printed():
    plan = AS_PRINTED.plan(Request(splits=(1,), seeds=(1,)))
    assert set(plan.presets.values()) == {"paper"}
    pairs = {(config["data"]["name"], config["model"]["name"]) for config in plan.configs}
    # Eleven continuous models on six graphs; on the WebKB graphs BIMP and its two variants alone.
    assert len(pairs) == len(plan.configs) == 11 * 6 + 3 * 4
    assert {model for dataset, model in pairs if dataset == "texas"} == {"bimp", "bimp-aa", "bimp-aa-rw"}
    with pytest.raises(InputError, match="has no settings for these models and datasets: choose among bimp"):
        AS_PRINTED.plan(Request(models=("grand-l",), datasets=("texas",)))


def test_both_printed_tables_stand_beside_the_runs():
    assert AS_PRINTED.printed.get({"model": "bimp", "dataset": "cora"}) == 83.19
    assert READINGS.printed.get({"model": "bimp", "dataset": "texas"}) == 82.16
    assert AS_PRINTED.printed.get({"model": "bimp", "dataset": "cornell"}) == 77.13


@pytest.mark.parametrize(("dataset", "encoder"), [("cora", "mlp"), ("texas", "linear")])
def test_a_reading_is_one_open_choice(dataset, encoder):
    found = planned(READINGS, datasets=(dataset,))
    assert list(found) == list(READINGS.axes["change"])
    base = found.pop("none")
    assert base == planned(READINGS, datasets=(dataset,))["none"]
    changed = {change: differences(base, config) for change, config in found.items()}
    assert changed["the other encoder"] == {"model.encoder": encoder}
    assert changed["tolerances 1e-5"] == {"model.rtol": 1e-5, "model.atol": 1e-5}
    assert changed["solver time selected"] == {"train.select_time": True}
    assert all(changed.values())


@pytest.mark.slow
def test_what_is_taken_back_is_what_the_paper_has():
    cora = planned(ABLATION, datasets=("cora",))
    base = cora.pop("none")
    changed = {change: differences(base, config) for change, config in cora.items()}
    assert changed["alpha as printed"] == {"model.self_reinforcement": 1.0}
    assert changed["A_o as printed"] == {"model.option_attention": "node", "model.own_score": 0.0}
    assert changed["attention at u*"] == {"model.attention_ratio": 1.0}
    assert changed["no unlabelled loss"] == {"train.consistency": None}
    assert changed["decoder as printed"] == {"model.decoder": "linear"}
    # The tuned settings of Texas have neither: nothing is run twice under two names.
    texas = planned(ABLATION, datasets=("texas",))
    assert not {"attention at u*", "no unlabelled loss", "attention score as printed"} & texas.keys()
    assert differences(texas["none"], texas["alpha as printed"]) == {"model.self_reinforcement": 2.0}


def test_only_some_changes():
    only = {"change": ("none", "A_o = I", "no unlabelled loss")}
    assert list(planned(ABLATION, datasets=("cora",), only=only)) == ["none", "no unlabelled loss", "A_o = I"]


@pytest.mark.slow
def test_settings_that_are_no_change_are_refused():
    config = planned(ABLATION, datasets=("cora",))["none"]
    with pytest.raises(InputError, match=r"has no change .* was the preset edited\?"):
        ABLATION.rows(record({**config, "train": {**config["train"], "lr": 0.5}}))


@pytest.mark.slow
@pytest.mark.usefixtures("real_data")
def test_a_quick_look_from_runs_to_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["reproduce", "ablation", "--quick", "--datasets", "texas", "-o", "out", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["studies"]["ablation"]
    assert [(cell["change"], cell["runs"], cell["paper"]) for cell in found["cells"]] == [
        ("none", 1, 82.16),
        ("alpha as printed", 1, 82.16),
    ]
