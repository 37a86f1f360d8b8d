"""Search for settings with Ray Tune, and write the best as a preset for 'train --preset FILE'.

    dissensus tune cora --model bimp --trials 50 --splits 1-5 --store search.db -o my.toml
    dissensus train cora --model bimp --preset my.toml --splits 101-120

Settings are judged by the mean validation metric over several splits; test nodes are never used. The same command
with the same --store continues where it was stopped. Without --address, Ray is started on this machine.
"""

import argparse
from pathlib import Path

from dissensus.cli._common import chosen, names, print_json, say
from dissensus.cli.train import add_run_arguments, planned
from dissensus.errors import InputError

# Number of splits for the search if none are given.
_SPLITS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    add = parser.add_argument
    add("--trials", type=int, default=20, metavar="N", help="number of settings to try")
    add("--splits", metavar="LIST", help=f"splits to validate on (default: the first {_SPLITS})")
    add("--search", default="random", help="how settings are proposed: random, or tpe (Optuna)")
    add("--scheduler", default="asha", help="asha, which stops bad trials early, or none")
    add("--space", metavar="FILE", help="TOML file with a search space, instead of the model's or the default one")
    add("--search-seed", type=int, default=1, metavar="N", help="seed of the proposals")
    add("--store", metavar="FILE", help="file of finished runs: new runs are added, existing ones are not repeated")
    add("--workers", type=int, metavar="N", help="number of parallel trials (default: as many as the cores allow)")
    add("--threads", type=int, default=1, metavar="N", help="number of threads of each trial")
    add("--address", metavar="HOST:PORT", help="a running Ray cluster (default: start Ray here)")
    add("-o", "--output", metavar="FILE", help="preset to write (default: DATASET-MODEL.toml)")
    add("--also", metavar="MODELS", help="further models with the same settings in the preset, comma-separated")
    add("--quiet", action="store_true", help="print no progress")


def run(args: argparse.Namespace) -> int:
    layers, base, splits, _ = planned(args)
    from dissensus import nn, train, tune

    model, dataset = layers["model"]["name"], Path(base.data.name).stem
    regression = train.is_error(base.train.metric or base.data.load().metric)
    space = tune.read_space(model, Path(args.space) if args.space else None, regression=regression)
    if not args.quiet:
        say(str(space))
    output = Path(args.output or f"{dataset}-{Path(model).name.replace(':', '-')}.toml")
    if output.suffix != ".toml":
        raise InputError(f"-o {output}: a preset is a .toml file: give a name that ends in .toml")
    also = [nn.info(name).name for name in names(args.also) or []]

    found = tune.search(
        base,
        space,
        splits=splits or base.data.load().default_splits[:_SPLITS],
        algorithm=args.search,
        seed=args.search_seed,
        **chosen(args, "trials", "scheduler", "store", "workers", "threads", "address"),
        on_report=None if args.quiet else lambda number, trial: say(f"[{number}/{args.trials}] {trial}"),
    )
    found.write(output, [model, *also], layers)
    answer = {"dataset": base.data.name, "model": base.model.name, **found.as_dict(), "output": str(output)}
    print_json(answer) if args.json else print(f"{found}\nwrote {output}: use it with --preset {output}")
    return 0
