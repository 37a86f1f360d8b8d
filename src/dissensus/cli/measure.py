"""Measure oversmoothing over depth: energy, ranks, correlations, gradient and filter of a model on a dataset.

    dissensus measure --model gcn --depths 1,4,16,64 --dataset digits
    dissensus measure --load trained/

Without --load, an untrained model is made for every depth from the same seed, and its last hidden state is measured.
With --load, the hidden states of one saved model are read at the given depths, on a graph prepared as in its training.

Depth is the number of hidden layers of a discrete model, and the time of a continuous one (in Euler steps of length 1,
unless it was saved otherwise).
"""

import argparse
import time
from pathlib import Path

from dissensus.cli._common import numbers, print_json, say
from dissensus.errors import InputError, optional


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", metavar="NAME", help="untrained model, see 'dissensus models' (default: gcn)")
    words = "dataset by name, or file of a graph (default: cora, or what the saved model was trained on)"
    add("--dataset", metavar="GRAPH", help=words)
    words = "depths to measure at, such as 1,2,4 (default: 1,2,4,...,128; all layers of a saved discrete model)"
    add("--depths", metavar="LIST", help=words)
    words = "measure a saved model instead: the folder that 'train --save' wrote, or a file that 'model.save' wrote"
    add("--load", metavar="PATH", help=words)
    add("--hidden", type=int, metavar="N", help="hidden channels of the untrained model (default: 64)")
    add("--seed", type=int, metavar="N", help="seed of the untrained model's weights (default: 1)")
    words = "split whose training nodes are in the loss (default: the first, or that of the saved model on its graph)"
    add("--split", type=int, metavar="N", help=words)
    add("-o", "--output", metavar="DIR", help="write the table (CSV) and charts (PNG, SVG) there")


def run(args: argparse.Namespace) -> int:
    depths = numbers("--depths", args.depths)
    if args.load and args.model:
        raise InputError("--load and --model both name a model: leave one of them out")
    if args.output:  # before anything is measured
        optional("matplotlib", "plot")
        if Path(args.output).is_file():
            raise InputError(f"-o {args.output} is a file; name a directory")
    from dissensus import measure

    started = time.perf_counter()
    model = Path(args.load) if args.load else args.model or "gcn"
    sizes = {"hidden_channels": args.hidden, "seed": args.seed, "split": args.split}
    found = measure.depths(model, args.dataset, depths, **sizes, notify=say)
    files = [str(path) for path in found.save(args.output)] if args.output else []
    if args.json:
        written = {"files": files} if args.output else {}
        print_json({**found.as_dict(), **written, "seconds": time.perf_counter() - started})
        return 0
    found.table().show()
    for path in files:
        say(f"wrote {path}")
    return 0
