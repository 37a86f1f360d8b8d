"""The command: tiny studies through the real runner, rebuilt from their files, and the README."""

import csv
import json
import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np
import pytest

from dissensus import cli, runs, train
from dissensus.errors import InputError
from dissensus.report import Curves, Page, Table, Value
from dissensus.report._figure import MARKERS
from dissensus.report._stats import compare
from dissensus.runs import Record
from dissensus.studies import STUDIES, reproduce, run_bifurcation, run_energy
from dissensus.studies._bifurcation import lattice
from dissensus.studies._results import read_results
from dissensus.studies._show import add_section, cells, items, markdown, notes, update_readme, write_files
from dissensus.studies._study import Request, settings_key
from dissensus.studies._views import Lines

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = cli.main(["reproduce", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def answer(call):
    def run(*arguments):
        code, out, err = call(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def contents(folder, *endings):
    return {p.relative_to(folder): p.read_bytes() for p in Path(folder).rglob("*") if p.suffix in endings}


def test_a_study_from_runs_to_page_and_back(answer, call, tmp_path):
    tiny = ("homophilic", "--quick", "--datasets", "karate")
    first = answer(*tiny, "--splits", "1,2", "-o", "out")["studies"]["homophilic"]
    assert (first["runs"], first["failed"], first["splits"]) == (4, 0, {"karate": "1-2"})
    rows = read("out/homophilic/runs.csv")
    assert [(row["model"], row["split"], row["status"]) for row in rows] == [
        (model, split, "done") for model in ("bimp", "gcn") for split in "12"
    ]
    tests = [float(row["test"]) for row in rows if row["model"] == "bimp"]
    cell = first["cells"][0]
    assert (cell["dataset"], cell["model"], cell["mean"], cell["n"]) == ("karate", "bimp", np.mean(tests), 2)
    assert [cell["low"], cell["high"]] == list(Value.of(tests).interval)
    assert (cell["paper"], cell["difference"], cell["failed"], cell["preset"]) == (None, None, 0, "default")
    meta = json.loads(Path("out/homophilic/meta.json").read_text())
    assert meta["quick"] is True
    assert {row["settings"] for row in rows} == meta["settings"].keys()
    assert {"commands", "date", "torch", "cpu", "seeds"} <= meta.keys()

    # More splits: the stored runs are found, the new ones join them.
    code, out, err = call(*tiny, "--splits", "2,3", "-o", "out")
    assert code == 0
    assert err.count("split 3") == 2
    assert "split 2" not in err
    assert "95% from" in out
    assert "Two-sided tests" in out
    assert len(read("out/homophilic/runs.csv")) == 6

    again = answer("homophilic", "--from", "out", "-o", "again")["studies"]["homophilic"]
    assert again["splits"] == {"karate": "1-3"}
    paired = again["paired"]["paired-karate"][0]
    scores = {model: {} for model in ("bimp", "gcn")}
    for row in read("out/homophilic/runs.csv"):
        scores[row["model"]][row["split"]] = float(row["test"])
    expected = compare(scores["bimp"], scores["gcn"])
    assert (paired["bimp against"], paired["splits"]) == ("gcn", 3)
    assert paired["difference"] == pytest.approx(expected.difference)
    assert paired["p (Wilcoxon)"] == pytest.approx(expected.p_wilcoxon)
    assert contents("out/homophilic/tables", ".csv") == contents("again/homophilic/tables", ".csv") != {}
    page = Path("again/report.html").read_text()
    assert "Accuracy on homophilic graphs" in page
    assert "the numbers mean nothing" in page
    assert not Path("again/homophilic/runs.csv").exists()


def test_failed_runs_are_counted_and_told(call, tmp_path):
    preset = tmp_path / "wild.toml"
    entry = '[[settings]]\nmodels = ["{}"]\n[settings.train]\nlr = {}\n'
    preset.write_text(entry.format("gcn", "1e30") + entry.format("bimp", "0.01"))
    study = ("homophilic", "--quick", "--datasets", "karate", "--splits", "1-2", "--preset", preset, "-o", "out")
    code, out, err = call(*study)
    assert code == 1
    assert "failed, TrainingError" in err
    assert "Failed runs, left out of the means: karate gcn (2)" in out
    gcn = [row for row in read("out/homophilic/runs.csv") if row["model"] == "gcn"]
    assert [(row["status"], row["test"]) for row in gcn] == [("failed", "")] * 2
    assert "loss" in gcn[0]["error"]
    rows, meta = read_results(Path("out"), STUDIES["homophilic"])
    assert (meta["runs"], meta["failed"]) == (2, 2)
    accuracy = items(STUDIES["homophilic"], rows)[0].content
    assert [row[1] if isinstance(row[1], str) else row[1].n for row in accuracy.rows] == [2, "failed (2)"]
    bimp, gcn = cells(STUDIES["homophilic"], rows, "test")
    assert (bimp["runs"], bimp["failed"], gcn["mean"], gcn["runs"], gcn["failed"]) == (2, 0, None, 0, 2)


def test_depth_and_nonlinearity(answer):
    depth = answer("depth", "--quick", "--datasets", "karate", "-o", "out")["studies"]["depth"]
    assert {(cell["model"], cell["depth"]) for cell in depth["cells"]} == {
        (model, depth) for model in ("bimp", "gcn") for depth in (1, 8)
    }
    table = read("out/depth/tables/accuracy-karate.csv")
    for row in table:
        assert float(row["loss"]) == pytest.approx(max(float(row["1"]), float(row["8"])) - float(row["8"]))
    figures = {path.name for path in Path("out/depth/figures").iterdir()}
    assert {"accuracy-karate.png", "accuracy-karate.svg"} <= figures
    curves = answer("nonlinearity", "--quick", "--datasets", "karate", "-o", "out")["studies"]["nonlinearity"]
    cell = next(cell for cell in curves["cells"] if (cell["saturation"], cell["depth"]) == ("tanh", 8))
    assert (cell["runs"], cell["paper"]) == (1, None)
    page = Path("out/report.html").read_text()
    assert "Accuracy over depth" in page
    assert "Choice of the nonlinearity" in page


def test_times_are_measured_alone_and_as_ratios(answer, capsys):
    study = ("runtime", "--datasets", "karate", "--models", "gcn,grand-l", "--quick", "-o", "out")
    found = answer(*study, "--executor", "processes", "--workers", 2)["studies"]["runtime"]
    assert found["value"] == "seconds"
    seconds = {cell["model"]: cell["mean"] for cell in found["cells"]}
    ratios = {row["model"]: float(row["karate"]) for row in read("out/runtime/tables/ratios.csv")}
    assert ratios == pytest.approx({"gcn": seconds["gcn"] / seconds["grand-l"], "grand-l": 1.0})


def test_printed_ratios_stand_beside_ours():
    study = STUDIES["runtime"]
    rows = [
        {
            "dataset": "cora",
            "model": model,
            "split": 1,
            "seed": 1,
            "status": "done",
            "seconds": seconds,
        }
        for model, seconds in (("bimp", 3.0), ("grand-l", 2.0))
    ]
    table = next(item.content for item in items(study, rows) if item.stem == "ratios")
    bimp = table.rows[0][1]
    assert (bimp.mean, round(bimp.paper, 4)) == (1.5, round(14.33 / 11.97, 4))


def test_seeds_are_averaged_within_their_split():
    study = STUDIES["heterophilic"]
    scores = {(0, 1): 60.0, (0, 2): 70.0, (1, 1): 80.0, (1, 2): 90.0}
    rows = [
        {"dataset": "texas", "model": "bimp", "split": split, "seed": seed, "status": "done", "test": score}
        for (split, seed), score in scores.items()
    ]
    (cell,) = cells(study, rows, "test")
    assert (cell["mean"], cell["n"], cell["runs"]) == (75.0, 2, 4)
    assert cell["std"] == pytest.approx(np.std([65.0, 85.0], ddof=1))
    assert cell["difference"] == pytest.approx(75.0 - 82.16)
    # A single split: its seeds are the samples.
    (cell,) = cells(study, rows[:2], "test")
    assert (cell["mean"], cell["n"]) == (65.0, 2)


def homophilic_rows(splits, models=("bimp", "gcn")):
    common = {"dataset": "cora", "seed": 1, "status": "done", "preset": "default"}
    return [{**common, "model": model, "split": split, "test": 80.0 + split} for model in models for split in splits]


def test_tests_are_shown_where_there_are_any():
    study = STUDIES["homophilic"]
    stems = {n: [item.stem for item in items(study, homophilic_rows(range(n)))] for n in (1, 2)}
    assert stems == {1: ["accuracy", "details"], 2: ["accuracy", "details", "paired-cora"]}
    assert [item.stem for item in items(study, homophilic_rows(range(2), ["gcn", "gat"]))] == ["accuracy", "details"]


def test_notes_stand_below_tables_and_on_the_page_once():
    study, rows = STUDIES["homophilic"], homophilic_rows(range(2))
    (note,) = notes(study, rows)
    assert [note in item.content.note for item in items(study, rows)] == [True, True, False]
    meta = {"date": "2026-11-17T01:02:03Z", "dissensus": "0", "torch": "2", "cpu": "c", "commands": [], "quick": False}
    html = add_section(Page("p", facts={"a": "b"}), study, rows, meta).html()
    assert html.count(note) == 1
    assert "Made on 2026-11-17 with" in html


def test_no_chart_of_energies_repeats_a_colour():
    study = STUDIES["energy"]
    for view in study.views:
        if isinstance(view, Lines):
            drawn = view.only or [model for model in study.models if model not in view.without]
            assert len(drawn) <= len(MARKERS)
            assert set(drawn) <= set(study.models)


def test_a_plan_lists_what_is_missing(answer, call):
    study = ("homophilic", "--quick", "--datasets", "karate")
    before = answer(*study, "--plan")["studies"]["homophilic"]
    assert (before["done"], before["missing"], before["seconds_missing"]) == (0, 2, None)
    assert not Path("runs.db").exists()
    answer(*study, "-o", "out")
    after = answer(*study, "--splits", "101-103", "--plan")["studies"]["homophilic"]
    assert (after["done"], after["failed_runs"], after["missing"]) == (2, 0, 4)
    assert 0 < after["seconds_missing"] < 60
    assert [group["group"] for group in after["groups"]] == [["karate", "bimp"], ["karate", "gcn"]]
    code, out, _ = call(*study, "--splits", "101-103", "--plan")
    assert code == 0
    assert "still to run" in out


@pytest.fixture
def stop_after(monkeypatch):
    """Make the training after so many raise, as Ctrl-C would; None lets all pass."""
    whole, left = train.execute, [None]

    def execute(config):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] = None if left[0] is None else left[0] - 1
        return whole(config)

    runs._call.resolve.cache_clear()
    monkeypatch.setattr("dissensus.train.execute", execute, raising=False)
    yield lambda count: left.__setitem__(0, count)
    runs._call.resolve.cache_clear()


def test_an_interrupt_writes_what_is_finished_and_the_same_command_goes_on(call, stop_after):
    study = ("homophilic", "--quick", "--datasets", "karate", "--splits", "1-2", "-o", "out")
    stop_after(0)
    code, out, err = call(*study)
    assert (code, out, list(Path("out").iterdir())) == (130, "", [])

    stop_after(3)
    code, out, err = call(*study, "--json")
    assert code == 130
    assert "homophilic: 3 of 4 runs are in runs.db, and their tables in out; the same command makes the rest" in err
    assert err.rstrip().endswith("interrupted")
    found = json.loads(out)
    assert found["interrupted"] is True
    assert found["studies"]["homophilic"]["runs"] == 3
    partial, meta = read_results(Path("out"), STUDIES["homophilic"])
    assert [(row["model"], row["split"]) for row in partial] == [("bimp", 1), ("bimp", 2), ("gcn", 1)]
    assert (meta["runs"], meta["failed"], len(meta["settings"])) == (3, 0, 2)
    assert [row["karate n"] for row in read("out/homophilic/tables/accuracy.csv")] == ["2", "1"]
    assert "Accuracy on homophilic graphs" in Path("out/report.html").read_text()
    rebuilt = call("homophilic", "--from", "out", "-o", "again")
    assert rebuilt[0] == 0
    assert contents("out/homophilic/tables", ".csv") == contents("again/homophilic/tables", ".csv")

    stop_after(None)
    code, _, err = call(*study)
    assert code == 0
    assert err.count("] homophilic:") == 1
    rows, meta = read_results(Path("out"), STUDIES["homophilic"])
    assert [row for row in rows if (row["model"], row["split"]) != ("gcn", 2)] == partial
    assert (len(rows), meta["runs"], len(meta["commands"])) == (4, 4, 1)


def test_an_interrupt_of_all_keeps_the_studies_before(call, stop_after, monkeypatch):
    monkeypatch.setattr("dissensus.studies.STUDIES", {name: STUDIES[name] for name in ("energy", "homophilic")})
    stop_after(0)
    code, out, err = call("all", "--quick", "--datasets", "karate", "-o", "out", "--json")
    assert code == 130
    found = json.loads(out)
    assert found["interrupted"] is True
    assert list(found["studies"]) == ["energy"]
    assert "homophilic: 0 of 2 runs are in runs.db; the same command makes the rest" in err
    assert "Dirichlet energy over depth" in Path("out/report.html").read_text()


@pytest.fixture
def two_studies(monkeypatch):
    """Let ``all`` be homophilic and energy, in this order."""
    monkeypatch.setattr("dissensus.studies.STUDIES", {name: STUDIES[name] for name in ("homophilic", "energy")})


def test_an_interrupt_ends_all_even_if_nothing_can_be_written(call, stop_after, two_studies, monkeypatch):
    def full(*_, **__):
        raise InputError("the disk is full")

    monkeypatch.setattr("dissensus.studies._reproduce.write_results", full)
    for names in (("all",), ("homophilic",)):
        stop_after(1)
        arguments = (*names, "--quick", "--datasets", "karate", "--store", f"{names[0]}.db", "-o", "out", "--json")
        code, out, err = call(*arguments)
        assert code == 130
        assert json.loads(out)["interrupted"] is True
        assert "homophilic is left out: the disk is full" in err
        assert "energy" not in err


def test_an_interrupt_ends_all_even_if_the_store_cannot_be_read(call, stop_after, two_studies, monkeypatch):
    def damaged(args):
        raise InputError("the store is damaged")

    stop_after(1)
    monkeypatch.setattr("dissensus.studies._reproduce.stored_runs", damaged)
    code, out, err = call("all", "--quick", "--datasets", "karate", "-o", "out", "--json")
    assert code == 130
    assert json.loads(out)["interrupted"] is True
    assert "homophilic is left out: the store is damaged" in err
    assert "energy" not in err


def test_an_interrupt_takes_nothing_from_complete_results(call, stop_after):
    readme = "<!-- results:homophilic -->\nold\n<!-- /results:homophilic -->\n"
    Path("R.md").write_text(readme)
    preset = Path("mine.toml")
    preset.write_text('[[settings]]\nmodels = ["bimp", "gcn"]\n[settings.train]\nlr = 0.02\n')
    study = ("homophilic", "--quick", "--datasets", "karate", "--splits", "1-3", "-o", "out", "--models", "bimp")
    assert call(*study)[0] == 0
    before = read_results(Path("out"), STUDIES["homophilic"])
    changed = (*study, "--preset", preset, "--readme", "R.md")
    stop_after(1)
    code, out, err = call(*changed, "--json")
    assert code == 130
    assert read_results(Path("out"), STUDIES["homophilic"]) == before
    assert json.loads(out)["studies"]["homophilic"]["waiting"] == 1
    assert "1 of 3 runs are in runs.db, and the tables in out keep runs of other settings in place of 1 of them" in err
    assert "R.md stays as it is until all runs are there" in err
    assert Path("R.md").read_text() == readme

    stop_after(None)
    code, _, err = call(*changed)
    assert code == 0
    assert err.count("] homophilic:") == 2
    rows = read_results(Path("out"), STUDIES["homophilic"])[0]
    assert len(rows) == 3
    assert {row["settings"] for row in rows}.isdisjoint(row["settings"] for row in before[0])
    assert "karate" in Path("R.md").read_text()


def test_all_leaves_out_what_cannot_be_added_to_before_any_run(call, two_studies):
    study = ("all", "--quick", "--datasets", "karate", "-o", "out")
    for name, text in (("runs.csv", ""), ("meta.json", "[]")):
        assert call("homophilic", *study[1:])[0] == 0
        path = Path("out/homophilic", name)
        whole = path.read_text()
        path.write_text(text)
        code, out, err = call(*study, "--store", f"{name}.db", "--json")
        assert code == 0
        found = json.loads(out)["studies"]
        assert f"{name} " in found["homophilic"]["skipped"]
        assert found["energy"]["runs"] == 2
        assert err.index("homophilic is left out") < err.index("] energy:")
        path.write_text(whole)
    code, out, err = call("all", "--models", "gcn", "-o", "out", "--store", "other.db")
    assert (code, out) == (1, "")
    assert "out can take none of the studies: give another output folder" in err
    assert not Path("other.db").exists()


def test_a_study_that_cannot_be_read_is_left_out_of_the_page(call):
    depth = ("depth", "--quick", "--datasets", "karate", "--models", "gcn", "--depths", "1", "-o", "out")
    assert call("energy", "--quick", "-o", "out")[0] == 0
    assert call(*depth)[0] == 0
    Path("out/energy/meta.json").write_text("{")
    code, _, err = call(*depth)
    assert code == 0
    assert "energy is left out of the page: out/energy/meta.json cannot be read" in err
    page = Path("out/report.html").read_text()
    assert "Accuracy over depth" in page
    assert "Dirichlet energy over depth" not in page


def test_results_that_do_not_mix_are_refused_before_any_run(call):
    assert call("energy", "--quick", "-o", "out")[0] == 0
    code, out, err = call("energy", "-o", "out", "--models", "gcn", "--store", "other.db")
    assert (code, out) == (1, "")
    assert "out/energy holds quick looks already" in err
    assert not Path("other.db").exists()


def test_some_depths_alone(answer):
    study = ("depth", "--quick", "--datasets", "karate", "--models", "gcn", "-o", "out")
    for depths in ("1,4", "2"):
        answer(*study, "--depths", depths)
    assert [row["depth"] for row in read("out/depth/runs.csv")] == ["1", "4", "2"]
    assert list(read("out/depth/tables/accuracy-karate.csv")[0])[1::5][:3] == ["1", "2", "4"]


def test_one_study_that_cannot_run_does_not_stop_the_others(answer, monkeypatch):
    kept = {name: STUDIES[name] for name in ("large", "energy")}
    monkeypatch.setattr("dissensus.studies.STUDIES", kept)

    def absent(config):
        raise InputError("no network")

    monkeypatch.setattr("dissensus.train.DataConfig.load", absent)
    found = answer("all", "--quick", "-o", "out")["studies"]
    assert "no network" in found["large"]["skipped"]
    assert found["energy"]["runs"] == 2
    assert read("out/energy/tables/last.csv")[0]["model"] == "bimp"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("homophilic", "--models", "bmip"), "did you mean 'bimp'"),
        (("homophilic", "--datasets", "coar"), "did you mean 'cora'"),
        (("homophilic", "--splits", "5-1"), "--splits: '5-1' is no list"),
        (("homophilic", "--preset", "tunned"), "did you mean 'tuned'"),
        (("homophilic", "--synthetic"), "synthetic is for the study large: leave it out, or"),
        (("homophilic", "--from", "nowhere"), "runs.csv does not exist"),
        (("all", "--from", "nowhere"), "holds no results"),
        (("homophilic", "--from", "x", "--quick"), "rebuilding from files runs nothing"),
        (("homophilic", "--readme", "no.md"), "there is no such file"),
        (("energy", "--datasets", "cora"), "datasets means nothing to the study energy: leave it out"),
        (("energy", "--preset", "paper"), "it takes models, seeds"),
        (("bifurcation", "--models", "gcn"), "it takes seeds"),
        (("homophilic", "--depths", "1,2"), "depths means nothing to the study homophilic"),
        (("depth", "--depths", "1,3"), "unknown depth '3'"),
        (("all", "--depths", "256"), "unknown depth '256'"),
        (("homophilic", "--only", "change=none"), "only means nothing to the study homophilic"),
        (("depth", "--only", "chance=none"), "only chance means nothing here: choose among depth"),
        (("ablation", "--only", "change=nonn"), "unknown change 'nonn': did you mean 'none'"),
        (("ablation", "--only", "change"), "--only: 'change' has no values: write it as"),
        (("nonlinearity", "--depths", "deep"), "--depths: 'deep' is no list"),
        (("homophilic", "--from", "x", "--models", "gcn"), "rebuilding from files runs nothing: leave out models"),
        (("energy", "-o", "/dev/null/x"), "cannot be made"),
    ],
)
def test_bad_input_is_refused_before_any_work(call, arguments, message):
    code, out, err = call(*arguments)
    assert code == 1
    assert message in err
    assert out == ""
    assert list(Path().iterdir()) == []


