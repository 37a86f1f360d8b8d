"""Error classes. Every message says what to do. This file imports nothing heavy, so that all modules can use it."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class DissensusError(Exception):
    """Base class of errors that the command line reports as one line, without a traceback."""


class InputError(DissensusError, ValueError):
    """Invalid input; the message says what to change."""


class MissingExtraError(DissensusError, ImportError):
    """An optional dependency is missing; the message says which extra to install."""


class SolverError(DissensusError, RuntimeError):
    """An integration or a fixed-point iteration failed; the message says what to change."""


class TrainingError(DissensusError, RuntimeError):
    """The training diverged; the message says what to change."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for an unknown name, with the closest match and a list of all known names.

    >>> str(unknown("model", "bmip", ["bimp", "gcn"]))
    "unknown model 'bmip': did you mean 'bimp'? Known: bimp, gcn"
    """
    names = list(known)
    lower = {name.lower(): name for name in names}
    near = get_close_matches(str(name).lower(), lower, n=1)
    hint = f": did you mean {lower[near[0]]!r}?" if near else "."
    return InputError(f"unknown {kind} {name!r}{hint} Known: {', '.join(names)}")


def one_of(kind: str, name: str, known: Iterable[str]) -> str:
    """Return ``name`` if it is known; otherwise raise the error of :func:`unknown`."""
    names = list(known)
    if name not in names:
        raise unknown(kind, name, names)
    return name


def optional(package: str, extra: str, module: str = "") -> Any:
    """Import an optional package, or a module of it, or raise an error that says how to install the package."""
    try:
        return import_module(module or package)
    except ImportError as error:
        cure = f"install it with: pip install 'dissensus[{extra}]'"
        raise MissingExtraError(f"{package} is not installed; {cure}") from error


class StepSizeWarning(UserWarning):
    """Warning for an Euler step so large that decay alone flips the sign of the state."""
