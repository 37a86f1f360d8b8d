"""Predict the class of every node of a graph with a model that 'train --save' wrote.

The graph may be another than the one trained on, if it has the same features and the model works on any graph.
Features of CSV tables are found by their names, in any order; others must be in the order of training. The table has
one header line, then one line a node: its id, its class, that class's probability, and that of every class.
"""

import argparse
import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from dissensus.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("folder", metavar="DIR", help="folder that 'train --save' wrote")
    parser.add_argument("graph", metavar="GRAPH", help="file of a graph, or name of a dataset")
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file to write; without, the table is printed")
    parser.add_argument("--json", action="store_true", help="print one JSON object with a summary (needs -o)")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    if args.json and not args.output:
        raise InputError("--json prints a summary: say with -o where the table is to go")
    if args.output and not Path(args.output).absolute().parent.is_dir():
        raise InputError(f"{Path(args.output).absolute().parent} is no folder: make it first, or give another -o")
    from dissensus import train

    saved = train.load_saved(args.folder)
    dataset = train.prepare(saved, args.graph)
    if train.order_unknown(saved, dataset):
        print(
            f"{args.graph} is not the graph that the model is bound to, node by node: its nodes must be those of "
            "training, in their order there, or the predictions mean nothing",
            file=sys.stderr,
        )
    rows = list(train.prediction_rows(saved, dataset, train.predict(saved, dataset)))
    if not args.output:
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
        return 0
    _write(Path(args.output), rows)
    counts = Counter(str(row[1]) for row in rows[1:])
    summary = {
        "model": saved.config.model.name,
        "graph": str(args.graph),
        "nodes": len(rows) - 1,
        "output": args.output,
        "classes": {name: counts[name] for name in saved.classes},
    }
    if args.json:
        print(json.dumps(summary))
    else:
        print(f"wrote {len(rows) - 1} nodes to {args.output}")
    return 0


def _write(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Whole or not at all: written beside and renamed."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written ({error.strerror}): give another -o") from error
