import subprocess
import sys

import pytest

from dissensus.errors import InputError
from dissensus.train import resolve
from dissensus.train._resolve import parse_settings


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


def test_the_model_is_named_by_flag_or_file(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[model]\nname = "gcn"\n')
    assert resolve("karate", file=file).model.name == "gcn"
    assert resolve("karate", "bimp", file=file).model.name == "bimp"
    assert resolve("karate", flags={"model.name": "gcn"}).model.name == "gcn"
    with pytest.raises(InputError, match="give one of them"):
        resolve("karate", "bimp", flags={"model.name": "gcn"})


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


def test_resolving_needs_no_torch():
    code = "import sys; from dissensus.train import resolve; resolve('cora'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