def energy_rows(models, layers=200):
    study = STUDIES["energy"]
    plan = study.plan(Request(models=models, seeds=(1,)))
    rows = []
    for config in (config | {"layers": layers} for config in plan.configs):
        rows += study.rows(Record("", "", "done", config, run_energy(config), None, None, 1.0, "", "", {}))
    return rows


def test_energy_tells_dissensus_from_consensus():
    rows = energy_rows(("bimp", "grand-l", "grand++-l", "gcn"))
    last = {row["model"]: row for row in rows if row["layer"] == 200}
    assert last["bimp"]["relative_dirichlet_energy"] > 1e-3
    assert last["bimp"]["effective_rank"] > 1.1
    assert last["grand-l"]["dirichlet_energy"] < 1e-20
    # Its raw energy settles while the state grows without end: only the relative one shows it.
    first = next(row for row in rows if row["model"] == "grand++-l" and row["layer"] == 100)
    assert last["grand++-l"]["dirichlet_energy"] == pytest.approx(first["dirichlet_energy"], rel=1e-3)
    assert last["grand++-l"]["relative_dirichlet_energy"] < 0.5 * first["relative_dirichlet_energy"]
    assert energy_rows(("bimp",)) == [row for row in rows if row["model"] == "bimp"]


def test_dead_units_are_told_from_smoothing():
    """Discrete models with the identity for weights keep their units alive; with random ones they die to exact zero."""
    rows = energy_rows(("gcn", "gat", "sage", "gcn-group"))
    last = {row["model"]: row for row in rows if row["layer"] == 200}
    assert last["gcn, random weights"]["dirichlet_energy"] == last["sage, random weights"]["dirichlet_energy"] == 0.0
    # Mean aggregation smooths; GCN's symmetric one tends to the root of the degrees, whose energy is not zero.
    assert 0.0 < last["sage"]["dirichlet_energy"] < 1e-20
    assert last["gat"]["dirichlet_energy"] < 1e-20
    assert last["gcn"]["dirichlet_energy"] > 1e-3
    assert last["gcn"]["effective_rank"] == pytest.approx(1.0, abs=1e-3)
    # In evaluation mode, before any training, its running statistics would make it a plain GCN.
    assert last["gcn-group"]["dirichlet_energy"] != pytest.approx(last["gcn"]["dirichlet_energy"], rel=0.1)


