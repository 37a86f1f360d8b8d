"""Print the script that completes commands and flags on the Tab key.

    dissensus completion bash > ~/.local/share/bash-completion/completions/dissensus
    dissensus completion zsh > "${fpath[1]}/_dissensus"
    dissensus completion fish > ~/.config/fish/completions/dissensus.fish

It works in shells that are started afterwards.
"""

import argparse

from dissensus.errors import optional

# Names of values that are files or folders. Positional arguments are always completed as such.
_PATHS = ("DIR", "FILE", "GRAPH", "NAME|FILE", "PATH", "PATHS")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def run(args: argparse.Namespace) -> int:
    shtab = optional("shtab", "completion")
    from dissensus.cli import command_line

    parser, commands = command_line(declared=True)
    for command in commands.values():
        for action in command._actions:
            if action.metavar in _PATHS or (not action.option_strings and not action.choices):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell))
    return 0
