"""The configuration: what it refuses, and which of default, preset, file and flag wins."""

import json

import pytest

from dissensus.errors import InputError
from dissensus.train import Config, resolve


def test_every_default_is_filled_in_and_survives_json():
    config = resolve("cora", preset="none")
    assert (config.model.name, config.train.epochs, config.data.split) == ("bimp", 200, 1)
    assert Config.from_dict(json.loads(json.dumps(config.as_dict()))) == config
    other = resolve(
        "csbm", "gcn", preset="none", flags={"data.homophily": 0.3, "model.num_layers": 4, "data.undirected": True}
    )
    assert other.data.options == {"homophily": 0.3}
    assert Config.from_dict(json.loads(json.dumps(other.as_dict()))) == other


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
        ({"train.epochs": 1.5}, "give an integer"),
        ({"train.epochs": True}, "give an integer"),
        ({"train.lr": "fast"}, "finite number"),
        ({"train.lr": -1}, "positive"),
        ({"train.lr": float("nan")}, "finite"),
        ({"train.select_time": 1}, "true or false"),
        ({"train.optimizer": "adan"}, "did you mean 'adam'"),
        ({"train.dtype": "float16"}, "float32"),
        ({"train.weight_decay": -0.1}, "at least 0"),
        ({"data.split": -1}, "at least 0"),
        ({"model.hidden_channels": 0}, "at least 1"),
        ({"model.name": "gcn", "train.select_time": True}, "no solver time"),
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
