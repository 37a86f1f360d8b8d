"""Models by name."""

from __future__ import annotations

import inspect
from importlib import import_module
from os import PathLike
from typing import Any

from dissensus.catalogue import MODELS, ModelInfo
from dissensus.errors import InputError, unknown
from dissensus.nn._model import Model, read_file


def names() -> list[str]:
    """The names that :func:`create` knows."""
    return list(MODELS)


def _class(info: ModelInfo) -> type[Model]:
    module, name = info.target.split(":")
    found: type[Model] = getattr(import_module(f"dissensus.nn.{module}"), name)
    return found


def create(name: str, *, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> Model:
    """The model of that name.

    Args:
        name: one of :func:`names`.
        in_channels: width of the node features.
        hidden_channels: width of the hidden state.
        out_channels: number of classes.
        options: of the model's class; unknown ones are refused, with the nearest match.
    """
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    info = MODELS[name]
    model = _class(info)
    known = [p.name for p in inspect.signature(model.__init__).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
        if option in info.options and options[option] != info.options[option]:
            raise InputError(
                f"{name} means {option}={info.options[option]!r}: choose another model for another {option}"
            )
    return model(in_channels, hidden_channels, out_channels, **{**options, **info.options})


def load(path: str | PathLike[str]) -> Model:
    """A model of any class from a file that ``model.save`` wrote, on the CPU, in evaluation mode."""
    name = read_file(path)[0]["class"]
    for info in MODELS.values():
        if info.target.endswith(f":{name}"):
            return _class(info).load(path)
    raise InputError(f"{path} holds a {name}, which this version does not know: upgrade dissensus")
