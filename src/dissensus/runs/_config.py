"""Configurations of runs: conversion to JSON values, their hash, access by dotted paths, and grids."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import product
from numbers import Integral, Real
from typing import Any

from dissensus.errors import InputError

RunConfig = dict[str, Any]
ABSENT = object()


def plain(value: Any, path: str = "", *, finite: bool = True) -> Any:
    """``value`` in the types of JSON: dictionaries, lists, strings, numbers, booleans and None.

    Scalars of NumPy and torch become Python numbers. Other types raise an error that names the dotted path, and so do
    numbers that are not finite, unless ``finite`` is False.
    """
    kind = type(value)
    # A fast path for nearly all values: the checks below take ten times as long.
    if kind is str or kind is int or kind is bool or value is None or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if finite and not math.isfinite(number):
            raise InputError(f"{path or 'the value'} is {number}, which JSON cannot hold: give a finite number or None")
        return number
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InputError(f"{path or 'the value'} has the key {name!r}: keys must be strings")
        return {name: plain(entry, _join(path, name), finite=finite) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, f"{path}[{index}]", finite=finite) for index, entry in enumerate(value)]
    if getattr(value, "ndim", None) == 0:
        return plain(value.item(), path, finite=finite)
    raise InputError(
        f"{path or 'the value'} is of type {kind.__name__}, which JSON cannot hold: "
        "give numbers, strings, booleans, None, lists or dictionaries (arrays: .tolist(), paths: str())"
    )


def canonical(value: Any) -> str:
    """Canonical JSON, the same text for equal values: sorted keys, no spaces, 2.0 written as 2."""
    return json.dumps(_floats_to_integers(value), sort_keys=True, separators=(",", ":"))


def _floats_to_integers(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if kind is dict:
        return {name: _floats_to_integers(entry) for name, entry in value.items()}
    return [_floats_to_integers(entry) for entry in value] if kind is list else value


def key(config: Mapping[str, Any]) -> str:
    """The identity of a run: SHA-256 (64 hexadecimal digits) of its configuration in canonical JSON.

    The order of keys does not matter, nor whether 2 is an ``int`` or a ``float``. The hash is the same in every process
    and on every machine.

    >>> key({"model": {"heads": 8}, "seed": 1}) == key({"seed": 1.0, "model": {"heads": 8}})
    True
    """
    return plain_key(checked(config))


def plain_key(config: RunConfig) -> str:
    """:func:`key` of a configuration that already consists of plain values."""
    return sha256(canonical(config).encode()).hexdigest()


def checked(config: Mapping[str, Any]) -> RunConfig:
    """A copy of ``config`` in plain values."""
    if not isinstance(config, Mapping):
        raise InputError(f"a configuration is a {type(config).__name__}: give a dictionary")
    copy: RunConfig = plain(config)
    return copy


def grid(base: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]) -> list[RunConfig]:
    """``base`` with every combination of values of the ``axes``; the last axis varies fastest.

    An axis is a dotted path into the configuration with a list of values. ``base`` is not changed.

    >>> grid({"model": {"name": "bimp"}}, {"model.heads": [1, 8], "seed": [1, 2]})[1]
    {'model': {'name': 'bimp', 'heads': 1}, 'seed': 2}
    """
    for path, values in axes.items():
        if isinstance(values, str | Mapping) or not len(values):
            raise InputError(f"the axis {path!r} needs a list of at least one value, not {values!r}")
    configs = []
    for values in product(*axes.values()):
        config = checked(base)
        for path, value in zip(axes, values, strict=True):
            _set(config, path, plain(value, path))
        configs.append(config)
    return configs


def _set(config: RunConfig, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for depth, name in enumerate(parents):
        config = config.setdefault(name, {})
        if not isinstance(config, dict):
            raise InputError(
                f"{path!r} leads through {'.'.join(parents[: depth + 1])!r}, which is no dictionary: correct the path"
            )
    config[last] = value


def lookup(config: Mapping[str, Any], path: str) -> Any:
    """The entry at a dotted ``path``, or ``ABSENT``."""
    entry: Any = config
    for name in path.split("."):
        if not isinstance(entry, Mapping) or name not in entry:
            return ABSENT
        entry = entry[name]
    return entry


def leaves(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All entries that are not dictionaries, with their dotted paths."""
    for name, entry in config.items():
        if isinstance(entry, Mapping) and entry:
            yield from leaves(entry, _join(prefix, name))
        else:
            yield _join(prefix, name), entry


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
