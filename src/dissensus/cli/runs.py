"""List, filter, average and export the finished runs in a store; recover a damaged one.

    dissensus runs runs.db --where model.name=bimp
    dissensus runs runs.db --mean test --by model.name,data.name
    dissensus runs runs.db --export runs.csv

A store is the file that --store of another command wrote.
"""

import argparse
import json
from dataclasses import asdict
from typing import Any

from dissensus.cli._common import print_json, say
from dissensus.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("store", metavar="STORE", help="file of a store, as given to --store when the runs were made")
    words = "only runs with this value in their configuration, such as model.name=bimp; may be repeated"
    add("--where", metavar="PATH=VALUE", action="append", default=[], help=words)
    add("--failed", action="store_true", help="only runs that failed")
    add("--mean", metavar="FIELD", help="mean and standard deviation of this field of the results")
    add("--by", metavar="PATHS", help="with --mean: one line for each value of these paths, comma-separated")
    add("--export", metavar="FILE", help="write the runs to a .csv, .parquet or .jsonl file")
    add("--recover", metavar="FILE", help="copy what is intact in a damaged store to this new store")


def run(args: argparse.Namespace) -> int:
    answer, text = _answer(args)
    print_json(answer) if args.json else print(text)
    return 0


def _answer(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """As plain values and as text."""
    from dissensus import runs

    if args.by and not args.mean:
        raise InputError("--by needs --mean FIELD, the result to average")
    if args.recover:
        count = runs.Store.recover(args.store, args.recover)
        return {"store": args.recover, "recovered": count}, f"recovered {count} runs into {args.recover}"
    with runs.Store(args.store, create=False) as store:
        records = store.query(dict(map(_condition, args.where)), status="failed" if args.failed else None)
    answer: dict[str, Any] = {"store": args.store, "count": len(records)}
    if args.export:
        runs.export(records, args.export)
        return answer | {"export": args.export}, f"wrote {len(records)} runs to {args.export}"
    if args.mean:
        by = args.by.split(",") if args.by else []
        groups = runs.aggregate(records, args.mean, by)
        return answer | {"field": args.mean, "by": by, "groups": groups}, runs.as_table(groups)
    if not args.json:
        say(f"{len(records)} runs, {sum(record.status == 'failed' for record in records)} failed")
    return answer | {"runs": [asdict(record) for record in records]}, runs.listing(records)


def _condition(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise InputError(f"--where takes PATH=VALUE, such as split=3, not {text!r}")
    try:
        return path, json.loads(value)
    except json.JSONDecodeError:
        return path, value
