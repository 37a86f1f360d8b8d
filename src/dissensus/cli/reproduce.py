"""Rebuild the tables and figures of the paper, with the paper's own numbers beside them.

Every study is a grid of runs that --store keeps: the same command continues where it was stopped, and an interrupt
writes what is finished, where it replaces nothing. Reported are splits 101-120 of datasets with random splits (1-20 are
reserved for tuning), and the ten fixed splits with ten training seeds of the WebKB graphs; --splits 1-100 --seeds 1-100
is the paper's protocol. Each study gets a folder in DIR with runs.csv (one row a run), meta.json (how they were made),
tables and figures; report.html has everything on one page. Runs are added to what is in DIR, so that a table can be
filled step by step. With all, a flag that narrows the runs applies to the studies that can use it. --from rebuilds all
but runs.csv and meta.json from these two files, without running anything.
"""

import argparse
import sys

from dissensus.cli._common import add_execution, add_json, names, numbers, print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from dissensus.studies import STUDIES

    parser.add_argument("study", metavar="STUDY", choices=[*STUDIES, "all"], help=f"{', '.join(STUDIES)}, or all")
    parser.add_argument("--quick", action="store_true", help="a tiny version in a minute or two, to see that it works")
    parser.add_argument(
        "--preset",
        metavar="P",
        help=(
            "settings of the models: paper, tuned, tuned-dynamics, default or a .toml file (default: the study's, "
            "tuned or, for dynamics, tuned-dynamics); models that it does not list take default ones"
        ),
    )
    parser.add_argument("--models", metavar="LIST", help="only these models, comma-separated")
    parser.add_argument("--datasets", metavar="LIST", help="only these datasets, comma-separated")
    parser.add_argument("--splits", metavar="LIST", help="splits, such as 101-110; see above for the default")
    parser.add_argument("--seeds", metavar="LIST", help="training seeds, such as 1-3; see above for the default")
    parser.add_argument("--depths", metavar="LIST", help="only these depths, such as 1,2,4 (depth and nonlinearity)")
    parser.add_argument(
        "--synthetic", action="store_true", help="a generated graph of its size in place of ogbn-arxiv, labelled so"
    )
    parser.add_argument("--store", default="runs.db", metavar="FILE", help="keep finished runs here")
    add_execution(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="folder of the results (default: reproduced, or --from)")
    parser.add_argument("--from", dest="source", metavar="DIR", help="rebuild from the CSV files there; run nothing")
    parser.add_argument("--readme", metavar="FILE", help="also update the tables between the markers of this file")
    parser.add_argument("--plan", action="store_true", help="list what is done and what is missing; run nothing")
    add_json(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    from dissensus import studies
    from dissensus.errors import InputError

    choices = {
        "preset": args.preset,
        "models": names(args.models),
        "datasets": names(args.datasets),
        **{name: numbers(f"--{name}", getattr(args, name)) for name in ("splits", "seeds", "depths")},
        "quick": args.quick,
        "synthetic": args.synthetic,
    }
    if args.plan and args.source:
        raise InputError("--from runs nothing: leave out --plan")
    if args.plan:
        found = studies.outlook(args.study, store=args.store, **choices)
        if args.json:
            print_json({"store": args.store, "studies": {name: plan.as_dict() for name, plan in found.items()}})
            return 0
        for plan in found.values():
            plan.table().show()
            print()
        print("Times assume one run after the other, each as long as the mean of similar runs; unknown without any.")
        return 0

    def line(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    result = studies.reproduce(
        args.study,
        **choices,
        store=args.store,
        executor=args.executor,
        workers=args.workers,
        threads=args.threads,
        address=args.address,
        retry_failed=args.retry_failed,
        output=args.output or args.source or "reproduced",
        source=args.source,
        readme=args.readme,
        progress=None if args.quiet else line,
        notify=line,
    )
    print_json(result.as_dict()) if args.json else result.show()
    if result.interrupted:
        raise KeyboardInterrupt
    return 1 if result.failed and not args.source else 0
