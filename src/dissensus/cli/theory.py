"""Check the lemmas and theorems of the paper, with errata and sharper forms, on three random graphs.

    dissensus theory
    dissensus theory critical-attention

A verdict is one of: 'holds'; 'holds, corrected' (the conclusion holds if a formula, a hypothesis or the measure is
corrected); 'fails as printed' (the numbers contradict the conclusion). The numbers shown are those of the graph that is
closest to failing. With the name of a check, all of its measurements and its note are shown.
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
