"""The command: tiny studies through the real runner, rebuilt from their files, and the README."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dissensus import train
from dissensus.errors import InputError
from dissensus.report import Value
from dissensus.report._stats import compare
from dissensus.studies import STUDIES, reproduce
from dissensus.studies._results import read_results
from dissensus.studies._show import cells, items
from studies_files import read


def contents(folder, *endings):
    return {p.relative_to(folder): p.read_bytes() for p in Path(folder).rglob("*") if p.suffix in endings}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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

    monkeypatch.setattr("dissensus.train.execute", execute, raising=False)
    return lambda count: left.__setitem__(0, count)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert "out: give another output folder" in err
    assert not Path("other.db").exists()


@pytest.mark.slow
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


@pytest.mark.slow
def test_results_that_do_not_mix_are_refused_before_any_run(call):
    assert call("energy", "--quick", "-o", "out")[0] == 0
    code, out, err = call("energy", "-o", "out", "--models", "gcn", "--store", "other.db")
    assert (code, out) == (1, "")
    assert "out/energy holds quick looks already" in err
    assert not Path("other.db").exists()


@pytest.mark.slow
def test_some_depths_alone(answer):
    study = ("depth", "--quick", "--datasets", "karate", "--models", "gcn", "-o", "out")
    for depths in ("1,4", "2"):
        answer(*study, "--depths", depths)
    assert [row["depth"] for row in read("out/depth/runs.csv")] == ["1", "4", "2"]
    assert list(read("out/depth/tables/accuracy-karate.csv")[0])[1::5][:3] == ["1", "2", "4"]


@pytest.mark.slow
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


@pytest.mark.slow
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
        (("energy", "--datasets", "cora"), "the study energy does not use datasets: leave it out"),
        (("energy", "--preset", "paper"), "it uses models, seeds"),
        (("bifurcation", "--models", "gcn"), "it uses seeds"),
        (("homophilic", "--depths", "1,2"), "the study homophilic does not use depths"),
        (("depth", "--depths", "1,3"), "unknown depth '3'"),
        (("all", "--depths", "256"), "unknown depth '256'"),
        (("homophilic", "--only", "change=none"), "the study homophilic does not use only"),
        (("depth", "--only", "chance=none"), "'chance' is no axis of these studies: choose among depth"),
        (("ablation", "--only", "change=nonn"), "unknown change 'nonn': did you mean 'none'"),
        (("ablation", "--only", "change"), "--only: 'change' has no values: write it as"),
        (("nonlinearity", "--depths", "deep"), "--depths: 'deep' is no list"),
        (("homophilic", "--from", "x", "--models", "gcn"), "rebuilding from files runs nothing: leave out models"),
        (("energy", "-o", "/dev/null/x"), "cannot be created"),
    ],
)
def test_bad_input_is_refused_before_any_work(call, arguments, message):
    code, out, err = call(*arguments)
    assert code == 1
    assert message in err
    assert out == ""
    assert list(Path().iterdir()) == []


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_studies_are_written_without_matplotlib_and_say_how_to_get_figures(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = call("energy", "--quick", "-o", "out")
    assert code == 0
    assert "energy has no figures: matplotlib is not installed; install it with: pip install 'dissensus[plot]'" in err
    assert read("out/energy/tables/last.csv")[0]["model"] == "bimp"
    assert "data-chart" in Path("out/report.html").read_text()  # the page draws its charts itself
    code, _, err = call("homophilic", "--quick", "--datasets", "karate", "--splits", "1-2", "-o", "tables")
    assert code == 0
    assert "matplotlib" not in err
