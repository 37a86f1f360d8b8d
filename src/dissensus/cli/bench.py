"""Measure speed and memory, as ratios in one run, against plain PyG + torchdiffeq; needs a source checkout."""

import argparse

from dissensus.cli._common import print_json, say


def configure(parser: argparse.ArgumentParser) -> None:
    from dissensus.studies import BENCHMARKS

    words = f"which ones (default: all): {', '.join(BENCHMARKS)}"
    parser.add_argument("benchmark", nargs="*", metavar="BENCHMARK", help=words)
    parser.add_argument("--quick", action="store_true", help="tiny graphs and few epochs, to see that they run")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of torch (default: as they are)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON to this file too")


def run(args: argparse.Namespace) -> int:
    from dissensus import studies

    found = studies.bench(args.benchmark, quick=args.quick, threads=args.threads, output=args.output, progress=say)
    print_json(found.as_dict()) if args.json else found.show()
    return 0
