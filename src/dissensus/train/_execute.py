"""A run as the executors know it: plain values in, plain values out; and a way to look on while it runs here."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from dissensus.train._config import Config
from dissensus.train._fit import Epoch, Result, fit


@dataclass(frozen=True)
class _Watcher:
    epoch: Callable[[Config, Epoch], None]
    done: Callable[[Result], None]


_WATCHER: ContextVar[_Watcher | None] = ContextVar("watcher", default=None)


def execute(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Train one run; ``"dissensus.train:execute"`` is the target of a grid of them in :mod:`dissensus.runs`.

    Args:
        config: what :meth:`Config.as_dict` gives.

    Returns:
        ``split, seed, val, test, epoch, seconds`` and more (:meth:`Result.as_dict`); accuracies in per cent.
    """
    run, watcher = Config.from_dict(config), _WATCHER.get()
    if watcher is None:
        return fit(run).as_dict()
    result = fit(run, progress=lambda epoch: watcher.epoch(run, epoch))
    watcher.done(result)
    return result.as_dict()


@contextmanager
def watching(
    epoch: Callable[[Config, Epoch], None] = lambda config, epoch: None,
    done: Callable[[Result], None] = lambda result: None,
) -> Iterator[None]:
    """While the block runs, every :func:`execute` in this process (executor ``inline``) reports here.

    Args:
        epoch: called after every epoch.
        done: called with every finished run.
    """
    token = _WATCHER.set(_Watcher(epoch, done))
    try:
        yield
    finally:
        _WATCHER.reset(token)
