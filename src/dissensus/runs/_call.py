"""Execute one run: call the target with its configuration and return the outcome as plain values."""

import json
import os
import platform
import re
import socket
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from dissensus import __version__
from dissensus.errors import InputError
from dissensus.runs._config import RunConfig, plain
from dissensus.runtime import scope

# The fields of a Record, except key, target and config.
Outcome = dict[str, Any]
Target = Callable[[RunConfig], dict[str, Any]]


def import_target(target: str) -> Target:
    """Import the function with the name ``"module:function"``."""
    if not re.fullmatch(r"\w+(\.\w+)*:\w+(\.\w+)*", target):
        raise InputError(f"the target is {target!r}: write it as 'module:function'")
    module, _, path = target.partition(":")
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"the target {target!r} cannot be imported ({error}): check its name and PYTHONPATH"
        ) from error
    if not callable(found):
        raise InputError(f"the target {target!r} is not a function: give the name of one")
    return found


def call(target: str | Target, config: RunConfig, threads: int | None = None) -> Outcome:
    """Call ``target`` with ``config`` and this number of threads. An exception is returned as a failed outcome."""
    # If torch is not imported yet, it takes the number of threads from the environment later.
    with scope(threads=threads if "torch" in sys.modules else None):
        return _call(target, config)


def _call(target: str | Target, config: RunConfig) -> Outcome:
    function = import_target(target) if isinstance(target, str) else target
    started, clock = now(), time.perf_counter()
    result = error = trace = None
    try:
        result = plain(function(config), "the result", finite=False)
        if not isinstance(result, dict):
            raise InputError(f"the target {target!r} must return a dictionary")
        json.dumps(result)
    # A target that calls sys.exit has failed, but must not end the driver.
    except (Exception, SystemExit) as cause:
        result, error, trace = None, _one_line(cause), traceback.format_exc()
    return _outcome(result, error, trace, time.perf_counter() - clock, started, now())


def worker_died(cause: str, started: str) -> Outcome:
    """The outcome of a run whose worker died."""
    finished = now()
    seconds = (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
    return _outcome(None, cause, None, seconds, started, finished)


def _outcome(result: Any, error: str | None, trace: str | None, seconds: float, started: str, finished: str) -> Outcome:
    return {
        "status": "failed" if error else "done",
        "result": result,
        "error": error,
        "traceback": trace,
        "seconds": seconds,
        "started": started,
        "finished": finished,
        "provenance": provenance(),
    }


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def provenance() -> dict[str, Any]:
    """The machine, the versions of imported packages and the number of threads of a run."""
    versions = {
        name: str(sys.modules[name].__version__)
        for name in ("numpy", "scipy", "torch", "torch_geometric")
        if hasattr(sys.modules.get(name), "__version__")
    }
    torch = sys.modules.get("torch")
    threads = None if torch is None else torch.get_num_threads()
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "dissensus": __version__,
        **versions,
        "threads": threads,
    }


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
