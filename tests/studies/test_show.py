from pathlib import Path

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.report import Page, Value
from dissensus.runs import Record
from dissensus.studies import STUDIES
from dissensus.studies._claim import claim
from dissensus.studies._results import read_results
from dissensus.studies._show import _quantiles, add_section, cells, items, markdown, notes, update_readme
from dissensus.studies._study import Request, settings_key

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
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


def test_models_are_ranked_on_the_splits_that_all_have():
    study = STUDIES["homophilic"]
    row = {"seed": 1, "status": "done"}
    easy = {("a", 1): 60.0, ("b", 1): 61.0, ("c", 1): 59.0, ("c", 2): 90.0}  # split 2 is an easy one
    rows = [
        {**row, "dataset": dataset, "model": model, "split": split, "test": test}
        for dataset in ("cora", "photo")
        for (model, split), test in easy.items()
    ]
    (table,) = (item.content for item in items(study, rows) if item.stem == "ranks")
    assert [line[:2] for line in table.rows] == [["b", 1.0], ["a", 2.0], ["c", 3.0]]
    # Without a split in common there is no ranking.
    moved = [{**r, "split": 7} if r["model"] == "a" else r for r in rows]
    assert "ranks" not in [item.stem for item in items(study, moved)]


def test_one_split_is_paired_with_its_own_among_several():
    study = STUDIES["ablation"]
    row = {"dataset": "texas", "model": "bimp", "seed": 1, "status": "done"}
    given = {("none", 1): 60.0, ("none", 2): 80.0, ("linear", 2): 81.0}
    rows = [{**row, "change": change, "split": split, "test": test} for (change, split), test in given.items()]
    (table,) = (item.content for item in items(study, rows) if item.stem == "differences")
    ((name, difference),) = table.rows
    assert (name, difference.mean, difference.n) == ("linear", 1.0, 1)


@pytest.mark.slow
def test_tests_are_shown_where_there_are_any():
    study = STUDIES["homophilic"]
    stems = {n: [item.stem for item in items(study, homophilic_rows(range(n)))] for n in (1, 2)}
    assert stems == {1: ["accuracy", "details"], 2: ["accuracy", "details", "paired-cora"]}
    assert [item.stem for item in items(study, homophilic_rows(range(2), ["gcn", "gat"]))] == ["accuracy", "details"]


@pytest.mark.slow
def test_notes_stand_below_tables_and_on_the_page_once():
    study, rows = STUDIES["homophilic"], homophilic_rows(range(2))
    (note,) = notes(study, rows)
    assert [note in item.content.note for item in items(study, rows)] == [True, True, False]
    meta = {"date": "2026-11-17T01:02:03Z", "dissensus": "0", "torch": "2", "cpu": "c", "commands": [], "quick": False}
    html = add_section(Page("p", facts={"a": "b"}), study, rows, meta).html()
    assert html.count(note) == 1
    assert "Made on 2026-11-17 with" in html


@pytest.mark.slow
def test_a_study_whose_every_run_failed_still_has_a_page():
    study = STUDIES["bifurcation"]
    (config,) = study.plan(Request(quick=True)).configs
    rows = study.rows(Record("", "", "failed", config, None, "it broke", None, 1.0, "", "", {}))
    meta = {"date": "d", "dissensus": "0", "torch": "2", "cpu": "c", "commands": ["x"], "quick": False}
    html = add_section(Page("p", facts={"a": "b"}), study, rows, meta).html()
    assert "it broke" in html
    assert "Failed runs" in notes(study, rows)[0]


@pytest.mark.slow
def test_markers():
    text, found = update_readme("no markers", {"depth": "x"})
    assert (text, found) == ("no markers", [])
    with pytest.raises(InputError, match="/results:depth"):
        update_readme("<!-- results:depth --> and no end", {"depth": "x"})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claim", *STUDIES])
def test_readme_and_committed_results_agree(name):
    folder = ROOT / "results"
    text = (folder / "README.md").read_text(encoding="utf-8")
    if name == "claim":
        rows = {study: read_results(folder, STUDIES[study])[0] for study in STUDIES if (folder / study).is_dir()}
        section = claim(rows).markdown()
    elif f"<!-- results:{name} -->" in text and (folder / name / "runs.csv").is_file():
        rows, meta = read_results(folder, STUDIES[name])
        assert not meta["quick"]
        section = markdown(STUDIES[name], rows, ".")
    else:
        pytest.skip("no committed results of this study, or no markers in the README")
    assert update_readme(text, {name: section}) == (text, [name]), "run 'make results'"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "results").glob("*/meta.json")))
def test_every_committed_run_has_its_configuration(name):
    """By the hash of its settings, which is the configuration's own."""
    rows, meta = read_results(ROOT / "results", STUDIES[name])
    assert {row["settings"] for row in rows} == set(meta["settings"])
    for config in meta["settings"].values():
        if "train" in config:
            assert meta["settings"][settings_key(config)] == config


def test_tables_name_a_model_of_a_file_without_its_folder():
    study = STUDIES["homophilic"]
    row = {"dataset": "cora", "split": 1, "seed": 1, "status": "done", "test": 80.0, "val": 80.0}

    def shown(*names):
        (table,) = (
            item.content for item in items(study, [{**row, "model": name} for name in names]) if item.stem == "details"
        )
        return {line[1] for line in table.rows}

    assert shown("/a/mine.py:Net", "gcn") == {"mine.py:Net", "gcn"}
    assert shown("/a/mine.py:Net", "/b/mine.py:Net") == {"/a/mine.py:Net", "/b/mine.py:Net"}


def changed(dataset, test, split=1, *, change):
    row = {"dataset": dataset, "model": "bimp", "split": split, "seed": 1, "status": "done", "test": test}
    return {**row, "change": change, "preset": "tuned", "error": None}


def test_what_a_change_brings_is_a_difference_over_common_splits():
    rows = [
        *(changed("cora", test, split, change="none") for split, test in ((1, 80.0), (2, 83.0), (3, 99.0))),
        *(changed("cora", test, split, change="linear") for split, test in ((1, 78.0), (2, 82.0), (4, 10.0))),
        changed("texas", 70.0, change="linear"),
    ]
    (table,) = [item.content for item in items(STUDIES["ablation"], rows) if item.stem == "differences"]
    assert table.columns == ["change", "cora", "texas"]
    assert table.rows == [["linear", Value.of([-2.0, -1.0]), None]]
    assert "| linear | -1.50 ± 0.71 (2) | – |" in table.markdown()
    assert table.rows[0][1].mean == pytest.approx(-1.5)


def test_quantiles_are_measured_values_and_a_state_that_diverged_counts_as_large():
    rows = [{"status": "done", "split": i, "seed": i, "y": y} for i, y in enumerate([5.0, 1.0, 3.0, float("inf"), 2.0])]
    assert _quantiles(rows, "y") == (3.0, 1.0, float("inf"))
    ten = [{"status": "done", "split": i, "seed": i, "y": float(i)} for i in range(10)]
    assert _quantiles(ten, "y") == (4.0, 1.0, 8.0)
