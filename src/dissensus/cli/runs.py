"""List, filter, average and export the finished runs in a store; recover a damaged one."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError

if TYPE_CHECKING:
    from dissensus.runs import Record


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
    parser.add_argument("--json", action="store_true", help="print one JSON object with everything about each run")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    from dissensus import runs
    from dissensus.runs._table import as_json

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
        _answer(args.json, answer | {"field": args.mean, "by": by, "groups": as_json(groups)}, _aligned(groups))
    elif args.json:
        print(json.dumps(answer | {"runs": as_json([asdict(record) for record in records])}))
    else:
        failed = sum(record.status == "failed" for record in records)
        print(f"{len(records)} runs, {failed} failed", file=sys.stderr)
        print(_listing(records))
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
    print(json.dumps(value) if as_json else text)


def _listing(records: "list[Record]") -> str:
    from dissensus.runs._table import flat

    rows = [flat(record) for record in records]
    varying = _varying([{name: value for name, value in row.items() if name.startswith("config.")} for row in rows])
    lines = []
    for record, row in zip(records, rows, strict=True):
        shown: dict[str, Any] = {"key": record.key[:12], "status": record.status}
        shown |= {name.removeprefix("config."): row.get(name) for name in varying}
        numbers = {name: value for name, value in row.items() if name.startswith("result.")}
        # Lists and long texts would hide the rest; --json and --export have them.
        shown |= {name.removeprefix("result."): value for name, value in numbers.items() if len(str(value)) <= 24}
        lines.append(shown | {"seconds": record.seconds, "error": record.error})
    return _aligned(lines)


def _varying(rows: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if len({json.dumps(row.get(name)) for row in rows}) > 1]


def _aligned(rows: list[dict[str, Any]]) -> str:
    """Rows as a table in plain text; a column that is empty in all rows is left out."""
    names = [
        name for name in dict.fromkeys(n for row in rows for n in row) if any(row.get(name) is not None for row in rows)
    ]
    table = [names, *([_text(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
