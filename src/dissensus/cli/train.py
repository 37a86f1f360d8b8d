"""Train a model on a dataset, or on your own graph, over several splits and seeds; accuracies are in per cent.

The test accuracy of a run is that of its best validation accuracy over the epochs. Settings come from the defaults,
then the preset, then --config, then the flags here; each overrides the one before it, key by key, and what came out of
it is kept with every result. Without --splits: the ten random splits 1-10, or all fixed splits where the data brings
its own.

Edges of your own graph have weights where an .npz or .pt file has edge_weight, or edges.csv a column weight; they are
used as they are given, from source to target, unless --undirected adds their reverse.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.data import names
from dissensus.errors import DissensusError, InputError
from dissensus.train import TARGET
from dissensus.train._config import Config, settings
from dissensus.train._presets import preset_names
from dissensus.train._resolve import merge, parse_numbers, parse_settings

if TYPE_CHECKING:
    from dissensus.data import Dataset
    from dissensus.runs import Record
    from dissensus.train import Result

# Settings with a flag of their own; the rest of the model's are reached with --set.
_FLAGS = (
    *(("train", name) for name in settings("train") if name != "seed"),
    ("model", "hidden_channels"),
    ("data", "largest_component"),
    ("data", "undirected"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run_arguments(parser)
    parser.add_argument("--splits", metavar="LIST", help="splits, such as 1-10 or 0,2,5-7; see above for the default")
    parser.add_argument("--seeds", metavar="LIST", help="training seeds, such as 1-3; one run for each split and seed")
    parser.add_argument("--store", metavar="FILE", help="keep finished runs here, and take from here those that it has")
    parser.add_argument("--retry-failed", action="store_true", help="make runs again that failed before (with --store)")
    parser.add_argument("--save", metavar="DIR", help="write the run with the best validation here, for 'predict'")
    parser.add_argument(
        "--log", metavar="KIND:PLACE", help="follow epochs elsewhere: tensorboard:DIR, wandb:PROJECT or mlflow:URI"
    )
    parser.add_argument(
        "--executor", default="inline", help="inline (here, one after the other), processes, or ray (a cluster)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="runs at a time, with processes or ray")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of one run")
    parser.add_argument("--address", metavar="HOST:PORT", help="a running Ray cluster; without, Ray starts here")
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what says how one run is made: data, model, preset, file and settings."""
    parser.add_argument("graph", metavar="NAME|FILE", help="dataset that 'dissensus data' lists, or file of a graph")
    parser.add_argument(
        "--model", metavar="M", help="model that 'dissensus models' lists (default: bimp)", default=argparse.SUPPRESS
    )
    parser.add_argument(
        "--preset",
        default="default",
        metavar="P",
        help=f"settings to start from: {', '.join(preset_names())}, or a .toml file that 'tune' wrote",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="TOML file with sections [data], [model], [train]", default=argparse.SUPPRESS
    )
    parser.add_argument(
        "--set",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=argparse.SUPPRESS,
        help="any setting, such as model.heads=8 or train.lr=0.02; may be repeated",
    )
    for section, name in _FLAGS:
        kind, default, text = settings(section)[name]
        flag = f"--{name.replace('_', '-')}"
        shown = (
            ""
            if default is None
            else f" (default: {str(default).lower() if kind is bool else default}, or the preset's)"
        )
        common: dict[str, Any] = {"dest": f"{section}.{name}", "default": argparse.SUPPRESS, "help": text + shown}
        if kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
        else:
            parser.add_argument(flag, type=kind, metavar=kind.__name__.upper(), **common)


def merged(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """What preset, file and flags say together."""
    flags = parse_settings(getattr(args, "set", []))
    for path, value in vars(args).items():
        if "." in path:
            if path in flags:
                raise InputError(f"{path} is given twice, by its own flag and by --set: give it once")
            flags[path] = value
    graph = args.graph if args.graph in names() else str(Path(args.graph).expanduser())
    return merge(
        graph, getattr(args, "model", None), preset=args.preset, file=getattr(args, "config", None), flags=flags
    )


@dataclass
class Plan:
    """The runs of one command, and what they have given so far."""

    base: Config
    preset: str
    splits: list[int]
    seeds: list[int]
    done: "list[Record]" = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)

    @cached_property
    def configs(self) -> list[dict[str, Any]]:
        """One configuration for each split and seed."""
        from dissensus.runs import grid

        return grid(self.base.as_dict(), {"data.split": self.splits, "train.seed": self.seeds})

    @property
    def results(self) -> list[dict[str, Any]]:
        """What the finished runs gave, by split and seed."""
        found = [record.result for record in self.done if record.result is not None]
        return sorted(found, key=lambda result: (result["split"], result["seed"]))


