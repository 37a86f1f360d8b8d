"""Typed configuration, presets, one training loop for all models, and trained models as folders.

>>> config = resolve("karate", "gcn", flags={"train.epochs": 5})
>>> config.train.epochs
5
>>> fit(config).epoch <= 5
True

The configuration needs no torch; what trains is imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dissensus.train._config import Config, DataConfig, ModelConfig, TrainConfig
from dissensus.train._presets import preset_names, read_preset
from dissensus.train._resolve import resolve

# What a grid of runs in :mod:`dissensus.runs` calls.
TARGET = "dissensus.train:execute"

if TYPE_CHECKING:
    from dissensus.train._distributed import fit_distributed
    from dissensus.train._execute import execute, watching
    from dissensus.train._fit import Epoch, Result, TrainingError, check, fit
    from dissensus.train._log import open_logger
    from dissensus.train._save import Saved, load_saved, order_unknown, predict, prediction_rows, prepare, save

__all__ = [
    "TARGET",
    "Config",
    "DataConfig",
    "Epoch",
    "ModelConfig",
    "Result",
    "Saved",
    "TrainConfig",
    "TrainingError",
    "check",
    "execute",
    "fit",
    "fit_distributed",
    "load_saved",
    "open_logger",
    "order_unknown",
    "predict",
    "prediction_rows",
    "prepare",
    "preset_names",
    "read_preset",
    "resolve",
    "save",
    "watching",
]

_HOMES = {
    **dict.fromkeys(("execute", "watching"), "_execute"),
    **dict.fromkeys(("Epoch", "Result", "TrainingError", "check", "fit"), "_fit"),
    "fit_distributed": "_distributed",
    "open_logger": "_log",
    **dict.fromkeys(("Saved", "load_saved", "order_unknown", "predict", "prediction_rows", "prepare", "save"), "_save"),
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
