"""Train a graph convolutional network (GCN) and BIMP at growing depth on an embedded graph of handwritten digits, with
all features and with those of the labelled nodes alone, print their accuracy by depth, and write a report page."""

import argparse
import sys
from typing import Any

from dissensus.cli._common import add_json, print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("-o", "--output", default="dissensus-demo.html", metavar="FILE", help="the report page")
    parser.add_argument("--epochs", type=int, default=30, help="training epochs of each model")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    from dissensus import studies

    def line(outcome: Any) -> None:
        depth = "" if outcome.depth is None else f" depth {outcome.depth}"
        words = f"{outcome.task}, split {outcome.split}, {outcome.model}{depth}: {outcome.accuracy:.1f} %"
        print(f"{words} ({outcome.seconds:.1f} s)", file=sys.stderr, flush=True)

    found = studies.demo(epochs=args.epochs, output=args.output, on_outcome=line)
    if args.json:
        print_json(found.as_dict())
        return 0
    found.table().show()
    print(
        f"\nThe report: {found.page}\n"
        "Next: dissensus train karate --model bimp, or a graph of your own: dissensus train --help"
    )
    return 0
