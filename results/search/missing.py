"""Settings for graphs whose features are known at the training nodes alone: eight trials a model, on splits 1-10.

Every trained model is tried with two values of each of three settings, the last being the loss that makes predictions
agree on nodes without labels; label propagation, which is not trained, with two values of two. The best mean validation
accuracy becomes the preset ``missing``. BIMP's fixed settings (64 options, attention 1.1 u*, symmetric normalisation)
were found by hand on the same splits of Cora, in about 40 further trials.

python results/search/missing.py cora --store missing.db
"""

import argparse
from collections.abc import Iterator
from itertools import product
from statistics import mean
from typing import Any

from dissensus import runs, train

SPLITS = tuple(range(1, 11))

_COMMON = {"model.normalize_features": True, "train.epochs": 60, "train.lr": 0.01, "train.weight_decay": 5e-4}
_EULER = {"model.method": "euler", "model.heads": 1, "model.attention_channels": 8}
_BIMP = {
    **_COMMON,
    **_EULER,
    "model.hidden_channels": 64,
    "model.normalizer": "symmetric",
    "model.option_attention": "identity",
    "model.encoder_bias": False,
    "model.attention_ratio": 1.1,
    "train.node_dropout": 0.5,
}
_GRAND = {**_COMMON, **_EULER, "model.source": True, "model.encoder_bias": False}
_HIDING = ("train.node_dropout", (None, 0.5))
_AGREEING = ("train.consistency", (None, 1.0))


def _layers(*depths: int) -> tuple[str, tuple[int, ...]]:
    return "model.num_layers", depths


# The fixed settings of each model, and those that vary.
TRIALS: dict[str, tuple[Any, ...]] = {
    "label-propagation": ({}, ("model.alpha", (0.9, 0.95)), _layers(32, 128)),
    "bimp": (_BIMP, ("model.self_reinforcement", (0.0, 1.0)), ("model.time", (32.0, 64.0)), _AGREEING),
    "grand-l": (_GRAND, ("model.time", (8.0, 32.0)), _HIDING, _AGREEING),
    "sgc": ({**_COMMON, "train.lr": 0.1}, _layers(8, 32), _HIDING, _AGREEING),
    "appnp": (_COMMON, _layers(8, 32), _HIDING, _AGREEING),
    "gprgnn": (_COMMON, _layers(8, 32), _HIDING, _AGREEING),
    "gcn": (_COMMON, _layers(2, 4), _HIDING, _AGREEING),
    "gcn-res": (_COMMON, _layers(2, 8), _HIDING, _AGREEING),
    "gcnii": (_COMMON, _layers(8, 32), _HIDING, _AGREEING),
    "feature-propagation": (_COMMON, _layers(2, 4), ("model.iterations", (40, 100)), _AGREEING),
}


def trials(dataset: str, model: str) -> Iterator[dict[str, Any]]:
    """The configurations of a model, without splits."""
    fixed, *varied = TRIALS[model]
    names, values = zip(*varied, strict=True)
    for point in product(*values):
        chosen = {name: value for name, value in zip(names, point, strict=True) if value is not None}
        flags = {**fixed, **chosen, "data.missing_features": 1.0}
        yield train.resolve(dataset, model, preset="none", flags=flags).as_dict()


def search(dataset: str, models: list[str], store: str | None) -> None:
    """Try every setting, and print each with its validation accuracy, the best of each model last."""
    for model in models:
        judged = []
        for base in trials(dataset, model):
            grid = runs.grid(base, {"data.split": SPLITS})
            records = runs.execute(grid, train.TARGET, store=store).records
            val, test = (mean(r.result[part] if r.result else 0.0 for r in records) for part in ("val", "test"))
            judged.append((val, base))
            print(f"{dataset} {model} {base['model']} {base['train']} validation {val:.2f} ({test:.2f})", flush=True)
        val, best = max(judged, key=lambda pair: pair[0])
        print(f"{dataset} {model}: {val:.2f} {best['model']} {best['train']}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--models", nargs="+", default=list(TRIALS), choices=list(TRIALS))
    parser.add_argument("--store")
    given = parser.parse_args()
    search(given.dataset, given.models, given.store)
