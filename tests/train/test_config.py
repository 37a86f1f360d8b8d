"""The configuration: what it refuses, and which of default, preset, file and flag wins."""

import json
import subprocess
import sys

import pytest

from dissensus.errors import InputError
from dissensus.train import Config, preset_names, read_preset, resolve
from dissensus.train._resolve import parse_settings
from dissensus.train.presets import read_settings, write_settings


def test_every_default_is_filled_in_and_survives_json():
    config = resolve("cora", preset="none")
    assert (config.model.name, config.train.epochs, config.data.split) == ("bimp", 200, 1)
    assert Config.from_dict(json.loads(json.dumps(config.as_dict()))) == config
    other = resolve(
        "csbm", "gcn", preset="none", flags={"data.homophily": 0.3, "model.num_layers": 4, "data.undirected": True}
    )
    assert other.data.options == {"homophily": 0.3}
    assert Config.from_dict(json.loads(json.dumps(other.as_dict()))) == other


def test_flag_beats_file_beats_preset_beats_default(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("[model]\nheads = 2\ntime = 3.0\n[train]\nlr = 0.5\n")
    config = resolve("cora", preset="paper", file=file, flags={"model.heads": 8, "train.epochs": 7})
    assert config.model.options["heads"] == 8  # flag over file (2) and preset (4)
    assert config.model.options["time"] == 3.0  # file over preset (12.2695)
    assert config.train.lr == 0.5  # file over preset (0.0178)
    assert config.model.options["damping"] == 0.8952  # preset over the class's default
    assert config.train.optimizer == "adamax"  # preset over default
    assert config.train.epochs == 7  # flag over preset (100)
    assert config.train.patience == 0  # default


@pytest.mark.parametrize(("path", "value"), [("train.epochs", 200), ("train.lr", 0.01), ("model.hidden_channels", 64)])
def test_a_flag_with_the_value_of_the_default_still_beats_the_preset(path, value):
    section, key = path.split(".")
    assert resolve("cora", preset="paper").as_dict()[section][key] != value
    assert resolve("cora", preset="paper", flags={path: value}).as_dict()[section][key] == value


def test_a_preset_is_not_changed_by_what_is_put_over_it():
    before = read_preset("paper", "cora", "bimp")
    resolve("cora", preset="paper", flags={"model.heads": 8})
    assert read_preset("paper", "cora", "bimp") == before


def test_the_model_is_named_by_flag_or_file(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[model]\nname = "gcn"\n')
    assert resolve("karate", file=file).model.name == "gcn"
    assert resolve("karate", "bimp", file=file).model.name == "bimp"
    assert resolve("karate", flags={"model.name": "gcn"}).model.name == "gcn"
    with pytest.raises(InputError, match="give one of them"):
        resolve("karate", "bimp", flags={"model.name": "gcn"})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"train.epoch": 5}, r"did you mean 'train\.epochs'"),
        ({"data.splits": 5}, r"did you mean 'data\.split'"),
        ({"modle.heads": 5}, "did you mean 'model'"),
        ({"heads": 5}, "SECTION.KEY"),
        ({"model.a.b": 5}, "SECTION.KEY"),
        ({"model.name": "bmip"}, "did you mean 'bimp'"),
        ({"train.epochs": 0}, "at least 1"),
        ({"train.epochs": 1.5}, "whole number"),
        ({"train.epochs": True}, "whole number"),
        ({"train.lr": "fast"}, "finite number"),
        ({"train.lr": -1}, "positive"),
        ({"train.lr": float("nan")}, "finite"),
        ({"train.select_time": 1}, "true or false"),
        ({"train.optimizer": "adan"}, "did you mean 'adam'"),
        ({"train.dtype": "float16"}, "float32"),
        ({"train.weight_decay": -0.1}, "at least 0"),
        ({"data.split": -1}, "at least 0"),
        ({"model.hidden_channels": 0}, "at least 1"),
        ({"model.name": "gcn", "train.select_time": True}, "has layers"),
    ],
)
def test_wrong_settings_are_refused(flags, message):
    with pytest.raises(InputError, match=message):
        resolve("karate", preset="none", flags=flags).check()


