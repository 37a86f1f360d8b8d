"""Functions that several commands share: common flags, lists as text, and output."""

import argparse
import json
import re
import sys
from typing import Any

from dissensus.errors import InputError


def add_execution(parser: argparse.ArgumentParser) -> None:
    """How and where a grid of runs is executed, and ``--quiet``."""
    parser.add_argument("--retry-failed", action="store_true", help="repeat runs that failed before")
    words = "inline (this process, one run at a time), processes, or ray (a cluster)"
    parser.add_argument("--executor", default="inline", help=words)
    parser.add_argument("--workers", type=int, metavar="N", help="number of parallel runs, with processes or ray")
    parser.add_argument("--threads", type=int, metavar="N", help="number of threads of each run")
    parser.add_argument("--address", metavar="HOST:PORT", help="a running Ray cluster (default: start Ray here)")
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def chosen(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Some of the arguments, as keyword arguments of a function."""
    return {name: getattr(args, name) for name in names}


EXECUTION = ("executor", "workers", "threads", "address", "retry_failed")


def names(text: str | None) -> list[str] | None:
    """``"a, b"`` as ``["a", "b"]``, each once; None stays None."""
    return list(dict.fromkeys(part.strip() for part in text.split(","))) if text else None


def numbers(flag: str, text: str | None) -> list[int] | None:
    """Integers and ranges of them, ``"1-3,7"`` as ``[1, 2, 3, 7]``; None stays None."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        match = re.fullmatch(r"\s*(\d{1,10})(?:-(\d{1,10}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first >= 1_000_000:
            raise InputError(f"{flag}: {text!r} is no list of integers: write it as 1-10 or 1,2,5-7")
        found += range(first, last + 1)
    return list(dict.fromkeys(found)) or None


def say(text: str) -> None:
    """Print a line of progress or a warning to standard error."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print an object as one line of JSON, in which NaN and infinity become null."""
    print(json.dumps(json.loads(json.dumps(value), parse_constant=lambda name: None)))