def test_energies_come_from_ten_seeds_and_zero_is_drawn():
    study = STUDIES["energy"]
    configs = study.plan(Request(models=("bimp", "gcn"))).configs
    assert [config["seed"] for config in configs] == 3 * list(range(1, 11))
    assert [config.get("weights") for config in configs] == 20 * [None] + 10 * ["random"]
    common = {"dataset": "random graph", "split": 1, "seed": 1, "status": "done", "settings": "s"}
    measures = ("dirichlet_energy", "relative_dirichlet_energy", "effective_rank", "numerical_rank")
    rows = [
        {**common, "model": model, "layer": layer, **dict.fromkeys(measures, value)}
        for model, values in {"bimp": (1.0, 0.9), "gcn": (0.5, 0.0)}.items()
        for layer, value in zip((1, 10), values, strict=True)
    ]
    found = {item.stem: item.content for item in items(study, rows)}
    assert [list(line.y) for line in found["dirichlet-energy-discrete"].series] == [[1.0, 0.9], [0.5, 1e-40]]
    assert [list(line.y) for line in found["effective-rank-discrete"].series] == [[1.0, 0.9], [0.5, 0.0]]


def test_a_curve_that_leaves_the_range_does_not_flatten_the_others():
    study = STUDIES["energy"]
    common = {"dataset": "random graph", "split": 1, "seed": 1, "status": "done", "settings": "s"}
    measures = ("dirichlet_energy", "relative_dirichlet_energy", "effective_rank", "numerical_rank")
    rows = [
        {**common, "model": model, "layer": layer, **dict.fromkeys(measures, value)}
        for model, values in {"bimp": (1.0, 0.9), "gread-fb": (2.0, float("inf")), "gcn": (0.5, 0.0)}.items()
        for layer, value in zip((1, 10), values, strict=True)
    ]
    found = {item.stem: item.content for item in items(study, rows)}
    curves = found["dirichlet-energy"]
    assert isinstance(curves, Curves)
    assert [(line.name, isfinite(line.y[-1])) for line in curves.series] == [("bimp", True), ("gread-fb", False)]
    assert [line.name for line in found["dirichlet-energy-discrete"].series] == ["bimp", "gcn"]
    table = found["last"]
    assert isinstance(table, Table)
    assert {row[0]: row[1] for row in table.rows if row[0] == "gread-fb"} == {"gread-fb": "not finite"}


