"""Train a model on a dataset, or on your own graph, and print its accuracy over several splits and seeds.

    dissensus train cora --model bimp --preset tuned
    dissensus train my_graph/ --undirected --save trained/
    dissensus train graph.npz --model gcn --set model.num_layers=4 --splits 1-3

Your own graph is an .npz file, a PyG .pt file, or a folder with edges.csv and nodes.csv. Its edges carry messages from
source to target, with the weights of edge_weight or of the column weight; --undirected adds the reverse of every edge.

Each run reports the test metric at the epoch with the best validation metric. Settings come from the defaults, the
preset, --config and the flags; a later one overrides an earlier one, key by key.
"""

import argparse
from pathlib import Path
from typing import Any

from dissensus.cli._common import EXECUTION, add_execution, chosen, numbers, print_json, say
from dissensus.data import names
from dissensus.errors import InputError
from dissensus.train import Config, merge, preset_names

_GROUPS = {
    "data": ("the graph", None),
    "model": ("the model", "Options of single models are set with --set model.NAME=VALUE."),
    "train": ("training", None),
}
# Settings without a flag of their own name. Options of models and of generated graphs have no flag: --set sets them.
_WITHOUT_FLAG = {"data.name", "data.split", "data.fingerprint", "model.name", "model.fingerprint", "train.seed"}


def configure(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    add = parser.add_argument
    words = "splits, such as 1-10 or 0,2,5-7 (default: 1-10, or all fixed splits of the data)"
    add("--splits", metavar="LIST", help=words)
    add("--seeds", metavar="LIST", help="training seeds, such as 1-3; one run for each split and seed")
    add("--store", metavar="FILE", help="file of finished runs: new runs are added, existing ones are not repeated")
    add("--save", metavar="DIR", help="save the model with the best validation metric to this folder, for 'predict'")
    words = "log every epoch to tensorboard:DIR, wandb:PROJECT or mlflow:URI"
    add("--log", metavar="KIND:PLACE", help=words)
    add_execution(parser)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that configure a run: data, model, preset, file and settings."""
    given: dict[str, Any] = {"default": argparse.SUPPRESS}
    parser.usage = "%(prog)s NAME|FILE [options]"
    add = parser.add_argument
    add("graph", metavar="NAME|FILE", help="dataset that 'dissensus data' lists, or file of a graph")
    words = "model that 'dissensus models' lists, or a class in a file of yours, my_model.py:MyNet (default: bimp)"
    add("--model", metavar="M", help=words)
    words = f"settings to start from: {', '.join(preset_names())}, or a .toml file that 'tune' wrote"
    add("--preset", default="default", metavar="P", help=words)
    add("--config", metavar="FILE", help="TOML file with sections [data], [model], [train]")
    words = "any setting, such as model.heads=8 or train.lr=0.02; may be repeated"
    add("--set", metavar="SECTION.KEY=VALUE", action="append", default=[], help=words)
    for section, kind in Config.sections().items():
        add = parser.add_argument_group(*_GROUPS[section]).add_argument
        for name, (value, default, text) in kind.settings().items():
            if (path := f"{section}.{name}") in _WITHOUT_FLAG:
                continue
            written = str(default).lower() if value is bool else default
            shown = "" if default is None else f" (default: {written}, or the preset's)"
            how: dict[str, Any] = {"type": value, "metavar": value.__name__.upper()}
            if value is bool:
                how = {"action": argparse.BooleanOptionalAction}
            add(f"--{name.replace('_', '-')}", dest=path, help=text + shown, **how, **given)


def planned(args: argparse.Namespace) -> tuple[dict[str, Any], Config, list[int] | None, list[int] | None]:
    """The given settings by section, the configuration, and the splits and seeds (None if not given)."""
    path = Path(args.graph).expanduser()
    layers = merge(
        str(path.resolve()) if path.exists() and args.graph not in names() else args.graph,
        args.model,
        preset=args.preset,
        file=args.config,
        flags={path: value for path, value in vars(args).items() if "." in path},
        settings=args.set,
    )
    found = []
    for flag, section, key in (("--splits", "data", "split"), ("--seeds", "train", "seed")):
        named, value = numbers(flag, getattr(args, flag[2:], None)), layers[section].get(key)
        if named and value is not None:
            raise InputError(f"{flag} and {section}.{key} are both given: leave out {section}.{key}")
        found.append(named or (None if value is None else [value]))
    config = Config.from_dict(layers).pinned()
    if config.data.name not in names() and config.data.undirected is None and config.data.load().one_way:
        # A table with one line for each edge may be meant as an undirected graph.
        say(
            f"{config.data.name}: no edge has its reverse, so messages go from source to target only: choose with "
            "--undirected (both ways) or --no-undirected (as it is)"
        )
    return layers, config, found[0], found[1]


def run(args: argparse.Namespace) -> int:
    if args.save:  # an error here should come before the training
        try:
            Path(args.save).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--save {args.save} cannot be created ({error.strerror}): give another folder") from error
    from dissensus import runs
    from dissensus.cli._progress import Progress

    _, config, splits, seeds = planned(args)
    with Progress(quiet=args.quiet) as progress:
        options = chosen(args, *EXECUTION, "store", "log")
        found = runs.repeat(config, splits=splits, seeds=seeds, **options, on_epoch=progress.epoch, on_run=progress.run)
    answer = {**found.as_dict(), "preset": args.preset, **({"interrupted": True} if found.interrupted else {})}
    if args.save and not found.interrupted:
        if found.best is None and not args.quiet:
            say("training the best run again, to save its parameters")
        answer["save"] = found.save(args.save)
    for failure in answer["errors"]:
        say(f"split {failure['split']}, seed {failure['seed']} failed: {failure['error']}")
    print_json(answer) if args.json else found.table().show()
    if found.interrupted:
        raise KeyboardInterrupt
    return 1 if answer["errors"] else 0
