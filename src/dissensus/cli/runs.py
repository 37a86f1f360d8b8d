"""List, filter, average and export the finished runs in a store; recover a damaged one."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from dissensus.cli._common import add_json, print_json
from dissensus.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("store", metavar="STORE", help="file of a store, as given to --store when the runs were made")
    parser.add_argument(
        "--where",
        metavar="PATH=VALUE",
        action="append",
        help="only runs with this value in their configuration, such as model.name=bimp; may be repeated",
    )
    parser.add_argument("--failed", action="store_true", help="only runs that failed")
    parser.add_argument("--mean", metavar="FIELD", help="mean and standard deviation of this field of the results")
    parser.add_argument(
        "--by", metavar="PATHS", help="with --mean: one line for each value of these paths, comma-separated"
    )
    parser.add_argument("--export", metavar="FILE", help="write the runs to a .csv, .parquet or .jsonl file")
    parser.add_argument("--recover", metavar="FILE", help="copy what is intact in a damaged store to this new store")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    from dissensus import runs

    if args.by and not args.mean:
        raise InputError("--by needs --mean FIELD, the result to average")
    if args.recover:
        count = runs.Store.recover(args.store, args.recover)
        _answer(args.json, {"store": args.recover, "recovered": count}, f"recovered {count} runs into {args.recover}")
        return 0
    where = dict(_condition(text) for text in args.where or [])
    with runs.Store(args.store, create=False) as store:
        records = store.query(where, status="failed" if args.failed else None)
    answer: dict[str, Any] = {"store": args.store, "count": len(records)}
    if args.export:
        runs.export(records, args.export)
        _answer(args.json, answer | {"export": args.export}, f"wrote {len(records)} runs to {args.export}")
    elif args.mean:
        by = args.by.split(",") if args.by else []
        groups = runs.aggregate(records, args.mean, by)
        _answer(args.json, answer | {"field": args.mean, "by": by, "groups": groups}, runs.aligned(groups))
    elif args.json:
        print_json(answer | {"runs": [asdict(record) for record in records]})
    else:
        failed = sum(record.status == "failed" for record in records)
        print(f"{len(records)} runs, {failed} failed", file=sys.stderr)
        print(runs.listing(records))
    return 0


def _condition(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise InputError(f"--where takes PATH=VALUE, such as split=3, not {text!r}")
    try:
        return path, json.loads(value)
    except json.JSONDecodeError:
        return path, value


def _answer(as_json: bool, value: dict[str, Any], text: str) -> None:
    if as_json:
        print_json(value)
    else:
        print(text)
