"""Train a model on a dataset, or on your own graph, over several splits and seeds; shares are in per cent.

What is reported of a run is the test metric at its best validation over the epochs. Settings come from the defaults,
then the preset, then --config, then the flags here; each overrides the one before it, key by key, and what came out of
it is kept with every result. Without --splits: the ten random splits 1-10, or all fixed splits where the data brings
its own.

Edges of your own graph have weights where an .npz or .pt file has edge_weight, or edges.csv a column weight; they are
used as they are given, from source to target, unless --undirected adds their reverse.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from dissensus.cli._common import add_execution, add_json, numbers, print_json
from dissensus.data import names
from dissensus.errors import InputError
from dissensus.train import Config, merge, preset_names, resolve

# Settings with a flag of their own; the rest of the model's and of generated graphs' are reached with --set.
_WITHOUT_FLAG = {"data.name", "data.split", "data.fingerprint", "model.name", "model.fingerprint", "train.seed"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run_arguments(parser)
    parser.add_argument("--splits", metavar="LIST", help="splits, such as 1-10 or 0,2,5-7; see above for the default")
    parser.add_argument("--seeds", metavar="LIST", help="training seeds, such as 1-3; one run for each split and seed")
    parser.add_argument("--store", metavar="FILE", help="keep finished runs here, and take from here those that it has")
    parser.add_argument("--save", metavar="DIR", help="write the run with the best validation here, for 'predict'")
    parser.add_argument(
        "--log", metavar="KIND:PLACE", help="follow epochs elsewhere: tensorboard:DIR, wandb:PROJECT or mlflow:URI"
    )
    add_execution(parser)
    add_json(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what says how one run is made: data, model, preset, file and settings."""
    parser.add_argument("graph", metavar="NAME|FILE", help="dataset that 'dissensus data' lists, or file of a graph")
    parser.add_argument(
        "--model",
        metavar="M",
        default=argparse.SUPPRESS,
        help="model that 'dissensus models' lists, or a class in a file of yours, my_model.py:MyNet (default: bimp)",
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
    for section, kind in Config.sections().items():
        for name, (value, default, text) in kind.settings().items():
            if (path := f"{section}.{name}") in _WITHOUT_FLAG:
                continue
            written = str(default).lower() if value is bool else default
            shown = "" if default is None else f" (default: {written}, or the preset's)"
            common: dict[str, Any] = {"dest": path, "default": argparse.SUPPRESS, "help": text + shown}
            how: dict[str, Any] = {"type": value, "metavar": value.__name__.upper()}
            if value is bool:
                how = {"action": argparse.BooleanOptionalAction}
            parser.add_argument(f"--{name.replace('_', '-')}", **common, **how)


def settings_of(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of :func:`dissensus.train.resolve` and of what it merges."""
    known = args.graph in names() or not Path(args.graph).expanduser().exists()
    return {
        "dataset": args.graph if known else str(Path(args.graph).expanduser().resolve()),
        "model": getattr(args, "model", None),
        "preset": args.preset,
        "file": getattr(args, "config", None),
        "flags": {path: value for path, value in vars(args).items() if "." in path},
        "settings": getattr(args, "set", []),
    }


def planned(args: argparse.Namespace, given: dict[str, Any]) -> tuple[Config, list[int] | None, list[int] | None]:
    """The configuration, the splits and the seeds; None where the caller names none."""
    found = []
    layers = merge(**given)
    for flag, section, key in (("--splits", "data", "split"), ("--seeds", "train", "seed")):
        named, value = numbers(flag, getattr(args, flag[2:], None)), layers[section].get(key)
        if named and value is not None:
            raise InputError(f"{flag} and {section}.{key} are both given: leave out {section}.{key}")
        found.append(named or (None if value is None else [value]))
    config = resolve(**given).pinned()
    if config.data.name not in names() and config.data.undirected is None and config.data.load().one_way:
        # A table of edges with one line for each is easily taken for an undirected graph.
        print(
            f"{config.data.name}: no edge has its reverse, so messages go from source to target only: choose with "
            "--undirected (both ways) or --no-undirected (as it is)",
            file=sys.stderr,
        )
    return config, found[0], found[1]


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    if args.save:  # before the training that it would be of
        try:
            Path(args.save).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--save {args.save} cannot be made ({error.strerror}): give a folder") from error
    from dissensus import runs
    from dissensus.cli._progress import Progress

    config, splits, seeds = planned(args, settings_of(args))
    with Progress(quiet=args.quiet) as progress:
        options = {name: getattr(args, name) for name in ("store", "executor", "workers", "threads", "address", "log")}
        found = runs.repeat(
            config,
            splits=splits,
            seeds=seeds,
            retry_failed=args.retry_failed,
            on_epoch=progress.epoch,
            on_run=progress.run,
            **options,
        )
    answer = {**found.as_dict(), "preset": args.preset}
    if args.save and not found.interrupted:
        if found.best is None and not args.quiet:
            print("training the best run again, to save its parameters", file=sys.stderr)
        answer["save"] = found.save(args.save)
    if found.interrupted:
        answer["interrupted"] = True
    for failure in answer["errors"]:
        print(f"split {failure['split']}, seed {failure['seed']} failed: {failure['error']}", file=sys.stderr)
    if args.json:
        print_json(answer)
    else:
        found.table().show()
    if found.interrupted:
        raise KeyboardInterrupt
    return 1 if answer["errors"] else 0
