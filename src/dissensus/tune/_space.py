"""Search spaces: which values a setting may take, in TOML files. Free of torch and Ray.

``presets/spaces/*.toml`` are the spaces of the package; ``default.toml`` is for all models that no other file names. A
file lists its models and gives a domain for each setting::

    models = ["bimp"]
    [model.heads]
    choice = [1, 2, 4]
    [train.lr]
    loguniform = [1e-3, 1e-1]
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from dissensus.errors import InputError, one_of, unknown
from dissensus.train import Config, located
from dissensus.train.presets import SPACES, read_toml

_DEFAULT = "default"
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
    """A search space.

    Attributes:
        models: the models that it is for.
        domains: domains by dotted path, such as ``{"model.heads": Domain("choice", (1, 2))}``.
        name: the name of its file.
    """

    models: tuple[str, ...]
    domains: Mapping[str, Domain]
    name: str = ""

    def __str__(self) -> str:
        return f"search space {self.name}: {', '.join(self.domains)}"


def read_space(model: str, path: Path | None = None, *, regression: bool = False) -> Space:
    """The search space of a model.

    A model without a space of its own, such as one from a file, gets the space ``default``: the learning rate, the
    weight decay, ``hidden_channels``, and ``dropout`` and the depth where its constructor has these options.

    Args:
        model: name of the model.
        path: file with another space, which must name the model.
        regression: leave out the loss on unlabelled nodes, which needs classes; of a file nothing is left out.
    """
    if path is not None:
        space = _read(path)
        names = {located(name): name for name in space.models}
        one_of(f"model in {path}", names.get(located(model), model), space.models)
        return space
    spaces = [_read(file) for file in sorted(SPACES.glob("*.toml")) if file.stem != _DEFAULT]
    space = next((space for space in spaces if model in space.models), None) or _default(model)
    kept = {name: domain for name, domain in space.domains.items() if not (regression and name == "train.consistency")}
    return replace(space, domains=kept)


def _default(model: str) -> Space:
    """The space ``default`` without the options that the model does not have, or that its name sets."""
    from dissensus import nn

    info, domains = nn.info(model), dict(_read(SPACES / f"{_DEFAULT}.toml").domains)
    if info.depth not in ("time", ""):
        domains[f"model.{info.depth}"] = domains["model.num_layers"]
    free = {"hidden_channels", "dropout", info.depth} & {"hidden_channels", *info.known_options} - set(info.options)
    kept = {
        path: domain
        for path, domain in domains.items()
        if path.startswith("train.") or path.removeprefix("model.") in free
    }
    return Space((model,), kept, _DEFAULT)


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
    return Space(tuple(models), domains, path.stem if path.parent == SPACES else str(path))


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
