"""Models by name. There are three ways to give a model a name:

- ``@register("my-net")`` above the class registers it in this process.
- A package can declare an entry point in the group ``dissensus.models``. Its module or class is imported the first time
  that models are looked up.
- ``"path/to/my_model.py:MyNet"`` works wherever a model name is expected: the file is imported.
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
# Options that set the depth of a model; the first one that the constructor has is used.
_DEPTH_OPTIONS = ("num_layers", "time")
# All names of each class, in the order of its decorators.
_REGISTERED: dict[type[torch.nn.Module], list[ModelInfo]] = {}

ModelClass = TypeVar("ModelClass", bound=type[torch.nn.Module])


@dataclass(frozen=True)
class ModelInfo:
    """A registered model.

    Attributes:
        name: the name that :func:`create` takes.
        cls: its class, which is constructed as ``cls(in_channels, hidden_channels, out_channels, **options)``.
        equation: the equation of its dynamics or of its layer, as text.
        source: the paper that introduced it.
        tables: the tables and figures of the BIMP paper in which it appears.
        options: the options of the class that this name sets.
        depth: the name of the option that sets the depth; by default ``num_layers`` or ``time``, whichever exists.
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
            raise InputError(f"{self.name} is {self.cls!r}, not a model class: derive it from torch.nn.Module")
        if len(self._parameters[:3]) < 3 and not self._takes_any(inspect.Parameter.VAR_POSITIONAL):
            raise InputError(
                f"{self.cls.__name__}{constructor(self.cls)} cannot be created by name: its constructor must begin "
                "with in_channels, hidden_channels, out_channels"
            )
        if not self.depth:
            found = (name for name in _DEPTH_OPTIONS if name in self.known_options)
            object.__setattr__(self, "depth", next(found, ""))
        for option in (*self.options, *filter(None, [self.depth])):
            self._check_known(option)

    @property
    def continuous(self) -> bool:
        """Whether the depth is integration time rather than a number of layers."""
        return bool(getattr(self.cls, "continuous", False))

    @property
    def known_options(self) -> list[str]:
        """The names of the constructor's options."""
        return [parameter.name for parameter in self._parameters[3:]]

    def at_depth(self, steps: int) -> dict[str, Any]:
        """The options that give the model a depth of ``steps`` layers, or ``steps`` Euler steps of size 1.

        >>> info("gcn").at_depth(8)
        {'num_layers': 8}
        >>> info("grand-l").at_depth(8)
        {'time': 8.0, 'method': 'euler', 'step_size': 1.0, 'learn_time_scale': False}
        """
        if not self.depth:
            raise InputError(
                f"{self.name} has no option for its depth: give its constructor the option num_layers or time, or name "
                'another one with @nn.register(..., depth="...")'
            )
        if self.depth != "time":
            return {self.depth: steps}
        # A learned time scale would change the depth.
        exact = {"time": float(steps), "method": "euler", "step_size": 1.0, "learn_time_scale": False}
        return {option: value for option, value in exact.items() if option in self.known_options}

    def complete(self, options: Mapping[str, Any], *, num_nodes: int) -> dict[str, Any]:
        """Add the options that depend on the graph to ``options`` (see :meth:`Model.complete`)."""
        if issubclass(self.cls, Model):
            return self.cls.complete({**options, **self.options}, num_nodes)
        return dict(options)

    def create(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> Any:
        """Create the model. An unknown option is an error that suggests the closest match."""
        for option, value in options.items():
            self._check_known(option)
            if option in self.options and value != self.options[option]:
                raise InputError(
                    f"{self.name} always has {option}={self.options[option]!r}: choose another model, or leave out "
                    f"{option}"
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
    """Class decorator that registers a model under a name. Stack several to give one class several names.

    Args:
        name: the name that :func:`create` and the command line take.
        equation: the equation of its dynamics or of its layer, as text.
        source: the paper that introduced it.
        tables: the tables and figures of the BIMP paper in which it appears.
        options: options of the class that this name sets.
        depth: the name of the option that sets the depth; by default ``num_layers`` or ``time``, whichever exists.

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
    """The names of all registered models. ``file.py:Class`` also works wherever a name is expected."""
    return list(_by_name())


def info(name: str) -> ModelInfo:
    """The :class:`ModelInfo` of a registered model, or of a class in a file, ``file.py:Class``."""
    path, _, cls = name.rpartition(":")
    if path.endswith(".py"):
        return _from_file(name, path, cls)
    if name.endswith(".py"):
        raise InputError(f"{name} is a file: add the name of the class, such as {name}:MyNet")
    known = _by_name()
    if name not in known:
        raise unknown("model", name, known)
    return known[name]


def create(name: str, *, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> Any:
    """Create a model by name. Models of this package are a :class:`Model`, all others a :class:`torch.nn.Module`.

    Args:
        name: one of :func:`names`, or ``file.py:Class``.
        in_channels: width of the node features.
        hidden_channels: width of the hidden state.
        out_channels: number of classes.
        options: further options of the model's class. An unknown option is an error that suggests the closest match.
    """
    return info(name).create(in_channels, hidden_channels, out_channels, **options)


def load(path: str | PathLike[str]) -> Model:
    """Load a model of any registered class from a file written by ``model.save``, to the CPU and in evaluation mode."""
    name = read_file(path)[0]["class"]
    _load_entry_points()
    for cls in _REGISTERED:
        if cls.__name__ == name and issubclass(cls, Model):
            return cls.load(path)
    raise InputError(
        f"{path} holds a {name}, which is not registered: import the module that registers it first, or upgrade "
        "dissensus"
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
        except Exception as error:  # an error in another package must not hide the other models
            warnings.warn(
                f"the model {point.name!r}, an entry point of another package, cannot be loaded from {point.value} "
                f"({type(error).__name__}: {error}): update or remove that package",
                stacklevel=2,
            )


def _from_file(name: str, path: str, target: str) -> ModelInfo:
    module = _import_file(Path(path))
    found = getattr(module, target, None)
    if found is None:
        classes = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise unknown(f"class of {path}", target, classes)
    # Keep the name that was asked for, so that another process can find the class by it.
    return replace(_REGISTERED[found][0], name=name) if found in _REGISTERED else ModelInfo(name, found)


def _import_file(path: Path) -> ModuleType:
    """The module of a file; it is imported once per process, and again if the file has changed."""
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
            f"{path} cannot be imported ({type(error).__name__}: {error}): fix it; 'python {path}' shows the line"
        ) from error
    return module


def _origin(cls: type) -> tuple[str, str]:
    """Where a class is defined. A notebook cell that is run again defines the same class."""
    return cls.__qualname__, getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__
