"""The command line. A command is a module here with ``run(args) -> int`` and, if it has flags besides ``--json``,
``configure(parser)``.

The module of a command is only imported when the command is called, and imports torch only inside ``run``, so that
``dissensus --help`` starts at once.
"""

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module, metadata
from io import TextIOWrapper
from typing import Any, NoReturn

from dissensus import __version__
from dissensus.errors import DissensusError, unknown
from dissensus.runtime import scope

# command, also the name of its module -> one line of help
COMMANDS: dict[str, str] = {
    "demo": "show in a minute when depth is needed, on an embedded graph",
    "train": "train a model on a dataset or on your own graph",
    "predict": "classify the nodes of a graph with a saved model",
    "tune": "search hyperparameters on validation data",
    "runs": "list, filter, average and export stored runs",
    "measure": "measure oversmoothing over depth",
    "simulate": "simulate opinions on a graph",
    "bifurcation": "draw bifurcation diagrams of opinions on a graph",
    "lab": "write and open the laboratory: opinions on a graph, in the browser",
    "theory": "check the lemmas and theorems on random graphs",
    "reproduce": "rebuild the tables and figures of the paper",
    "bench": "measure speed against plain implementations",
    "data": "list the datasets: sizes, homophily, licence, whether present",
    "models": "list the models: equation, source, tables",
    "completion": "print the script for a shell's tab completion",
}

# How long a thread of torch's OpenMP pool spins before it sleeps; read when torch is loaded. The default is so long
# that an epoch takes ten times as long beside other work; a smaller value slows down an idle machine.
_ENVIRONMENT = {"GOMP_SPINCOUNT": "1000"}


_EXAMPLES = """'dissensus COMMAND --help' explains a command. To begin with:

    dissensus demo
    dissensus train my_graph/ --save trained/
    dissensus predict trained/ my_graph/ -o classes.csv
"""


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows defaults (except None, False and []), keeps paragraphs, and does not wrap indented ones."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)
        self._action_max_length = 15  # argparse does not count that the names of commands are indented twice

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.strip("\n").split("\n\n")
        return "\n\n".join(
            part if part.startswith("    ") else super(_HelpFormatter, self)._fill_text(part, width, indent)
            for part in parts
        )

    def _get_help_string(self, action: argparse.Action) -> str | None:
        shown = action.default is not None and action.default is not False and action.default != []
        return super()._get_help_string(action) if shown else action.help


class _Version(argparse.Action):
    """Prints the versions from the packages' metadata, which imports none of them."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> None:
        print(f"dissensus {__version__}\nPython {platform.python_version()}")
        for package in ("torch", "torch_geometric", "torchdiffeq"):
            with suppress(metadata.PackageNotFoundError):
                print(package, metadata.version(package))
        parser.exit()


class _Command(argparse.ArgumentParser):
    """The parser of one command; its module is imported, and declares its flags, when the command is called."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.declare()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n'{self.prog} --help' lists the arguments\n")

    def declare(self) -> None:
        """Import the command's module and add its flags."""
        module = import_module(f"{__name__}.{self.prog.split()[-1]}")
        self.description = module.__doc__
        if hasattr(module, "configure"):
            module.configure(self)
        if not self.prog.endswith("completion"):  # which prints a script
            self.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
        self.set_defaults(run=module.run)


def command_line(*, declared: bool = False) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and the parsers of the commands by name, whose flags are added now (``declared``) or when called."""
    parser = argparse.ArgumentParser(
        prog="dissensus",
        usage="%(prog)s COMMAND ...",
        description="Deep graph neural networks that do not oversmooth.",
        epilog=_EXAMPLES,
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the versions of dissensus and what it uses")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", prog="dissensus", parser_class=_Command, required=True
    )
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, formatter_class=_HelpFormatter)
        if declared:
            command.declare()
            command.description = text
    return parser, dict(commands.choices)


@scope(environment=_ENVIRONMENT)
def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 failed, 2 wrong use, 130 interrupted)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser, commands = command_line()
    if not argv:
        parser.print_help(sys.stderr)
        return 2
    if not argv[0].startswith("-") and argv[0] not in COMMANDS:
        parser.error(str(unknown("command", argv[0], COMMANDS)))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks symbols of equations must not fail
    try:
        args, rest = parser.parse_known_args(argv)
        if rest:
            cure = ": to set an option of the model, use --set model.NAME=VALUE" if hasattr(args, "set") else ""
            commands[argv[0]].error(f"unknown arguments {' '.join(rest)}{cure}")
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except DissensusError as error:
        print(f"dissensus: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output has ended (head, less). Python must not fail again when it flushes the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        cure = "make the problem smaller" if isinstance(error, MemoryError) else "check the path, and the space left"
        print(f"dissensus: error: {error}: {cure}", file=sys.stderr)
        return 1
