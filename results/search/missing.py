"""Settings for graphs whose features are known at the training nodes alone: eight trials a model, on splits 1-10.

Every trained model is tried with two values of each of three settings, the last being the loss that makes predictions
agree on nodes without labels; label propagation, which is not trained, with two values of two. The best mean validation
accuracy becomes the preset ``missing``. BIMP's fixed settings (64 options, attention 1.1 u*, symmetric normalisation)
were found by hand on the same splits of Cora, in about 40 further trials.

python results/search/missing.py cora --store missing.db

writes ``results/search/missing/cora.json``, every trial, and the preset ``missing`` of Cora.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from dissensus import runs, train
from dissensus.train.presets import ROOT, write_settings

FOLDER = Path(__file__).parent / "missing"
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


def search(dataset: str, model: str, store: str | None) -> None:
    """Try every setting of a model, keep all trials, and make the best the preset."""
    judged: list[dict[str, Any]] = []
    for base in trials(dataset, model):
        grid = runs.grid(base, {"data.split": SPLITS})
        records = runs.execute(grid, train.TARGET, store=store).records
        val, test = (mean(r.result[part] if r.result else 0.0 for r in records) for part in ("val", "test"))
        settings = {name: base["train"].get(name) for name in ("node_dropout", "consistency")}
        judged.append({"model": base["model"], **settings, "val": round(val, 2), "test": round(test, 2)})
        print(f"{dataset} {model} {base['model']} {settings} validation {val:.2f}", flush=True)
    best = max(judged, key=lambda trial: trial["val"])
    note = (
        f"mean validation accuracy {best['val']:.2f} over splits {SPLITS[0]}-{SPLITS[-1]} with the features of all "
        f"other nodes missing, the best of {len(judged)} trials (results/search/missing.py)"
    )
    chosen = {key: value for key, value in best["model"].items() if key != "name"}
    trained = {key: TRIALS[model][0].get(f"train.{key}") for key in ("epochs", "lr", "weight_decay", "node_dropout")}
    trained |= {key: best[key] for key in ("node_dropout", "consistency")}
    layer = {"model": chosen, "train": {key: value for key, value in trained.items() if value is not None}}
    write_settings(ROOT / "missing" / f"{dataset}.toml", [model], note, {k: v for k, v in layer.items() if v})
    keep(FOLDER / f"{dataset}.json", model, judged)


def keep(path: Path, model: str, judged: list[dict[str, Any]]) -> None:
    """Put a model's trials, best first, into the file of the dataset, in place of those it had."""
    old = json.loads(path.read_text())["trials"] if path.is_file() else []
    rows = [row for row in old if row["model"]["name"] != model] + judged
    rows.sort(key=lambda row: -row["val"])
    text = ",\n".join(f"  {json.dumps(row, sort_keys=True)}" for row in rows)
    path.write_text(f'{{"splits": {list(SPLITS)}, "trials": [\n{text}\n]}}\n')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--models", nargs="+", default=list(TRIALS), choices=list(TRIALS))
    parser.add_argument("--store")
    given = parser.parse_args()
    for name in given.models:
        search(given.dataset, name, given.store)
