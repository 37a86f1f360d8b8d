"""Rebuild the tables and figures of the paper, with the paper's own numbers beside them.

Every study is a grid of runs that --store keeps: the same command continues where it was stopped, and what is finished
when it is interrupted is written too, where it replaces nothing. Reported are splits 101-120 of datasets with random
splits (1-20 are set aside for tuning), and the ten fixed splits with ten training seeds of the WebKB graphs; --splits
1-100 --seeds 1-100 is the paper's protocol. In DIR each study gets runs.csv (one row a run), meta.json (how they were
made), tables and figures; report.html has everything on one page. Runs are added to what is in DIR, so that a table may
be filled bit by bit. With all, a flag that narrows the runs holds for the studies that can use it. --from rebuilds all
but runs.csv and meta.json from these two, without running anything.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import DissensusError, InputError, missing_extra
from dissensus.train._resolve import parse_numbers

if TYPE_CHECKING:
    from dissensus.report._table import Cell
    from dissensus.runs import Record
    from dissensus.studies import Plan, Request, Study

_NAMES = (
    "homophilic",
    "heterophilic",
    "dynamics",
    "large",
    "depth",
    "energy",
    "nonlinearity",
    "runtime",
    "bifurcation",
)
# Flags that choose among the runs of a study, where it has such a choice.
_NARROWING = ("preset", "models", "datasets", "splits", "seeds", "depths")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("study", metavar="STUDY", choices=[*_NAMES, "all"], help=f"{', '.join(_NAMES)}, or all")
    parser.add_argument("--quick", action="store_true", help="a tiny version in a minute or two, to see that it works")
    parser.add_argument(
        "--preset",
        metavar="P",
        help=(
            "settings of the models: paper, tuned, tuned-dynamics, default or a .toml file (default: the study's, "
            "tuned or, for dynamics, tuned-dynamics); models without any take default ones"
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
    parser.add_argument("--retry-failed", action="store_true", help="make runs again that failed before")
    parser.add_argument(
        "--executor", default="inline", help="inline (here, one after the other), processes, or ray (a cluster)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="runs at a time, with processes or ray")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of one run")
    parser.add_argument("--address", metavar="HOST:PORT", help="a running Ray cluster; without, Ray starts here")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder of the results (default: reproduced, or --from)")
    parser.add_argument("--from", dest="source", metavar="DIR", help="rebuild from the CSV files there; run nothing")
    parser.add_argument("--readme", metavar="FILE", help="update the tables between the markers of this file too")
    parser.add_argument("--plan", action="store_true", help="list what is done and what is missing; run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the tables")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    begun = time.perf_counter()
    chosen = _check(args)
    if args.plan:
        answer = _plan(args, chosen)
    else:
        answer = _rebuild(args, chosen) if args.source else _reproduce(args, chosen)
    answer["seconds"] = time.perf_counter() - begun
    if args.json:
        from dissensus.runs._table import as_json

        print(json.dumps(as_json(answer)))
    if answer.get("interrupted"):
        raise KeyboardInterrupt
    return 1 if any(study.get("failed") for study in answer["studies"].values()) and not args.source else 0


def _check(args: argparse.Namespace) -> "list[Study]":
    """The studies asked for, after what cannot work has been refused."""
    from dissensus.studies import STUDIES

    chosen = list(STUDIES.values()) if args.study == "all" else [STUDIES[args.study]]
    narrowing = [name for name in _NARROWING if getattr(args, name)]
    if args.source:
        for name in ("plan", "quick", "synthetic", *narrowing):
            if getattr(args, name):
                raise InputError(f"--from runs nothing: leave out --{name}")
    for name in narrowing:
        if not any(name in study.takes for study in chosen):
            taken = ", ".join(f"--{other}" for other in chosen[0].takes)
            raise InputError(f"--{name} means nothing to the study {args.study}: leave it out; it takes {taken}")
    if args.readme and not Path(args.readme).is_file():
        raise InputError(f"--readme {args.readme}: there is no such file")
    if args.output and Path(args.output).is_file():
        raise InputError(f"-o {args.output} is a file: name a folder")
    if args.synthetic and args.study not in ("large", "all"):
        raise InputError("--synthetic is for the study large: leave it out, or reproduce large or all")
    if not args.plan:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise missing_extra("matplotlib", "plot") from error
    return chosen


def _request(args: argparse.Namespace) -> "Request":
    from dissensus.studies import Request

    def names(flag: str) -> tuple[str, ...] | None:
        text = getattr(args, flag)
        return tuple(dict.fromkeys(part.strip() for part in text.split(","))) if text else None

    def numbers(flag: str) -> tuple[int, ...] | None:
        text = getattr(args, flag)
        try:
            return tuple(parse_numbers(text)) if text else None
        except InputError as error:
            raise InputError(f"--{flag}: {error}") from error

    return Request(
        preset=args.preset,
        models=names("models"),
        datasets=names("datasets"),
        splits=numbers("splits"),
        seeds=numbers("seeds"),
        depths=numbers("depths"),
        quick=args.quick,
        synthetic=args.synthetic,
    )


def _plan(args: argparse.Namespace, chosen: "list[Study]") -> dict[str, Any]:
    from dissensus.report import Table
    from dissensus.studies import outlook, total_seconds

    request, stored = _request(args), _stored(args)
    answer: dict[str, Any] = {"store": args.store, "studies": {}}
    tables = []
    for study in chosen:
        groups = outlook(study, study.plan(request), stored)
        listed: list[list[Cell]] = [
            [" ".join(group.group), group.done, group.failed, group.missing, _duration(group.seconds)]
            for group in groups
        ]
        sums = [sum(getattr(group, name) for group in groups) for name in ("done", "failed", "missing")]
        seconds = total_seconds(groups)
        listed.append(["all", *sums, _duration(seconds)])
        tables.append(Table([study.name, "done", "failed", "missing", "still to run"], listed))
        done, failed, missing = sums
        answer["studies"][study.name] = {
            "done": done,
            "failed_runs": failed,
            "missing": missing,
            "seconds_missing": seconds,
            "groups": [vars(group) for group in groups],
        }
    if not args.json:
        for table in tables:
            table.show()
            print()
        print("Times are those of one run after the other, from the mean of runs like it; unknown until one is made.")
    return answer


def _stored(args: argparse.Namespace) -> "dict[str, Record]":
    from dissensus.runs import Store

    if not Path(args.store).is_file():
        return {}
    with Store(args.store, create=False) as store:
        return {record.key: record for record in store.query()}


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _reproduce(args: argparse.Namespace, chosen: "list[Study]") -> dict[str, Any]:
    """Make what is missing, study by study, and write each as soon as it is there; an interrupt ends with what is."""
    request, folder = _request(args), Path(args.output or "reproduced")
    plans = {study.name: study.plan(request) for study in chosen}
    answer: dict[str, Any] = {"output": str(folder), "quick": args.quick, "studies": {}}
    writable = _writable(args, chosen, folder, answer)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"-o {folder} cannot be made ({error.strerror}): name another folder") from error
    for study in writable:
        plan, interrupted = plans[study.name], False
        try:
            try:
                records = _make(args, study, plan)
            except KeyboardInterrupt:
                interrupted = True
                records = _finished(args, plan)
            if records:
                answer["studies"][study.name] = _write(args, study, plan, records, folder, interrupted=interrupted)
        except DissensusError as error:
            if len(chosen) == 1 and not interrupted:
                raise
            _leave_out(study, error, answer)
        else:
            if interrupted:
                words = _so_far(args, study, plan, len(records), answer)
                print(f"{words}; the same command makes the rest", file=sys.stderr)
        if interrupted:
            answer["interrupted"] = True
            break
    return _finish(args, answer, folder, folder)


def _writable(args: argparse.Namespace, chosen: "list[Study]", folder: Path, answer: dict[str, Any]) -> "list[Study]":
    """The studies that may be added to the folder; the others are left out before anything runs."""
    from dissensus.studies import check_results

    found = []
    for study in chosen:
        try:
            check_results(folder, study, quick=args.quick)
        except InputError as error:
            if len(chosen) == 1:
                raise
            _leave_out(study, error, answer)
        else:
            found.append(study)
    if not found:
        raise InputError(f"{folder} can take none of the studies: give another folder with -o")
    return found


def _leave_out(study: "Study", error: DissensusError, answer: dict[str, Any]) -> None:
    print(f"{study.name} is left out: {error}", file=sys.stderr)
    answer["studies"][study.name] = {"skipped": str(error)}


def _finished(args: argparse.Namespace, plan: "Plan") -> "list[Record]":
    """The runs of a plan that the store has."""
    from dissensus.runs import key

    stored = _stored(args)
    return [stored[name] for name in map(key, plan.configs) if name in stored]


def _so_far(args: argparse.Namespace, study: "Study", plan: "Plan", finished: int, answer: dict[str, Any]) -> str:
    """Where the runs of an interrupted study are."""
    words = f"{study.name}: {finished} of {len(plan.configs)} runs are in {args.store}"
    if not finished:
        return words
    waiting = answer["studies"][study.name]["waiting"]
    if not waiting:
        return f"{words}, and their tables in {answer['output']}"
    return (
        f"{words}, and the tables in {answer['output']} keep runs of other settings in place of {waiting} of them "
        "until all are there"
    )


def _write(
    args: argparse.Namespace,
    study: "Study",
    plan: "Plan",
    records: "list[Record]",
    folder: Path,
    *,
    interrupted: bool,
) -> dict[str, Any]:
    """Add the runs to the folder, and show all that it then holds of the study.

    A few runs of an interrupted study are no reason to drop many of other settings: they wait in the store.
    """
    from dissensus.studies import write_results

    rows = [_with_preset(row, plan) for record in records for row in study.rows(record)]
    written = write_results(folder, study, rows, _facts(study, plan, records, args), replace=not interrupted)
    answer = _show(args, study, folder, folder)
    if not interrupted:
        return answer
    present = {row["settings"] for row in written}
    return answer | {"waiting": sum(study.rows(record)[0]["settings"] not in present for record in records)}


def _make(args: argparse.Namespace, study: "Study", plan: "Plan") -> "list[Record]":
    from dissensus import runs

    with runs.Store(args.store) as store:
        missing = store.missing(plan.configs, retry_failed=args.retry_failed)
    if missing:
        study.check(missing)
    alone = study.serial and args.executor != "inline"
    if alone and not args.quiet:
        print(f"{study.name}: one run at a time in this process, because time is measured", file=sys.stderr)
    finished = 0

    def on_result(record: "Record") -> None:
        nonlocal finished
        finished += 1
        if not args.quiet:
            words = f"[{finished}/{len(missing)}] {study.name}: {_line(study, record)} ({record.seconds:.1f} s)"
            print(words, file=sys.stderr, flush=True)

    return runs.execute(
        plan.configs,
        study.target,
        store=args.store,
        executor="inline" if alone else args.executor,
        workers=None if alone else args.workers,
        threads=args.threads,
        address=None if alone else args.address,
        on_result=on_result,
        retry_failed=args.retry_failed,
    ).records


def _line(study: "Study", record: "Record") -> str:
    row = study.rows(record)[-1]
    names = [str(row[name]) for name in study.dimensions if row.get(name) is not None]
    result = f"failed, {record.error}" if record.result is None else "done"
    if record.result is not None and row.get("test") is not None:
        result = f"test {row['test']:.2f} validation {row['val']:.2f} epoch {row['epoch']}"
    return f"{' '.join(names)} split {row['split']} seed {row['seed']}: {result}"


def _with_preset(row: dict[str, Any], plan: "Plan") -> dict[str, Any]:
    preset = plan.presets.get(row["settings"])
    return row if preset is None else {**row, "preset": preset}


def _facts(study: "Study", plan: "Plan", records: "list[Record]", args: argparse.Namespace) -> dict[str, Any]:
    from dissensus.report import provenance

    settings = {study.rows(record)[0]["settings"]: record.config for record in records}
    threads = sorted({record.provenance.get("threads") or 0 for record in records})
    preset = args.preset or study.preset
    return {**provenance(), "threads": threads, "preset": preset, "quick": args.quick, "settings": settings}


def _rebuild(args: argparse.Namespace, chosen: "list[Study]") -> dict[str, Any]:
    """Everything from the CSV files alone."""
    source = Path(args.source)
    if args.study == "all":
        chosen = [study for study in chosen if (source / study.name).is_dir()]
        if not chosen:
            raise InputError(f"{source} holds no results: make some with 'dissensus reproduce STUDY -o {source}'")
    folder = Path(args.output or source)
    answer: dict[str, Any] = {"output": str(folder), "from": str(source), "studies": {}}
    for study in chosen:
        answer["studies"][study.name] = _show(args, study, source, folder)
    return _finish(args, answer, source, folder)


def _show(args: argparse.Namespace, study: "Study", source: Path, folder: Path) -> dict[str, Any]:
    """Write and print a study from its CSV file; what --json says of it."""
    from dissensus.report import Table
    from dissensus.report._studies import cells, items, notes, write_files
    from dissensus.studies import Details, read_results

    rows, meta = read_results(source, study)
    files = write_files(study, rows, folder)
    shown = [item.content for item in items(study, rows) if item.view.shown and isinstance(item.content, Table)]
    if not args.json:
        print(f"{study.title}\n")
        for table in shown:
            table.show()
            print()
        # The notes stand below tables, if there are any.
        if not shown:
            print("\n".join(notes(study, rows)))
    value = next((view.value for view in study.views if isinstance(view, Details)), None)
    kept = ("runs", "failed", "splits", "seeds", "preset", "quick")
    answer: dict[str, Any] = {
        "title": study.title,
        **{name: meta.get(name) for name in kept},
        "notes": notes(study, rows),
    }
    if value is not None:
        answer |= {"value": value, "cells": cells(study, rows, value)}
        answer["paired"] = {item.stem: _records(item.content) for item in items(study, rows) if "paired" in item.stem}
    return answer | {"files": [str(path) for path in files]}


def _records(table: Any) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def _finish(args: argparse.Namespace, answer: dict[str, Any], source: Path, folder: Path) -> dict[str, Any]:
    """The page over all results that are in the folder, and the README."""
    from dissensus.report import Page
    from dissensus.report._studies import add_section, markdown, update_readme
    from dissensus.studies import STUDIES, read_results

    present = [study for study in STUDIES.values() if (source / study.name / "runs.csv").is_file()]
    # Links in a README are relative to where it stands.
    figures = Path(os.path.relpath(folder, Path(args.readme or ".").parent)).as_posix()
    page = Page("Opinion dissensus, reproduced", "Our numbers beside the printed ones.")
    sections = {}
    for study in present:
        try:
            rows, meta = read_results(source, study)
        except InputError as error:  # of an earlier command: no reason to lose the others' page
            print(f"{study.name} is left out of the page: {error}", file=sys.stderr)
            continue
        add_section(page, study, rows, meta)
        sections[study.name] = markdown(study, rows, figures)
    if sections:
        answer["page"] = str(page.write(folder / "report.html"))
        print(f"wrote {answer['page']}", file=sys.stderr)
    if args.readme and answer.get("interrupted"):
        print(f"{args.readme} stays as it is until all runs are there", file=sys.stderr)
    elif args.readme:
        path = Path(args.readme)
        text, found = update_readme(path.read_text(encoding="utf-8"), sections)
        path.write_text(text, encoding="utf-8")
        answer["readme"] = found
        print(f"updated in {path}: {', '.join(found) or 'nothing, as it has no markers'}", file=sys.stderr)
    return answer
