"""Models by name: registered beside their class, by another package, or loaded from a user's file.

- ``@register("my-net")`` above a class gives it a name in this process.
- A package that declares an entry point in the group ``dissensus.models`` has its module or class imported when models
  are first looked up.
- ``"path/to/my_model.py:MyNet"`` is a name in itself, wherever a model can be named: the file is imported.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha1
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch

from dissensus.errors import InputError, unknown
from dissensus.nn._model import Model, constructor, read_file

_GROUP = "dissensus.models"
# Options that may set the depth of a model, in this order where a constructor has both.
_DEPTH_OPTIONS = ("num_layers", "time")
# The infos of each class, from its topmost decorator down.
_REGISTERED: dict[type[torch.nn.Module], list[ModelInfo]] = {}

ModelClass = TypeVar("ModelClass", bound=type[torch.nn.Module])


@dataclass(frozen=True)
class ModelInfo:
    """What the registry knows of a model.

    Attributes:
        name: the name that :func:`create` takes.
        cls: its class, constructed as ``cls(in_channels, hidden_channels, out_channels, **options)``.
        equation: its dynamics, or its layer.
        source: the paper that introduced it.
        tables: the tables and figures of the paper on opinion dissensus that it appears in.
        options: the options of the class that the name fixes.
        depth: the option that sets the depth; by default ``num_layers`` or ``time``, whichever the constructor has.
    """

    name: str
    cls: type[torch.nn.Module]
    equation: str = ""
    source: str = ""
    tables: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    depth: str = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.cls, type) and issubclass(self.cls, torch.nn.Module)):
            raise InputError(f"{self.name} is {self.cls!r}, not a class of models: derive it from torch.nn.Module")
        if len(self._parameters[:3]) < 3 and not self._takes_any(inspect.Parameter.VAR_POSITIONAL):
            raise InputError(
                f"{self.cls.__name__}{constructor(self.cls)} cannot be made by name: its constructor must begin with "
                "in_channels, hidden_channels, out_channels"
            )
        if not self.depth:
            found = (name for name in _DEPTH_OPTIONS if name in self.known_options)
            object.__setattr__(self, "depth", next(found, ""))
        for option in (*self.options, *filter(None, [self.depth])):
            self._check_known(option)

    @property
    def continuous(self) -> bool:
        """Whether the depth is integration time rather than a number of layers, as the class declares."""
        return bool(getattr(self.cls, "continuous", False))

    @property
    def known_options(self) -> list[str]:
        """The names of the constructor's options."""
        return [parameter.name for parameter in self._parameters[3:]]

    def at_depth(self, steps: int) -> dict[str, Any]:
        """The options for a depth of ``steps`` layers, or ``steps`` Euler steps of size 1.

        >>> info("gcn").at_depth(8)
        {'num_layers': 8}
        >>> info("grand-l").at_depth(8)
        {'time': 8.0, 'method': 'euler', 'step_size': 1.0, 'learn_time_scale': False}
        """
        if not self.depth:
            raise InputError(
                f"{self.name} has no depth to set: give its constructor the option num_layers or time, or name its own "
                'with @nn.register(..., depth="...")'
            )
        if self.depth != "time":
            return {self.depth: steps}
        # A learned time scale would make it another depth.
        exact = {"time": float(steps), "method": "euler", "step_size": 1.0, "learn_time_scale": False}
        return {option: value for option, value in exact.items() if option in self.known_options}

    def complete(self, options: Mapping[str, Any], *, num_nodes: int) -> dict[str, Any]:
        """``options`` with those added that only the graph can tell (see :meth:`Model.complete`)."""
        if issubclass(self.cls, Model):
            return self.cls.complete({**options, **self.options}, num_nodes)
        return dict(options)

    def create(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> Any:
        """The model; unknown options are refused, with the nearest match."""
        for option, value in options.items():
            self._check_known(option)
            if option in self.options and value != self.options[option]:
                raise InputError(
                    f"{self.name} means {option}={self.options[option]!r}: choose another model for another {option}"
                )
        return self.cls(in_channels, hidden_channels, out_channels, **{**options, **self.options})

    @property
    def _parameters(self) -> list[inspect.Parameter]:
        every = constructor(self.cls).parameters.values()
        return [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    def _takes_any(self, kind: Any) -> bool:
        return any(p.kind is kind for p in constructor(self.cls).parameters.values())

    def _check_known(self, option: str) -> None:
        if option not in self.known_options and not self._takes_any(inspect.Parameter.VAR_KEYWORD):
            raise unknown(f"option of {self.name}", option, self.known_options)


def register(
    name: str,
    *,
    equation: str = "",
    source: str = "",
    tables: str = "",
    options: Mapping[str, Any] | None = None,
    depth: str = "",
) -> Callable[[ModelClass], ModelClass]:
    """A class decorator that gives a model a name; stack several to give one class several names.

    Args:
        name: the name that :func:`create` and the command line take.
        equation: its dynamics, or its layer.
        source: the paper that introduced it.
        tables: the tables and figures of the paper on opinion dissensus that it appears in.
        options: options of the class that the name fixes.
        depth: the option that sets the depth; by default ``num_layers`` or ``time``, whichever the constructor has.

    Example:
        >>> @register("my-net", equation="X <- relu(AXW)")  # doctest: +SKIP
        ... class MyNet(torch.nn.Module):
        ...     def __init__(self, in_channels, hidden_channels, out_channels, *, num_layers=2): ...
        ...     def forward(self, x, edge_index, edge_weight=None): ...
    """
    if not name or ":" in name:
        raise InputError(f"{name!r} cannot name a model: give a name without a colon")

    def decorate(cls: ModelClass) -> ModelClass:
        found = ModelInfo(name, cls, equation, source, tables, dict(options or {}), depth)
        for other, infos in list(_REGISTERED.items()):
            if all(known.name != name for known in infos):
                continue
            if _origin(other) != _origin(cls):
                raise InputError(f"the name {name!r} is taken by {other.__module__}.{other.__name__}: choose another")
            infos[:] = [known for known in infos if known.name != name]  # the same class, defined again
        _REGISTERED.setdefault(cls, []).insert(0, found)
        return cls

    return decorate


def names() -> list[str]:
    """The names that :func:`create` knows; ``file.py:Class`` is a name as well."""
    return list(_by_name())


def info(name: str) -> ModelInfo:
    """What the registry knows of the model of that name, or of the class ``file.py:Class``."""
    path, _, cls = name.rpartition(":")
    if path.endswith(".py"):
        return _from_file(name, path, cls)
    if name.endswith(".py"):
        raise InputError(f"{name} is a file: name the class as well, such as {name}:MyNet")
    known = _by_name()
    if name not in known:
        raise unknown("model", name, known)
    return known[name]


def create(name: str, *, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> Any:
    """The model of that name, a :class:`torch.nn.Module` (one of ours is a :class:`Model`).

    Args:
        name: one of :func:`names`, or ``file.py:Class``.
        in_channels: width of the node features.
        hidden_channels: width of the hidden state.
        out_channels: number of classes.
        options: of the model's class; unknown ones are refused, with the nearest match.
    """
    return info(name).create(in_channels, hidden_channels, out_channels, **options)


def load(path: str | PathLike[str]) -> Model:
    """A model of any registered class from a file that ``model.save`` wrote, on the CPU, in evaluation mode."""
    name = read_file(path)[0]["class"]
    _load_entry_points()
    for cls in _REGISTERED:
        if cls.__name__ == name and issubclass(cls, Model):
            return cls.load(path)
    raise InputError(
        f"{path} holds a {name}, which this version does not know: upgrade dissensus, or import the module that "
        f"registers {name} first"
    )


def _by_name() -> dict[str, ModelInfo]:
    _load_entry_points()
    return {found.name: found for infos in _REGISTERED.values() for found in infos}


@cache
def _load_entry_points() -> None:
    for point in entry_points(group=_GROUP):
        try:
            loaded = point.load()  # a module or a class that registers itself, or a plain class
            if isinstance(loaded, type) and loaded not in _REGISTERED:
                register(point.name)(loaded)
        except Exception as error:  # whatever another package raises must not hide the other models
            warnings.warn(
                f"the model {point.name!r} of another package cannot be loaded from {point.value} "
                f"({type(error).__name__}: {error}): update or remove that package",
                stacklevel=2,
            )


def _from_file(name: str, path: str, target: str) -> ModelInfo:
    module = _import_file(Path(path))
    found = getattr(module, target, None)
    if found is None:
        classes = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise unknown(f"class of {path}", target, classes)
    # The name stays what was asked for: another process finds the class by it.
    return replace(_REGISTERED[found][0], name=name) if found in _REGISTERED else ModelInfo(name, found)


def _import_file(path: Path) -> ModuleType:
    """The module of a file, imported once a process, and again when the file has changed."""
    resolved = path.expanduser().resolve()
    if not resolved.is_file():
        raise InputError(f"there is no file {path}: give the path of the Python file that holds the model's class")
    content = str(resolved).encode() + resolved.read_bytes()
    name = f"dissensus_model_{resolved.stem}_{sha1(content).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, resolved)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(
            f"{path} cannot be imported ({type(error).__name__}: {error}): mend it; 'python {path}' shows the line"
        ) from error
    return module


def _origin(cls: type) -> tuple[str, str]:
    """The place a class is defined at: a notebook's cell that is run again defines the same class."""
    return cls.__qualname__, getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__