def plan(args: argparse.Namespace) -> Plan:
    """The runs that the arguments ask for; torch is needed only to look into a file or for its splits."""
    layers = merged(args)
    splits = _numbers(args.splits, "--splits", "data.split", layers["data"].get("split"))
    seeds = _numbers(args.seeds, "--seeds", "train.seed", layers["train"].get("seed"))
    config = Config.from_dict(layers)
    if args.graph not in names() or splits is None:
        from dissensus.train._fit import load

        dataset = load(config.data)
        splits = splits or list(dataset.default_splits)
        if args.graph not in names():
            _tell_direction(config, dataset)
            # A file may change: its runs are known by what is in it. Workers may stand in other folders.
            layers["data"] |= {"name": str(Path(config.data.name).resolve()), "fingerprint": dataset.fingerprint}
            config = Config.from_dict(layers)
    return Plan(config, args.preset, splits, seeds or [1])


def _tell_direction(config: Config, dataset: "Dataset") -> None:
    """A table of edges with one line for each is easily taken for an undirected graph."""
    if config.data.undirected is None and dataset.one_way:
        print(
            f"{config.data.name}: no edge has its reverse, so messages go from source to target only: choose with "
            "--undirected (both ways) or --no-undirected (as it is)",
            file=sys.stderr,
        )


def _numbers(text: str | None, flag: str, path: str, given: int | None) -> list[int] | None:
    if text is None:
        return None if given is None else [given]
    if given is not None:
        raise InputError(f"{flag} and {path} are both given: leave out {path}")
    try:
        return parse_numbers(text)
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    if args.log and args.executor != "inline":
        raise InputError("--log follows runs in this process: use it with --executor inline")
    if args.save and Path(args.save).exists() and not Path(args.save).is_dir():
        raise InputError(f"--save {args.save} is a file: give a folder")
    planned = plan(args)
    if args.save:  # before the training that it would be of
        try:
            Path(args.save).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--save {args.save} cannot be made ({error.strerror}): name another folder") from error
    interrupted = False
    try:
        best = _make(args, planned)
    except KeyboardInterrupt:
        if not planned.results:
            raise
        interrupted, best = True, None
    answer = _answer(planned)
    if not interrupted and args.save and planned.results:
        answer["save"] = _save(args, planned, best)
    if interrupted:
        answer["interrupted"] = True
    for failure in answer["errors"]:
        print(f"split {failure['split']}, seed {failure['seed']} failed: {failure['error']}", file=sys.stderr)
    if args.json:
        print(json.dumps(answer))
    elif planned.results:
        _table(answer).show()
    if interrupted:
        raise KeyboardInterrupt
    return 1 if answer["errors"] else 0


def _make(args: argparse.Namespace, planned: Plan) -> "Result | None":
    """Make the runs; the best of those that were made in this process."""
    from dissensus import runs
    from dissensus.cli._progress import Progress

    if args.store and _all_stored(args, planned):
        planned.done = runs.execute(planned.configs, TARGET, store=args.store).records
        return None
    # Only now is torch needed, which takes seconds to load.
    from dissensus.train import check, open_logger, watching
    from dissensus.train._fit import load

    check(planned.base)
    dataset = load(planned.base.data)
    for split in planned.splits:
        dataset.split(split)
    best: list[Result] = []

    def done(result: "Result") -> None:
        if not best or _rank(result.as_dict()) > _rank(best[0].as_dict()):
            best[:] = [result]

    with ExitStack() as stack:
        logger = open_logger(args.log) if args.log else None
        if logger is not None:
            stack.callback(logger.close)
        progress = stack.enter_context(Progress(len(planned.configs), quiet=args.quiet))

        def epoch(config: Config, now: Any) -> None:
            progress.epoch(config, now)
            if logger is not None:
                name = f"{Path(config.data.name).stem}-{config.model.name}-{config.data.split}-{config.train.seed}"
                logger.log(name, config, now.number, {"loss": now.loss, "val": now.val, "val_loss": now.val_loss})

        def on_result(record: "Record") -> None:
            planned.done.append(record)
            progress.run(record)

        stack.enter_context(watching(epoch, done))
        summary = runs.execute(
            planned.configs,
            TARGET,
            store=args.store,
            executor=args.executor,
            workers=args.workers,
            threads=args.threads,
            address=args.address,
            on_result=on_result,
            retry_failed=args.retry_failed,
        )
    planned.done = summary.records
    return best[0] if best else None


