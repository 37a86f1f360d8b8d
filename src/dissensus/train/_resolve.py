"""Combine defaults, a preset, a file and flags into a configuration; later ones override earlier ones. No torch."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from dissensus.errors import InputError, one_of
from dissensus.train._config import SECTIONS, Config, check_sections
from dissensus.train.presets import DEFAULT, Settings, read_preset, read_toml

_BARE = re.compile(r"[A-Za-z_][\w.+/-]*")


def resolve(
    dataset: str,
    model: str | None = None,
    *,
    preset: str = DEFAULT,
    file: str | PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
) -> Config:
    """The configuration of a run. A flag overrides a file, which overrides the preset, which overrides the default.

    Args:
        dataset: name of a dataset, or path of a graph.
        model: name of the model; by default that of the file, or ``bimp``.
        preset: one of :func:`preset_names`, or the path of a ``.toml`` file in their layout.
        file: TOML with the sections ``data``, ``model``, ``train``.
        flags: dotted paths to values, such as ``{"model.heads": 8}``.
        settings: further flags as strings, such as ``["model.heads=8"]``, with values as in TOML.

    >>> resolve("cora", preset="paper", flags={"train.epochs": 5}).train.epochs
    5
    """
    return Config.from_dict(merge(dataset, model, preset=preset, file=file, flags=flags, settings=settings))


def merge(
    dataset: str,
    model: str | None = None,
    *,
    preset: str = DEFAULT,
    file: str | PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
) -> Settings:
    """The settings of preset, file and flags together, without defaults, by section; see :func:`resolve`."""
    own = parse_settings(settings)
    for path in own.keys() & (flags or {}).keys():
        raise InputError(f"{path} is given twice, by its own flag and by --set: give it once")
    from_file = read_toml(Path(file)) if file is not None else {}
    check_sections(from_file)
    from_flags = nested(own | dict(flags or {}))
    name = from_flags.setdefault("model", {}).get("name")
    if model is not None and name not in (None, model):
        raise InputError(f"the model is {model}, and model.name={name} as well: give one of them")
    model = model or name or from_file.get("model", {}).get("name", "bimp")
    from_flags["model"]["name"] = model
    from_flags.setdefault("data", {})["name"] = dataset
    merged: Settings = {section: {} for section in SECTIONS}
    for layer in (read_preset(preset, dataset, model), from_file, from_flags):
        for section, values in layer.items():
            merged[section].update(values)
    return merged


def nested(flags: Mapping[str, Any]) -> Settings:
    """Group dotted names by section: ``{"model.heads": 8}`` -> ``{"model": {"heads": 8}}``."""
    layer: Settings = {}
    for path, value in flags.items():
        section, dot, key = path.partition(".")
        if not dot or not key or "." in key:
            raise InputError(
                f"{path!r} is not the name of a setting: write SECTION.KEY, such as model.heads or train.lr"
            )
        layer.setdefault(one_of("section", section, SECTIONS), {})[key] = value
    return layer


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Parse texts ``SECTION.KEY=VALUE``, with values as in TOML; a single word needs no quotes.

    >>> parse_settings(["model.heads=8", "model.attention=cosine"])
    {'model.heads': 8, 'model.attention': 'cosine'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        path, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not path or not value:
            raise InputError(f"--set takes SECTION.KEY=VALUE, such as model.heads=8, not {text!r}")
        if path in found:
            raise InputError(f"--set {path} is given twice: give it once")
        found[path] = _value(path, value)
    return found


def _value(path: str, text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    if list(parsed) == ["value"] and isinstance(parsed["value"], str | bool | int | float):
        return parsed["value"]
    if _BARE.fullmatch(text):
        return text
    raise InputError(f"{path} is {text!r}: give a number, true, false, or a text in quotes, such as '{path}=\"a b\"'")