def test_the_bifurcation_figure_comes_from_its_rows(tmp_path):
    study = STUDIES["bifurcation"]
    (config,) = study.plan(Request(quick=True)).configs
    result = run_bifurcation(config)
    critical = result["critical"]
    assert critical == pytest.approx(1.0 / (1.0 + 4.0 * np.cos(np.pi / 5)))
    rows = study.rows(Record("", "", "done", config, result, None, None, 1.0, "", "", {}))
    neutral = [row for row in rows if (row["diagram"], row["curve"]) == ("pitchfork", "neutral")]
    assert {row["unstable"] for row in neutral if row["attention"] < 0.98 * critical} == {False}
    assert {row["unstable"] for row in neutral if row["attention"] > 1.02 * critical} == {True}
    last = {
        panel: np.array([row["opinion"] for row in rows if row["panel"] == panel and row["time"] == 1000.0])
        for panel in "abcde"
    }
    variance = {panel: opinions.var() for panel, opinions in last.items()}
    # As the caption says: neutral consensus, dissensus of low variance, a fading one, dissensus of high variance.
    assert abs(last["a"]).max() < 1e-6
    assert 1e-3 < variance["b"] < variance["d"]
    assert variance["c"] < 0.05 * variance["b"]
    assert 0.01 < last["c"].mean() < 0.05
    assert last["b"].min() > 0.1
    assert last["d"].mean() > 0.1
    assert last["e"] == pytest.approx(-last["b"], rel=1e-6)
    written, _ = write_files(study, rows, tmp_path)
    assert {path.name for path in written} >= {"bifurcation.png", "bifurcation.svg", "diagram-pitchfork.svg"}
    assert all(path.stat().st_size > 1000 for path in written)
    assert lattice(2).tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]


