import json

import pytest

from dissensus.errors import InputError
from dissensus.studies import STUDIES, _results
from dissensus.studies._results import check_results, merge_rows, ordered, read_results, span, write_results
from dissensus.studies._study import Request
from study_rows import rows_of

META = {"command": "c", "date": "d", "dissensus": "0", "torch": "2", "cpu": "c", "quick": False, "settings": {}}


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
