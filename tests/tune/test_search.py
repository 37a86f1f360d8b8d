"""A real search on a real Ray on this machine; the trials are tiny."""

import json

import pytest

from dissensus import cli, runs
from dissensus.train import read_preset, resolve

# Ray's own threads and sockets warn as they please.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def call(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "tune", "")

    def run(*arguments):
        code = cli.main(["tune", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def cluster():
    """One Ray for the module: a search uses the cluster that its process is connected to."""
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield ray
    ray.shutdown()


@pytest.mark.slow
def test_a_search_writes_a_preset_and_goes_on_from_its_store(cluster, call, tmp_path):
    space = tmp_path / "space.toml"
    space.write_text(
        'models = ["gcn"]\n[train.lr]\nloguniform = [1e-3, 1e-1]\n[model.hidden_channels]\nchoice = [4, 8]\n'
    )
    store, output = tmp_path / "runs.db", tmp_path / "found.toml"
    arguments = ("karate", "--model", "gcn", "--epochs", 2, "--splits", "1-2", "--space", space, "--store", store)
    code, out, err = call(
        *arguments, "--trials", 2, "--scheduler", "none", "--also", "gcn-pairnorm", "-o", output, "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert (found["trials"], found["finished"], found["splits"]) == (2, 2, [1, 2])
    assert err.count("validation") == 4

    with runs.Store(store) as opened:
        records = opened.query()
    assert len(records) == 4
    best = [r for r in records if r.config["train"]["lr"] == found["settings"]["train.lr"]]
    assert found["val_mean"] == pytest.approx(sum(r.result["val"] for r in best) / 2)
    means = {}
    for record in records:
        means.setdefault(record.config["train"]["lr"], []).append(record.result["val"])
    assert found["val_mean"] == max(sum(values) / 2 for values in means.values())

    preset = read_preset(str(output), "karate", "gcn")
    assert read_preset(str(output), "karate", "gcn-pairnorm") == preset
    assert preset["train"] == {"epochs": 2, "lr": found["settings"]["train.lr"]}
    assert preset["model"] == {"hidden_channels": found["settings"]["model.hidden_channels"]}
    assert resolve("karate", "gcn", preset=str(output)).train.epochs == 2

    # The same search again: the same proposals, every run found, and one new trial made, with early stopping.
    code, out, err = call(*arguments, "--trials", 3, "-o", output, "--json", "--quiet")
    assert (code, err.count("validation")) == (0, 0)
    assert json.loads(out)["trials"] == 3
    with runs.Store(store) as opened:
        after = opened.query()
    assert [r.key for r in after[:4]] == [r.key for r in records]
    assert [r.finished for r in after[:4]] == [r.finished for r in records]
    assert 5 <= len(after) <= 6


@pytest.mark.slow
def test_tpe_proposes_too(cluster, call, tmp_path):
    pytest.importorskip("optuna")
    output = tmp_path / "found.toml"
    arguments = ("karate", "--model", "gcn", "--epochs", 1, "--splits", "1", "--search", "tpe", "--trials", 2)
    code, out, err = call(*arguments, "-o", output, "--json")
    assert code == 0, err
    assert json.loads(out)["finished"] == 2
    assert "model.num_layers" in json.loads(out)["settings"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--search", "rnadom"), "did you mean 'random'"),
        (("--scheduler", "ahsa"), "did you mean 'asha'"),
        (("--trials", "0"), "at least 1"),
        (("--space", "none.toml"), "cannot be read"),
        (("-o", "found.json"), "ends in .toml"),
        (("--also", "gcn-parnorm"), "did you mean 'gcn-pairnorm'"),
        (("--set", "model.num_layer=3"), "did you mean 'num_layers'"),
    ],
)
@pytest.mark.slow
def test_wrong_use_is_refused_before_ray_starts(call, arguments, message):
    code, out, err = call("karate", "--model", "gcn", "--splits", "1", *arguments)
    assert (code, out) == (1, "")
    assert message in err


@pytest.mark.slow
def test_numbers_are_searched_for_the_smallest_error_in_the_default_space(cluster, call, tmp_path):
    store, output = tmp_path / "runs.db", tmp_path / "found.toml"
    arguments = ("diameter", "--set", "data.graphs=10", "--set", "data.nodes=12", "--model", "gcn", "--epochs", 2)
    common = ("--splits", 1, "--trials", 2, "--scheduler", "none", "--store", store, "-o", output, "--json")
    code, out, err = call(*arguments, *common)
    assert code == 0, err
    with runs.Store(store) as opened:
        errors = [record.result["val"] for record in opened.query()]
    assert len(errors) == 2
    assert json.loads(out)["val_mean"] == min(errors)
