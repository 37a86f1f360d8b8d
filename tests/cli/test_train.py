"""dissensus train: the JSON contract, resuming from a store, saving, interrupts, wrong use."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dissensus import runs, train
from train_graphs import write_graph, write_tables

QUICK = ("--model", "gcn", "--epochs", "3", "--hidden-channels", "8")
# The commands are made known here, so that these tests do not depend on the list of them.
MAIN = """
import sys
from dissensus import cli
cli.COMMANDS.setdefault("train", "")
sys.exit(cli.main(sys.argv[1:]))
"""


def test_the_json_object_has_what_outsiders_rely_on(answer):
    found = answer("train", "karate", *QUICK, "--splits", "1-2", "--seeds", "1,3")
    assert {
        "dataset": "karate",
        "model": "gcn",
        "preset": "default",
        "splits": [1, 2],
        "seeds": [1, 3],
    }.items() <= found.items()
    assert [(run["split"], run["seed"]) for run in found["runs"]] == [(1, 1), (1, 3), (2, 1), (2, 3)]
    for run in found["runs"]:
        assert {"split", "seed", "val", "test", "epoch", "seconds"} <= run.keys()
        assert 0 <= run["test"] <= 100
        assert 1 <= run["epoch"] <= 3
    tests = [run["test"] for run in found["runs"]]
    assert found["test_mean"] == pytest.approx(sum(tests) / 4)
    spread = (sum((value - found["test_mean"]) ** 2 for value in tests) / 3) ** 0.5
    assert found["test_std"] == pytest.approx(spread)
    # Student's t with three degrees of freedom.
    assert found["test_interval"][1] - found["test_mean"] == pytest.approx(3.182446 * spread / 2)
    assert found["val_mean"] == pytest.approx(sum(run["val"] for run in found["runs"]) / 4)
    assert found["seconds"] > 0
    assert found["config"]["train"]["epochs"] == 3
    assert found["selection"] == "epoch"


def test_one_run_has_no_spread_and_no_interval(answer):
    found = answer("train", "karate", *QUICK, "--splits", "5")
    assert (found["test_std"], found["test_interval"]) == (0.0, None)
    assert found["test_mean"] == found["runs"][0]["test"]


def test_default_splits_are_those_of_the_data(answer, tmp_path):
    assert answer("train", "karate", *QUICK, "--epochs", 1)["splits"] == list(range(1, 11))


@pytest.mark.slow
def test_a_second_call_finds_every_run_in_the_store(answer, call, tmp_path):
    store = tmp_path / "runs.db"
    arguments = ("train", "karate", *QUICK, "--splits", "1-2", "--store", store)
    first = answer(*arguments)
    second = answer(*arguments)
    assert second["runs"] == first["runs"]
    more = answer(*arguments[:-3], "1-3", "--store", store)
    assert more["runs"][:2] == first["runs"]
    with runs.Store(store) as opened:
        records = opened.query()
    assert len(records) == 3
    assert records[0].config["train"]["weight_decay"] == 5e-4  # every default is kept with the result
    assert records[0].target == train.TARGET
    other = answer(*arguments, "--lr", "0.02")
    assert len(other["runs"]) == 2
    with runs.Store(store) as opened:
        assert len(opened) == 5


@pytest.mark.slow
def test_finished_runs_come_back_without_loading_torch(answer, tmp_path):
    arguments = ["train", "karate", *QUICK, "--splits", "1", "--store", str(tmp_path / "runs.db"), "--json"]
    answer(*arguments[:-1])
    code = MAIN.replace("sys.exit(", "code = (") + "sys.exit(code or 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 1


def test_flags_reach_the_run(answer):
    found = answer(
        *("train", "csbm", "--preset", "none", "--splits", "1", "--epochs", "2", "--optimizer", "rmsprop"),
        *("--set", "model.heads=2", "--set", "model.attention=cosine", "--set", "data.nodes=80"),
        *("--weight-decay", "0.25", "--select-time", "--largest-component"),
    )
    config = found["config"]
    assert config["model"] == {"name": "bimp", "hidden_channels": 64, "heads": 2, "attention": "cosine"}
    assert (config["train"]["optimizer"], config["train"]["weight_decay"]) == ("rmsprop", 0.25)
    assert (config["data"]["nodes"], config["data"]["largest_component"]) == (80, True)
    assert found["selection"] == "epoch and time"
    assert found["runs"][0]["time"] > 0


def test_a_split_or_seed_of_a_file_is_not_lost(answer, call, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("[data]\nsplit = 4\n[train]\nseed = 7\n")
    found = answer("train", "karate", *QUICK, "--config", file)
    assert (found["splits"], found["seeds"]) == ([4], [7])
    code, _, err = call("train", "karate", *QUICK, "--config", file, "--splits", "1")
    assert code == 1
    assert "--splits and data.split are both given" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("karate", "--model", "bmip"), "did you mean 'bimp'"),
        (("krate",), "did you mean 'karate'"),
        (("karate", "--set", "train.epoch=3"), "did you mean 'train.epochs'"),
        (("karate", "--set", "model.haeds=3", "--splits", "1"), "did you mean 'heads'"),
        (("karate", "--epochs", "3", "--set", "train.epochs=4"), "given twice"),
        (("karate", "--splits", "x"), "--splits"),
        (("karate", "--preset", "paper"), "no settings for karate"),
        (("karate", "--executor", "cloud", "--splits", "1", "--epochs", "1"), "unknown executor"),
        (("karate", "--log", "tensorboard:x", "--executor", "processes"), "--executor inline"),
        (("karate", "--log", "board:x", "--splits", "1"), "unknown logger"),
        (("karate", "--log", "tensorboard", "--splits", "1"), "give tensorboard:DIR"),
        (("karate", "--device", "abacus", "--splits", "1"), "cannot be used here"),
        (("none.npz",), "does not exist"),
    ],
)
def test_wrong_use_is_one_line_with_the_cure(call, arguments, message):
    code, out, err = call("train", *arguments)
    assert (code, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


def test_a_split_that_is_not_there_is_refused_before_any_run(call, tmp_path):
    write_graph(tmp_path / "g.npz")
    store = tmp_path / "runs.db"
    code, _, err = call("train", tmp_path / "g.npz", *QUICK, "--splits", "5000000000", "--store", store)
    assert code == 1
    assert "out of range" in err
    assert not store.exists()


def test_failed_runs_are_told_and_the_others_count(call, tmp_path, monkeypatch):
    whole = train.run

    def half(config, **options):
        if config.data.split == 2:
            raise RuntimeError("no luck")
        return whole(config, **options)

    monkeypatch.setattr("dissensus.train.run", half, raising=False)
    code, out, err = call("train", "karate", *QUICK, "--splits", "1-3", "--json")
    found = json.loads(out)
    assert code == 1
    assert [run["split"] for run in found["runs"]] == [1, 3]
    assert found["errors"] == [{"split": 2, "seed": 1, "error": "RuntimeError: no luck"}]
    assert "split 2, seed 1 failed: RuntimeError: no luck" in err


def test_all_runs_failing_is_an_error(call):
    code, out, err = call("train", "karate", *QUICK, "--lr", "1e30", "--epochs", 50, "--splits", "1-2")
    assert (code, out) == (1, "")
    assert "all 2 runs failed" in err
    assert "lower train.lr" in err


def test_the_table_and_plain_progress_lines(call):
    code, out, err = call("train", "karate", *QUICK, "--splits", "1-2")
    assert code == 0
    assert "95% interval" in out
    assert " ± " in out
    lines = err.splitlines()
    assert lines[0].startswith("split 1 seed 1 epoch 1/3: loss ")
    assert lines[3].startswith("[1/2] split 1 seed 1: test ")
    assert call("train", "karate", *QUICK, "--splits", "1", "--quiet")[2] == ""


def test_progress_on_a_terminal_shows_loss_and_validation(call, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    code, _, err = call("train", "karate", *QUICK, "--splits", "1")
    assert code == 0
    assert "[1/1] split 1 seed 1: test" in err
    assert "validation" in err


@pytest.mark.slow
def test_worker_processes_give_the_same_numbers(answer):
    here = answer("train", "karate", *QUICK, "--splits", "1-2", "--threads", "1")
    there = answer(
        "train", "karate", *QUICK, "--splits", "1-2", "--executor", "processes", "--workers", 1, "--threads", 1
    )
    for one, other in zip(here["runs"], there["runs"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_a_changed_file_is_another_run(answer, tmp_path):
    path, store = tmp_path / "g.npz", tmp_path / "runs.db"
    write_graph(path)
    arguments = ("train", path, *QUICK, "--splits", "1", "--store", store)
    first = answer(*arguments)
    assert answer(*arguments)["runs"] == first["runs"]
    write_graph(path, seed=1)
    answer(*arguments)
    with runs.Store(store) as opened:
        assert len(opened) == 2


def test_edges_that_all_run_one_way_are_told_unless_chosen(call, tmp_path):
    one_way = write_tables(tmp_path / "tables")
    both = write_tables(tmp_path / "both", edges="source,target\nn0,n1\nn1,n0\nn1,n2\n")
    arguments = (*QUICK, "--splits", "1", "--quiet")
    code, out, err = call("train", one_way, *arguments, "--json")
    assert (code, len(json.loads(out)["runs"])) == (0, 1)
    assert len(err.splitlines()) == 1
    assert "messages go from source to target only" in err
    for more in (("--undirected",), ("--no-undirected",), ("--set", "data.undirected=true")):
        assert call("train", one_way, *arguments, *more)[::2] == (0, "")
    assert call("train", both, *arguments)[::2] == (0, "")


def test_a_dataset_by_name_is_directed_as_published(call, monkeypatch):
    monkeypatch.setattr("dissensus.data.Dataset.one_way", True)
    assert call("train", "karate", *QUICK, "--quiet")[::2] == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGINT to a process of its own")
def test_an_interrupt_ends_cleanly_and_tells_what_was_done(tmp_path):
    arguments = ["train", "karate", "--model", "gcn", "--epochs", "40", "--splits", "1-9999", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    begun = time.monotonic()
    for line in process.stderr:
        if line.startswith("[2/9999]") or time.monotonic() - begun > 60:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.rstrip().endswith("interrupted")
    found = json.loads(out)
    assert found["interrupted"] is True
    assert len(found["runs"]) >= 2


def test_a_folder_that_cannot_be_made_is_refused_before_the_training(call):
    code, out, err = call("train", "karate", "--save", "/dev/null/model", "--json")
    assert (code, out) == (1, "")
    assert "cannot be created" in err
    assert "epoch" not in err
