"""Search spaces: which values a setting may take, in TOML files. Free of torch and Ray.

``presets/spaces/*.toml`` hold the spaces of the package. Each names its models, and each setting one kind of domain::

    models = ["bimp"]
    [model.heads]
    choice = [1, 2, 4]
    [train.lr]
    loguniform = [1e-3, 1e-1]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from dissensus.errors import InputError, one_of, unknown
from dissensus.train import Config
from dissensus.train.presets import SPACES, read_toml

KINDS = ("choice", "uniform", "loguniform", "integer")


@dataclass(frozen=True)
class Domain:
    """The values of one setting.

    Attributes:
        kind: ``choice`` among the values; ``uniform`` or ``loguniform`` between two numbers; ``integer``, a whole
            number between two, both included.
        values: the choices, or the two ends.
    """

    kind: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        one_of("kind of domain", self.kind, KINDS)
        if self.kind == "choice":
            if not self.values or not all(isinstance(value, str | bool | int | float) for value in self.values):
                raise InputError(f"choice = {list(self.values)}: give at least one number, text, true or false")
            return
        kinds, whole = ((int,), "whole ") if self.kind == "integer" else ((int, float), "")
        if len(self.values) != 2 or not all(type(value) in kinds and isfinite(value) for value in self.values):
            raise InputError(f"{self.kind} = {list(self.values)}: give two {whole}numbers")
        low, high = self.values
        if not low < high or (self.kind == "loguniform" and low <= 0):
            positive = "positive, " * (self.kind == "loguniform")
            raise InputError(f"{self.kind} = [{low}, {high}]: give two ends, {positive}the lower first")

    def on_ray(self) -> Any:
        """The same as a domain of Ray Tune."""
        from ray import tune

        if self.kind == "choice":
            return tune.choice(list(self.values))
        low, high = self.values
        if self.kind == "integer":
            return tune.randint(low, high + 1)
        return (tune.uniform if self.kind == "uniform" else tune.loguniform)(float(low), float(high))


@dataclass(frozen=True)
class Space:
    """Domains by dotted path, such as ``{"model.heads": Domain("choice", (1, 2))}``, and the models they are for."""

    models: tuple[str, ...]
    domains: Mapping[str, Domain]


def read_space(model: str, path: Path | None = None) -> Space:
    """The package's space for a model, or the one in a file of yours."""
    if path is not None:
        space = _read(path)
        one_of(f"model in {path}", model, space.models)
        return space
    spaces = [_read(file) for file in sorted(SPACES.glob("*.toml"))]
    for space in spaces:
        if model in space.models:
            return space
    raise InputError(f"there is no search space for {model}: write one and give it with --space FILE")


def _read(path: Path) -> Space:
    content = read_toml(path)
    models = content.pop("models", None)
    if not isinstance(models, list) or not all(isinstance(name, str) for name in models):
        raise InputError(f'{path}: name the models that the space is for at its top, as models = ["bimp"]')
    domains = {}
    for section, entries in content.items():
        one_of(f"section in {path}", section, Config.sections())
        if not isinstance(entries, dict):
            raise InputError(f"{path}: {section} is a section: write [{section}.KEY] and a domain below it")
        for key, entry in entries.items():
            domains[f"{section}.{key}"] = _domain(path, section, key, entry)
    if not domains:
        raise InputError(f"{path}: there is nothing to search: add [train.lr] and loguniform = [1e-3, 0.1], say")
    return Space(tuple(models), domains)


def _domain(path: Path, section: str, key: str, entry: Any) -> Domain:
    if section != "model" and key not in Config.sections()[section].settings():
        raise unknown(
            f"setting in {path}",
            f"{section}.{key}",
            [f"{section}.{name}" for name in Config.sections()[section].settings()],
        )
    if not isinstance(entry, dict) or len(entry) != 1 or not isinstance(next(iter(entry.values())), list):
        raise InputError(f"{path}: [{section}.{key}] needs one line, such as choice = [1, 2] or uniform = [0.0, 1.0]")
    ((kind, values),) = entry.items()
    try:
        return Domain(kind, tuple(values))
    except InputError as error:
        raise InputError(f"{path}: [{section}.{key}] {error}") from error
