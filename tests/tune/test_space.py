"""Search spaces: what they refuse, and that every proposal of the package's own makes a model."""

from pathlib import Path

import pytest
import torch

from dissensus import nn
from dissensus.errors import InputError
from dissensus.train import resolve
from dissensus.train.presets import SPACES
from dissensus.tune import Domain, read_space


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("coice", (1,), "did you mean 'choice'"),
        ("choice", (), "at least one"),
        ("choice", ([1],), "at least one"),
        ("uniform", (1,), "two numbers"),
        ("uniform", (2.0, 1.0), "lower first"),
        ("uniform", (0.0, float("inf")), "two numbers"),
        ("loguniform", (0.0, 1.0), "positive"),
        ("integer", (1.0, 2.0), "whole"),
        ("integer", (True, 2), "whole"),
    ],
)
def test_wrong_domains_are_refused(kind, values, message):
    with pytest.raises(InputError, match=message):
        Domain(kind, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train.lr]\nuniform = [0, 1]", "name the models"),
        ('models = ["gcn"]', "nothing to search"),
        ('models = ["gcn"]\n[trian.lr]\nuniform = [0, 1]', "did you mean 'train'"),
        ('models = ["gcn"]\n[train.lrr]\nuniform = [0, 1]', r"did you mean 'train\.lr'"),
        ('models = ["gcn"]\n[train]\nlr = 3', "needs one line"),
        ('models = ["gcn"]\ntrain = 3', "is a section"),
        ('models = ["gcn"]\n[train.lr]\nuniform = [2, 1]', r"\[train\.lr\] uniform"),
        ('models = ["bimp"]\n[train.lr]\nuniform = [0, 1]', "unknown model in"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text, message):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_space("gcn", path)


class Deep(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels, *, rounds=3, dropout=0.5):
        super().__init__()


COMMON = ["model.hidden_channels", "train.lr", "train.weight_decay"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "def __init__(self, in_channels, hidden_channels, out_channels, *, num_layers=2, dropout=0.5): ...",
            ["model.dropout", "model.num_layers"],
        ),
        ("def __init__(self, in_channels, hidden_channels, out_channels, *, time=2.0): ...", ["model.time"]),
        ("def __init__(self, in_channels, hidden_channels, out_channels): ...", []),
    ],
)
def test_a_model_of_a_file_gets_the_default_space(tmp_path, text, expected):
    file = tmp_path / "mine.py"
    file.write_text(f"import torch\nclass Net(torch.nn.Module):\n    {text}\n")
    space = read_space(f"{file}:Net")
    assert space.name == "default"
    assert sorted(space.domains) == sorted(COMMON + expected)
    assert str(space).startswith("search space default: model.hidden_channels")


def test_the_declared_depth_is_searched_and_what_the_name_sets_is_not(monkeypatch):
    info = nn.ModelInfo("deep", Deep, options={"dropout": 0.1}, depth="rounds")
    monkeypatch.setattr(nn, "info", lambda name: info)
    space = read_space("deep")
    assert sorted(space.domains) == sorted([*COMMON, "model.rounds"])
    assert space.domains["model.rounds"].kind == "integer"


def test_a_regression_searches_no_loss_on_unlabelled_nodes():
    assert "train.consistency" in read_space("gcn").domains
    assert "train.consistency" not in read_space("gcn", regression=True).domains


def test_every_model_has_a_space_and_a_file_names_a_model_by_any_path(tmp_path, monkeypatch):
    assert all(read_space(name).domains for name in nn.names())
    monkeypatch.chdir(tmp_path)
    Path("space.toml").write_text('models = ["mine.py:Net"]\n[train.lr]\nuniform = [0.0, 1.0]')
    assert read_space(f"{tmp_path}/mine.py:Net", Path("space.toml")).name == "space.toml"
    with pytest.raises(InputError, match="unknown model 'nothing'"):
        read_space("nothing")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_every_proposal_makes_a_model():
    seen = []
    for file in sorted(set(SPACES.glob("*.toml")) - {SPACES / "default.toml"}):
        space = read_space(next(iter(_models(file))), file)
        for model in space.models:
            seen.append(model)
            for _ in range(10):
                flags = {path: domain.on_ray().sample() for path, domain in space.domains.items()}
                resolve("karate", model, preset="none", flags=flags).check()
    assert sorted(seen) == sorted(nn.names())


def _models(file):
    import tomllib

    return tomllib.loads(file.read_text())["models"]


def test_integers_include_both_ends():
    domain = Domain("integer", (2, 3)).on_ray()
    assert {domain.sample() for _ in range(50)} == {2, 3}
