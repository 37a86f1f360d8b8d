"""Show when depth is needed: train a GCN and BIMP at growing depth on a graph of handwritten digits.

They are trained with all features, and with those of the labelled nodes alone. Accuracy by depth is printed, and a
report page is written. The graph is part of the package, so nothing is downloaded.
"""

import argparse

from dissensus.cli._common import print_json, say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="dissensus-demo.html", metavar="FILE", help="the report page")
    parser.add_argument("--epochs", type=int, default=50, help="training epochs of each model")


def run(args: argparse.Namespace) -> int:
    from dissensus import studies

    found = studies.demo(epochs=args.epochs, output=args.output, on_outcome=lambda outcome: say(str(outcome)))
    if args.json:
        print_json(found.as_dict())
        return 0
    found.table().show()
    print(
        f"\nThe report: {found.page}\n"
        "Next: dissensus train karate --model bimp, or a graph of your own: dissensus train --help"
    )
    return 0