def test_a_study_whose_every_run_failed_still_has_a_page():
    study = STUDIES["bifurcation"]
    (config,) = study.plan(Request(quick=True)).configs
    rows = study.rows(Record("", "", "failed", config, None, "it broke", None, 1.0, "", "", {}))
    meta = {"date": "d", "dissensus": "0", "torch": "2", "cpu": "c", "commands": ["x"], "quick": False}
    html = add_section(Page("p", facts={"a": "b"}), study, rows, meta).html()
    assert "it broke" in html
    assert "Failed runs" in notes(study, rows)[0]


def test_the_readme_is_updated_between_its_markers(call):
    readme = Path("README.md")
    begin, end = "<!-- results:homophilic -->", "<!-- /results:homophilic -->"
    readme.write_text(f"above\n{begin}\nold\n{end}\nbelow\n<!-- results:depth -->\nkept\n<!-- /results:depth -->\n")
    for study in ("homophilic", "depth"):
        assert call(study, "--quick", "--datasets", "karate", "-o", "results")[0] == 0
    code, _, err = call("all", "--from", "results", "--readme", "README.md")
    assert code == 0
    assert "homophilic, depth" in err
    text = readme.read_text()
    assert text.startswith(f"above\n{begin}\nTest accuracy on homophilic graphs, in per cent\n")
    assert "| model | karate |" in text
    assert "old" not in text
    assert f"{end}\nbelow" in text
    assert "(results/depth/figures/accuracy-karate.svg)" in text
    assert Path("results/depth/figures/accuracy-karate.svg").is_file()
    before = text
    call("all", "--from", "results", "--readme", "README.md")
    assert readme.read_text() == before