def _all_stored(args: argparse.Namespace, planned: Plan) -> bool:
    from dissensus.runs import Store

    if not Path(args.store).is_file():
        return False
    with Store(args.store) as store:
        return not store.missing(planned.configs, retry_failed=args.retry_failed)


def _rank(result: dict[str, Any]) -> tuple[float, int, int]:
    return result["val"], -result["split"], -result["seed"]


def _save(args: argparse.Namespace, planned: Plan, made: "Result | None") -> dict[str, Any]:
    """Write the run with the best validation; one that was made elsewhere or before is made again, bit for bit."""
    from dissensus.train import fit, save

    best = max(planned.results, key=_rank)
    if made is None or (made.config.data.split, made.config.train.seed) != (best["split"], best["seed"]):
        if not args.quiet:
            print(f"making split {best['split']}, seed {best['seed']} again to save its parameters", file=sys.stderr)
        layers = planned.base.as_dict()
        layers["data"]["split"], layers["train"]["seed"] = best["split"], best["seed"]
        made = fit(Config.from_dict(layers))
    save(made, args.save)
    return {"folder": args.save, "split": best["split"], "seed": best["seed"], "val": made.val, "test": made.test}


def _answer(planned: Plan) -> dict[str, Any]:
    """The result in plain values; a spread over one run is 0, and its interval is unknown."""
    from dissensus.report import Value

    results = planned.results
    failed = [record for record in planned.done if record.result is None]
    if not results and failed:
        raise DissensusError(f"all {len(failed)} runs failed; the first: {failed[0].error}")
    config = planned.base.as_dict()
    # These vary over the runs, so they are with each of them.
    del config["data"]["split"], config["train"]["seed"]
    answer: dict[str, Any] = {
        "dataset": planned.base.data.name,
        "model": planned.base.model.name,
        "preset": planned.preset,
        "splits": planned.splits,
        "seeds": planned.seeds,
    }
    for name in ("test", "val"):
        value = Value.of(result[name] for result in results)
        several = len(results) > 1
        answer[f"{name}_mean"], answer[f"{name}_std"] = value.mean, value.std if several else 0.0
        answer[f"{name}_interval"] = list(value.interval) if several else None
    keys = ("split", "seed", "val", "test", "epoch", "seconds", "time")
    return answer | {
        "seconds": time.perf_counter() - planned.begun,
        "selection": results[0]["selection"],
        "protocol": results[0]["protocol"],
        "config": config,
        "runs": [{key: result[key] for key in keys} for result in results],
        "errors": [_failure(record) for record in failed],
    }


def _failure(record: "Record") -> dict[str, Any]:
    config = record.config
    return {"split": config["data"]["split"], "seed": config["train"]["seed"], "error": record.error}


def _table(answer: dict[str, Any]) -> Any:
    from dissensus.report import Table, Value

    def cell(name: str) -> Value:
        runs: Sequence[dict[str, Any]] = answer["runs"]
        return Value.of(run[name] for run in runs)

    interval = answer["test_interval"]
    reach = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
    row = [answer["model"], Path(answer["dataset"]).stem, cell("test"), reach, cell("val"), cell("seconds")]
    return Table(
        columns=["model", "dataset", "test %", "95% interval", "validation %", "seconds a run"],
        rows=[row],
        note=f"preset {answer['preset']}; {answer['protocol']}; selected on validation over {answer['selection']}",
    )
