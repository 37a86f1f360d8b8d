"""Rebuild the tables and figures of the paper, with the paper's own numbers beside them.

    dissensus reproduce homophilic --plan
    dissensus reproduce homophilic --quick
    dissensus reproduce homophilic -o results

Every study is a grid of runs. Finished runs are kept in --store, so the same command continues where it was stopped.
Each study gets a folder in DIR with runs.csv (one row per run), meta.json (how they were made), tables and figures;
report.html has everything on one page. New runs are added to those in DIR.

By default, datasets with random splits are reported on splits 101-120 (1-20 are reserved for tuning), and the WebKB
graphs on their ten fixed splits with ten training seeds. --splits 1-100 --seeds 1-100 is the paper's protocol.

With the study all, a flag that narrows the runs applies to the studies that can use it. --from rebuilds tables,
figures and the page from runs.csv and meta.json, without running anything.
"""

import argparse

from dissensus.cli._common import EXECUTION, add_execution, chosen, names, numbers, print_json, say
from dissensus.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    from dissensus.studies import STUDIES

    add = parser.add_argument
    add("study", metavar="STUDY", choices=[*STUDIES, "all"], help=f"{', '.join(STUDIES)}, or all")
    add("--quick", action="store_true", help="a tiny version in a minute or two, to see that it works")
    words = (
        "settings of the models: paper, tuned, tuned-dynamics, default or a .toml file (default: the study's, tuned "
        "or, for dynamics, tuned-dynamics); models that it does not list take default ones"
    )
    add("--preset", metavar="P", help=words)
    add("--models", metavar="LIST", help="only these models, comma-separated")
    add("--datasets", metavar="LIST", help="only these datasets, comma-separated")
    add("--splits", metavar="LIST", help="splits, such as 101-110; see above for the default")
    add("--seeds", metavar="LIST", help="training seeds, such as 1-3; see above for the default")
    add("--depths", metavar="LIST", help="only these depths, such as 1,2,4 (depth and nonlinearity)")
    words = "only these values of an axis of the study, such as change=none,linear; may be repeated"
    add("--only", metavar="AXIS=LIST", action="append", help=words)
    add("--synthetic", action="store_true", help="use the generated arxiv-synthetic instead of ogbn-arxiv")
    add("--store", default="runs.db", metavar="FILE", help="file of finished runs")
    add_execution(parser)
    add("-o", "--output", metavar="DIR", help="folder of the results (default: reproduced, or --from)")
    add("--from", dest="source", metavar="DIR", help="rebuild from the CSV files there; run nothing")
    add("--readme", metavar="FILE", help="also update the tables between the markers of this file")
    add("--plan", action="store_true", help="list finished and missing runs; run nothing")


def run(args: argparse.Namespace) -> int:
    from dissensus import studies

    choices = {
        **chosen(args, "preset", "quick", "synthetic", "store"),
        **{name: names(getattr(args, name)) for name in ("models", "datasets")},
        **{name: numbers(f"--{name}", getattr(args, name)) for name in ("splits", "seeds", "depths")},
        "only": _axes(args.only),
    }
    if args.plan:
        if args.source:
            raise InputError("--from runs nothing: leave out --plan")
        found = studies.outlook(args.study, **choices)
        if args.json:
            print_json({"store": args.store, "studies": {name: plan.as_dict() for name, plan in found.items()}})
            return 0
        for plan in found.values():
            plan.table().show()
            print()
        print("Times assume one run after the other, each as long as the mean of similar runs; unknown without any.")
        return 0
    result = studies.reproduce(
        args.study,
        **choices,
        **chosen(args, *EXECUTION, "source", "readme"),
        output=args.output or args.source or "reproduced",
        progress=None if args.quiet else say,
        notify=say,
    )
    print_json(result.as_dict()) if args.json else result.show()
    if result.interrupted:
        raise KeyboardInterrupt
    return 1 if result.failed and not args.source else 0


def _axes(given: list[str] | None) -> dict[str, list[str]] | None:
    """``["change=none,linear"]`` as ``{"change": ["none", "linear"]}``; a value may have a = itself."""
    found = {}
    for text in given or ():
        axis, _, values = text.partition("=")
        listed = names(values)
        if not listed:
            raise InputError(f"--only: {text!r} has no values: write it as --only change=none,linear")
        found[axis.strip()] = listed
    return found or None
