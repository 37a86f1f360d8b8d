"""Check the lemmas and theorems of the paper, with errata and sharper forms, on three random graphs.

    dissensus theory
    dissensus theory critical-attention

A verdict is one of: 'holds'; 'holds, corrected', where the conclusion stands once a formula, a hypothesis or the
measure is put right; 'fails as printed', where the numbers contradict the conclusion. Of the three graphs, the numbers
shown are those nearest to failing. With a name, everything that the check measured is shown, and its note.
"""

import argparse

from dissensus.cli._common import print_json, say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="one check, in detail (default: all)")
    parser.add_argument("--seed", default=0, type=int, metavar="S", help="seed of the random graphs")
    parser.add_argument("--nodes", default=24, type=int, metavar="N", help="nodes of each graph, from 4 to 100")


def run(args: argparse.Namespace) -> int:
    from dissensus.studies import theory

    options = {"nodes": args.nodes, "seed": args.seed, "progress": lambda name: say(f"checking {name}")}
    found = theory.examine(*filter(None, [args.name]), **options)
    print_json(found.as_dict()) if args.json else found.table().show()
    return 0
