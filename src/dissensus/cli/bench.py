"""Measure speed and memory, as ratios in one run, against plain PyG + torchdiffeq; needs a source checkout."""

import argparse
import sys

from dissensus.cli._common import add_json, print_json

# The modules in benchmarks/.
_NAMES = ("training", "runtime", "floor", "scaling", "arxiv", "clusters", "infinite", "opinions")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "benchmark", nargs="*", metavar="BENCHMARK", help=f"which ones (default: all): {', '.join(_NAMES)}"
    )
    parser.add_argument("--quick", action="store_true", help="tiny graphs and few epochs, to see that they run")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of torch (default: as they are)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON to this file too")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    from dissensus import studies

    found = studies.bench(
        args.benchmark,
        quick=args.quick,
        threads=args.threads or None,
        output=args.output,
        progress=lambda text: print(text, file=sys.stderr, flush=True),
    )
    print_json(found.as_dict()) if args.json else found.show()
    return 0