def test_markers():
    text, found = update_readme("no markers", {"depth": "x"})
    assert (text, found) == ("no markers", [])
    with pytest.raises(InputError, match="/results:depth"):
        update_readme("<!-- results:depth --> and no end", {"depth": "x"})


@pytest.mark.parametrize("name", STUDIES)
def test_readme_and_committed_results_agree(name):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marked = f"<!-- results:{name} -->" in text
    if not marked or not (ROOT / "results" / name / "runs.csv").is_file():
        pytest.skip("no committed results of this study, or no markers in the README")
    rows, meta = read_results(ROOT / "results", STUDIES[name])
    assert not meta["quick"]
    assert update_readme(text, {name: markdown(STUDIES[name], rows, "results")})[0] == text


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "results").glob("*/meta.json")))
def test_every_committed_run_has_its_configuration(name):
    """By the hash of its settings, which is the configuration's own."""
    rows, meta = read_results(ROOT / "results", STUDIES[name])
    assert {row["settings"] for row in rows} == set(meta["settings"])
    for config in meta["settings"].values():
        if "train" in config:
            assert meta["settings"][settings_key(config)] == config


def test_studies_can_be_made_by_others():
    """A study is plain data: another model list is one call away, and nothing of the first changes."""
    other = replace(STUDIES["homophilic"], name="mine", models=("mlp", "sgc"), datasets=("karate",))
    plan = other.plan(Request(splits=(1,)))
    assert [config["model"]["name"] for config in plan.configs] == ["mlp", "sgc"]
    assert other.printed.get({"model": "bimp", "dataset": "cora"}) is None


def test_a_notebook_call_writes_nothing_and_has_tables_figures_and_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = []
    choices = {"models": ["gcn"], "datasets": ["karate"], "splits": [1, 2], "depths": [1, 2]}
    found = reproduce("depth", **choices, quick=True, progress=lines.append).studies["depth"]
    assert [(row["depth"], row["split"]) for row in found.rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert "accuracy-karate" in found.tables
    assert [line.name for line in found.figures["accuracy-karate"].series] == ["gcn"]
    assert found.notes == ["With default settings, not tuned ones: all."]
    assert len(lines) == 4
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="did you mean 'depth'"):
        reproduce("dpeth")


def test_studies_are_written_without_matplotlib_and_say_how_to_get_figures(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = call("energy", "--quick", "-o", "out")
    assert code == 0
    assert "energy has no figures: matplotlib is not installed; get it with: pip install 'dissensus[plot]'" in err
    assert read("out/energy/tables/last.csv")[0]["model"] == "bimp"
    assert "data-chart" in Path("out/report.html").read_text()  # the page draws its charts itself
    code, _, err = call("homophilic", "--quick", "--datasets", "karate", "--splits", "1-2", "-o", "tables")
    assert code == 0
    assert "matplotlib" not in err