def test_wrong_files_are_refused(tmp_path):
    file = tmp_path / "run.toml"
    for text, message in (
        ("[train\n", "not valid TOML"),
        ("[trian]\nlr = 1\n", "did you mean 'train'"),
        ("train = 3\n", "it is a section"),
        ("[train]\nlrr = 1\n", r"did you mean 'train\.lr'"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            resolve("karate", file=file)
    with pytest.raises(InputError, match="cannot be read"):
        resolve("karate", file=tmp_path / "none.toml")
    with pytest.raises(InputError, match=r"data\.name"):
        Config.from_dict({})


def test_values_of_flags_are_toml():
    texts = ["a.b=8", "a.c=0.5", "a.d=true", 'a.e="x y"', "a.f=cosine", "a.g=1e-3", "a.h = -2"]
    assert parse_settings(texts) == {
        "a.b": 8, "a.c": 0.5, "a.d": True, "a.e": "x y", "a.f": "cosine", "a.g": 1e-3, "a.h": -2,
    }  # fmt: skip
    for wrong in ("a.b", "a.b=", "=3", "a.b=[1, 2]", "a.b=1\nc = 2", "a.b={x = 1}", "a.b=1 2"):
        with pytest.raises(InputError):
            parse_settings([wrong])
    with pytest.raises(InputError, match="twice"):
        parse_settings(["a.b=1", "a.b=2"])


def test_presets_that_do_not_exist_say_which_do(tmp_path):
    assert preset_names()[:2] == ["default", "none"]
    assert {"paper", "tuned"} <= set(preset_names())
    with pytest.raises(InputError, match="did you mean 'paper'"):
        resolve("cora", preset="papre")
    with pytest.raises(InputError, match=r"no settings for karate, only for: .*cora"):
        resolve("karate", preset="paper")
    with pytest.raises(InputError, match="no settings for the model gcn on texas, only for: bimp"):
        resolve("texas", "gcn", preset="paper")
    assert read_preset("default", "karate", "gcn") == {}
    with pytest.raises(InputError, match="cannot be read"):
        resolve("karate", preset=str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr = 1", "list of tables"),
        ("[[settings]]\n[settings.model]\nheads = 1", "needs models"),
        ('[[settings]]\nmodels = "bimp"', "needs models"),
        ('[[settings]]\nmodels = ["bimp"]\n[[settings]]\nmodels = ["bimp"]', "two"),
        ('[[settings]]\nmodels = ["bimp"]\nmodell = 3', "unknown key"),
    ],
)
def test_wrong_preset_files_are_refused(tmp_path, text, message):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        resolve("karate", preset=str(path))


def test_a_written_preset_is_read_again(tmp_path):
    path = tmp_path / "mine" / "karate.toml"
    first = {"model": {"heads": 2, "attention": 'a "b"\n\\é', "adaptive": True}, "train": {"lr": 1e-05}}
    write_settings(path, ["bimp", "bimp-aa"], "one", first)
    write_settings(path, ["gcn"], "two", {"train": {"epochs": 3}})
    write_settings(path, ["bimp"], "three", first | {"train": {"lr": 0.25}})
    assert [(entry["models"], entry["note"]) for entry in read_settings(path)] == [
        (["bimp-aa"], "one"),
        (["gcn"], "two"),
        (["bimp"], "three"),
    ]
    assert read_preset(str(path), "karate", "bimp") == first | {"train": {"lr": 0.25}}
    assert resolve("karate", "gcn", preset=str(path)).train.epochs == 3


def test_resolving_needs_no_torch():
    code = "import sys; from dissensus.train import resolve; resolve('cora'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
