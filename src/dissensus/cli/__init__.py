"""The command line: a thin door. A command is a module here with ``configure(parser)`` and ``run(args) -> int``.

A command's module is imported only when that command is called, and imports torch only inside ``run``, so that
``dissensus --help`` answers at once.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from dissensus import __version__
from dissensus.errors import DissensusError

# command -> (module, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "models": ("models", "list the models: equation, source, tables"),
}


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    return "commands:\n" + "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 failed, 2 wrong use, 130 interrupted)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="dissensus",
        description="Deep graph neural networks that do not oversmooth.",
        epilog=_overview() + "\n\n'dissensus COMMAND --help' tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dissensus {__version__}")
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help="one of the commands below")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    called = parser.parse_args(argv)

    module = import_module(f"{__name__}.{COMMANDS[called.command][0]}")
    command = argparse.ArgumentParser(
        prog=f"dissensus {called.command}", description=module.__doc__, formatter_class=_HelpFormatter
    )
    module.configure(command)
    args = command.parse_args(called.arguments)
    try:
        return int(module.run(args))
    except DissensusError as error:
        print(f"dissensus: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
