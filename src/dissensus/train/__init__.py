"""Train any module on any graph with :func:`fit`, or a run from a typed configuration with :func:`run`.

>>> from dissensus import train
>>> config = train.resolve("karate", "gcn", flags={"train.epochs": 5})
>>> config.train.epochs
5
>>> train.run(config).epoch <= 5
True

Configurations do not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dissensus.train import presets as presets
from dissensus.train._config import Config, DataConfig, ModelConfig, TrainConfig
from dissensus.train._config import is_error as is_error
from dissensus.train._config import located as located
from dissensus.train._resolve import merge as merge
from dissensus.train._resolve import resolve
from dissensus.train.presets import preset_names as preset_names
from dissensus.train.presets import read_preset as read_preset

# The function that grids in :mod:`dissensus.runs` call.
TARGET = "dissensus.train:execute"

if TYPE_CHECKING:
    from dissensus.train._batch import fields_of as fields_of
    from dissensus.train._batch import inputs as inputs
    from dissensus.train._fit import Epoch as Epoch
    from dissensus.train._fit import Result, fit
    from dissensus.train._run import Run as Run
    from dissensus.train._run import execute as execute
    from dissensus.train._run import run
    from dissensus.train._save import Saved as Saved
    from dissensus.train._save import load_saved, predict, save
    from dissensus.train._save import order_unknown as order_unknown
    from dissensus.train._save import prepare as prepare

__all__ = [
    "Config",
    "DataConfig",
    "ModelConfig",
    "Result",
    "TrainConfig",
    "fit",
    "load_saved",
    "predict",
    "resolve",
    "run",
    "save",
]

_HOMES = {
    **dict.fromkeys(("fields_of", "inputs"), "_batch"),
    **dict.fromkeys(("Epoch", "Result", "fit"), "_fit"),
    **dict.fromkeys(("Run", "execute", "run"), "_run"),
    **dict.fromkeys(("Saved", "load_saved", "order_unknown", "predict", "prepare", "save"), "_save"),
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
