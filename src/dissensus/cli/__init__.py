"""The command line: a thin door. A command is a module here with ``configure(parser)`` and ``run(args) -> int``.

A command's module is imported only when that command is called, and imports torch only inside ``run``, so that
``dissensus --help`` answers at once.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

from dissensus import __version__
from dissensus.errors import DissensusError, unknown

# command -> (module, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "train GCN and BIMP at growing depth on an embedded graph; a minute"),
    "train": ("train", "train a model on a dataset or on your own graph"),
    "predict": ("predict", "classify the nodes of a graph with a saved model"),
    "tune": ("tune", "search hyperparameters on validation data"),
    "runs": ("runs", "list, filter, average and export stored runs"),
    "measure": ("measure", "measure oversmoothing over depth"),
    "simulate": ("simulate", "simulate opinions on a graph"),
    "bifurcation": ("bifurcation", "draw bifurcation diagrams of opinions on a graph"),
    "theory": ("theory", "check the lemmas and theorems on random graphs"),
    "reproduce": ("reproduce", "rebuild the tables and figures of the paper"),
    "bench": ("bench", "measure speed against plain implementations"),
    "data": ("data", "list the datasets: sizes, homophily, licence, whether present"),
    "models": ("models", "list the models: equation, source, tables"),
}


# How often a thread of torch looks for work before it sleeps. What sleeps is slow to wake: on an idle machine an epoch
# on a small graph takes a fifth to a third less with many looks. Beside other work every look takes time from all: an
# epoch takes four times as long with many as with few, and ten times and more with those that OpenMP makes by itself.
_LOOKS_IDLE, _LOOKS_BUSY = "20000", "1000"
_LOAD = Path("/proc/loadavg")


def _idle() -> bool:
    """Whether no other process was running at most of a few moments; False where that cannot be seen."""
    alone = 0
    for _ in range(8 if _LOAD.exists() else 0):
        alone += _LOAD.read_text().split()[3].startswith("1/")  # this process alone, of so many
        time.sleep(0.002)
    return alone > 4


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows a default where there is one worth showing."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        shown = action.default is not None and action.default is not False and action.default != []
        return super()._get_help_string(action) if shown else action.help


def _overview() -> str:
    width = max(map(len, COMMANDS))
    return "commands:\n" + "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 failed, 2 wrong use, 130 interrupted)."""
    if "OMP_WAIT_POLICY" not in os.environ and "GOMP_SPINCOUNT" not in os.environ:
        os.environ["GOMP_SPINCOUNT"] = _LOOKS_IDLE if _idle() else _LOOKS_BUSY  # read when torch is loaded
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="dissensus",
        description="Deep graph neural networks that do not oversmooth.",
        epilog=_overview() + "\n\n'dissensus COMMAND --help' tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dissensus {__version__}")
    parser.add_argument("command", metavar="COMMAND", help="one of the commands below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    if not argv:
        parser.print_help(sys.stderr)
        return 2
    called = parser.parse_args(argv)
    if called.command not in COMMANDS:
        parser.error(str(unknown("command", called.command, COMMANDS)))

    module = import_module(f"{__name__}.{COMMANDS[called.command][0]}")
    command = argparse.ArgumentParser(
        prog=f"dissensus {called.command}", description=module.__doc__, formatter_class=_HelpFormatter
    )
    module.configure(command)
    args = command.parse_args(called.arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # equations must not stop a terminal that lacks their letters
    try:
        code = int(module.run(args))
        sys.stdout.flush()
        return code
    except DissensusError as error:
        print(f"dissensus: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone (head, less): what is left to write must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        cure = "make the problem smaller" if isinstance(error, MemoryError) else "check the path, and the space left"
        print(f"dissensus: error: {error}: {cure}", file=sys.stderr)
        return 1
