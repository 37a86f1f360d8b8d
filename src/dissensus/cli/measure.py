"""Measure oversmoothing over depth: energy, ranks, correlations, gradient and filter of a model on a dataset.

Without --load, an untrained model is made for every depth from the same seed, and its last hidden state is measured.
With --load, the hidden states of one saved model are read at the given depths, on a graph that is prepared as in its
training. Depth is the number of hidden layers of a discrete model, and the time of a continuous one (in Euler steps of
length 1, unless it was saved otherwise).
"""

import argparse
import sys
import time
from pathlib import Path

from dissensus.cli._common import add_json, numbers, print_json
from dissensus.errors import InputError, missing_extra


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--model", metavar="NAME", help="untrained model, see 'dissensus models' (default: gcn)")
    parser.add_argument(
        "--dataset",
        metavar="GRAPH",
        help="dataset by name, or file of a graph (default: cora, or what the saved model was trained on)",
    )
    parser.add_argument(
        "--depths",
        metavar="LIST",
        help="depths to measure at, such as 1,2,4 (default: 1,2,4,...,128; all layers of a saved discrete model)",
    )
    parser.add_argument(
        "--load",
        metavar="PATH",
        help="measure a saved model instead: the folder that 'train --save' wrote, or a file that 'model.save' wrote",
    )
    parser.add_argument("--hidden", type=int, metavar="N", help="hidden channels of the untrained model (default: 64)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the untrained model's weights (default: 1)")
    parser.add_argument(
        "--split",
        type=int,
        metavar="N",
        help="split whose training nodes make the loss (default: the first, or that of the saved model on its graph)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write the table (CSV) and charts (PNG, SVG) there")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    depths = numbers("--depths", args.depths)
    if args.load and args.model:
        raise InputError("--load brings a model of its own, and --model names another: leave one of them out")
    if args.output:
        _check_output(Path(args.output))
    from dissensus import measure

    started = time.perf_counter()
    found = measure.depths(
        Path(args.load) if args.load else args.model or "gcn",
        args.dataset,
        depths,
        hidden_channels=args.hidden,
        seed=args.seed,
        split=args.split,
        notify=lambda text: print(text, file=sys.stderr, flush=True),
    )
    files = [str(path) for path in found.save(args.output)] if args.output else []
    if args.json:
        written = {"files": files} if args.output else {}
        print_json({**found.as_dict(), **written, "seconds": time.perf_counter() - started})
        return 0
    found.table().show()
    for path in files:
        print(f"wrote {path}", file=sys.stderr)
    return 0


def _check_output(folder: Path) -> None:
    """Refuse what cannot be written before anything is measured."""
    if folder.is_file():
        raise InputError(f"-o {folder} is a file; name a directory")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise missing_extra("matplotlib", "plot") from error
