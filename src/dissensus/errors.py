"""Errors that name their cure. Free of heavy imports, so every room and the command line can use it."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class DissensusError(Exception):
    """Base of the errors that a command reports as one line, without a traceback."""


class InputError(DissensusError, ValueError):
    """The caller's input is wrong; the message says what to change."""


class MissingExtraError(DissensusError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


class SolverError(DissensusError, RuntimeError):
    """An integration or a fixed-point iteration failed; the message says what to change."""


class TrainingError(DissensusError, RuntimeError):
    """The training diverged; the message says what to change."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not known: the nearest match, then the whole list.

    >>> str(unknown("model", "bmip", ["bimp", "gcn"]))
    "unknown model 'bmip': did you mean 'bimp'? Known: bimp, gcn"
    """
    names = list(known)
    lower = {name.lower(): name for name in names}
    near = get_close_matches(str(name).lower(), lower, n=1)
    hint = f" did you mean {lower[near[0]]!r}?" if near else ""
    return InputError(f"unknown {kind} {name!r}:{hint} Known: {', '.join(names)}")


def one_of(kind: str, name: str, known: Iterable[str]) -> str:
    """``name`` itself if it is known, otherwise the error of :func:`unknown`."""
    names = list(known)
    if name not in names:
        raise unknown(kind, name, names)
    return name


def optional(package: str, extra: str) -> Any:
    """An optional package, imported, or the error that says how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise missing_extra(package, extra) from error


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """The error for an optional package that is not installed."""
    return MissingExtraError(f"{package} is not installed; get it with: pip install 'dissensus[{extra}]'")


class StepSizeWarning(UserWarning):
    """A step of Euler's method so large that decay alone changes the sign of the state."""
