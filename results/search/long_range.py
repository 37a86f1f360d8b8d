"""Settings for the generated long-range tasks and Minesweeper: four trials a model, by the mean metric on validation.

Every model is tried with two learning rates at two depths, on two splits, everything else fixed: the best becomes its
entry in the preset ``tuned``. Before a search has run there, all models have the same settings, chosen by hand.

python results/search/long_range.py shortest-path --store long-range.db
"""

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from dissensus import data, nn, runs, train
from dissensus.train.presets import ROOT, write_settings

LEARNING_RATES = (0.003, 0.01)
DEPTHS = {"minesweeper": (8, 16)}
SPLITS = {"minesweeper": (0, 1)}

_COMMON = {"model.dropout": 0.0, "model.input_dropout": 0.0, "train.weight_decay": 0.0}
_CONTINUOUS = {"model.method": "euler", "model.heads": 1, "model.encoder": "mlp", "model.decoder": "mlp"}
_BIMP = {
    **_CONTINUOUS,
    "model.encoder_bias": False,
    "model.option_attention": "identity",
    "model.self_reinforcement": 0.0,
}
# The settings of each model that stay as they are.
FIXED: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("bimp", "bimp-aa"), _BIMP),
    **dict.fromkeys(("grand-l", "grand-aa"), _CONTINUOUS),
    **{model: {} for model in ("gcn", "gcn-res", "gcnii", "adgn", "g2")},
}


def fixed(dataset: str, model: str) -> dict[str, Any]:
    """The settings of a model that every trial has."""
    size = {"model.hidden_channels": 64, "train.epochs": 300} if dataset == "minesweeper" else {}
    return {"model.hidden_channels": 32, "train.epochs": 150, **size, **_COMMON, **FIXED[model]}


def trials(dataset: str, model: str) -> Iterator[dict[str, Any]]:
    """The settings of each trial, by dotted path."""
    for rate, depth in product(LEARNING_RATES, DEPTHS.get(dataset, (16, 32))):
        layers = {f"model.{name}": value for name, value in nn.info(model).at_depth(depth).items()}
        yield {**fixed(dataset, model), "train.lr": rate, **layers}


def search(dataset: str, models: list[str], store: str | None, folder: Path) -> None:
    """Try every setting, print it with its metric on validation, and write the best of each model."""
    splits = SPLITS.get(dataset, (1, 2))
    error = train.is_error(data.info(dataset).metric)
    for model in models:
        judged = []
        for flags in trials(dataset, model):
            base = train.resolve(dataset, model, preset="none", flags=flags).as_dict()
            records = runs.execute(runs.grid(base, {"data.split": splits}), train.TARGET, store=store).records
            if all(record.result for record in records):
                judged.append((mean(record.result["val"] for record in records), flags))
                print(f"{dataset} {model} {judged[-1][0]:.3f} {flags}", flush=True)
        val, best = (min if error else max)(judged, key=lambda pair: pair[0])
        layer: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
        for path, value in best.items():
            section, _, name = path.partition(".")
            layer[section][name] = value
        note = (
            f"{data.info(dataset).metric} {val:.3f} on validation over splits {splits}, the best of 4 trials "
            "(results/search/long_range.py)"
        )
        write_settings(folder / f"{dataset}.toml", [model], note, layer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--models", nargs="+", default=list(FIXED), choices=list(FIXED))
    parser.add_argument("--store")
    parser.add_argument("--presets", type=Path, default=ROOT / "tuned", help="folder of the preset's files")
    given = parser.parse_args()
    search(given.dataset, given.models, given.store, given.presets)
