"""Predict the class of every node of a graph, or its value, with a model that 'train --save' wrote.

    dissensus predict trained/ my_graph/ -o classes.csv

The graph may differ from the one trained on, if it has the same features and the model works on any graph. Features of
CSV tables are matched by their names; others must be in the order of training.

The table has one header line, then one line per node: its id, its class, that class's probability, and the probability
of every class; for a regression, its id and its value. Where a whole graph has one target, there is one line per graph.
"""

import argparse
import csv
import sys
from pathlib import Path

from dissensus.cli._common import print_json, say
from dissensus.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder that 'train --save' wrote")
    parser.add_argument("graph", metavar="GRAPH", help="file of a graph, or name of a dataset")
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file to write; without, the table is printed")


def run(args: argparse.Namespace) -> int:
    if args.json and not args.output:
        raise InputError("--json prints a summary: give a file for the table with -o")
    if args.output and not (folder := Path(args.output).absolute().parent).is_dir():
        raise InputError(f"{folder} is no folder: create it first, or give another -o")
    from dissensus import train

    found = train.predict(args.folder, args.graph)
    if found.order_unknown:
        say(
            f"the model depends on the nodes of its training graph, and {args.graph} may be another graph: the "
            "predictions are only meaningful if it has the same nodes in the same order"
        )
    if not args.output:
        csv.writer(sys.stdout, lineterminator="\n").writerows(found.rows())
        return 0
    found.write(args.output)
    answer = {"graph": args.graph, **found.as_dict(), "output": args.output}
    print_json(answer) if args.json else print(f"wrote {len(found.values)} {found.per}s to {args.output}")
    return 0
