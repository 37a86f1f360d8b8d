"""Search for settings on Ray Tune, and write the best as a preset that 'train --preset FILE' takes.

Settings are judged by the mean of the metric on validation over several splits; test nodes are never looked at. The
same command with the same --store goes on where it was stopped. Without --address Ray is started on this machine.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.cli._common import add_json, names, print_json
from dissensus.cli.train import add_run_arguments, planned, settings_of
from dissensus.errors import InputError
from dissensus.train import merge

if TYPE_CHECKING:
    from dissensus.tune import Trial

# Splits that are searched on unless the caller names them.
_SPLITS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run_arguments(parser)
    parser.add_argument("--trials", type=int, default=20, metavar="N", help="settings to try")
    parser.add_argument("--splits", metavar="LIST", help=f"splits to validate on (default: the first {_SPLITS})")
    parser.add_argument("--search", default="random", help="how settings are proposed: random, or tpe (Optuna)")
    parser.add_argument("--scheduler", default="asha", help="asha stops trials that lag behind early; none does not")
    parser.add_argument("--space", metavar="FILE", help="TOML file with a search space, in place of the model's own")
    parser.add_argument("--search-seed", type=int, default=1, metavar="N", help="seed of the proposals")
    parser.add_argument("--store", metavar="FILE", help="keep finished runs here, and take from here those that it has")
    parser.add_argument("--workers", type=int, metavar="N", help="trials at a time (default: as the cores allow)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of one trial")
    parser.add_argument("--address", metavar="HOST:PORT", help="a running Ray cluster; without, Ray starts here")
    parser.add_argument("-o", "--output", metavar="FILE", help="preset to write (default: DATASET-MODEL.toml)")
    parser.add_argument("--also", metavar="MODELS", help="variants that the preset gives the same settings, a,b,c")
    add_json(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    given = settings_of(args)
    base, splits, _ = planned(args, given)
    from dissensus import nn, tune

    model, dataset = given["model"] or base.model.name, Path(base.data.name).stem
    space = tune.read_space(model, Path(args.space) if args.space else None)
    output = Path(args.output or f"{dataset}-{Path(model).name.replace(':', '-')}.toml")
    if output.suffix != ".toml":
        raise InputError(f"-o {output}: a preset is a file that ends in .toml")
    also = [nn.info(name).name for name in names(args.also) or []]
    splits = splits or list(base.data.load().default_splits[:_SPLITS])

    def report(number: int, trial: "Trial") -> None:
        if not args.quiet:
            shown = ", ".join(f"{path}={_short(value)}" for path, value in trial.settings.items())
            reached = f"validation {trial.val:.2f} over {trial.splits}/{len(splits)} splits"
            print(f"[{number}/{args.trials}] {reached}: {shown}", file=sys.stderr, flush=True)

    found = tune.search(
        base,
        space,
        trials=args.trials,
        splits=splits,
        algorithm=args.search,
        scheduler=args.scheduler,
        seed=args.search_seed,
        store=args.store,
        workers=args.workers,
        threads=args.threads,
        address=args.address,
        on_report=report,
    )
    note = (
        f"mean on validation {found.best.val:.2f} over splits {_listed(splits)}, the best of {len(found.trials)} "
        f"trials ({args.search}, {args.scheduler})"
    )
    found.write(output, [model, *also], note, merge(**given))
    answer: dict[str, Any] = {
        "dataset": base.data.name,
        "model": base.model.name,
        "splits": splits,
        "trials": len(found.trials),
        "finished": sum(trial.splits == len(splits) for trial in found.trials),
        "val_mean": found.best.val,
        "settings": dict(found.best.settings),
        "output": str(output),
        "seconds": found.seconds,
    }
    if args.json:
        print_json(answer)
    else:
        print(f"{note}\nwrote {output}: use it with --preset {output}")
    return 0


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _listed(splits: list[int]) -> str:
    whole = splits == list(range(splits[0], splits[-1] + 1)) and len(splits) > 1
    return f"{splits[0]}-{splits[-1]}" if whole else ",".join(map(str, splits))
