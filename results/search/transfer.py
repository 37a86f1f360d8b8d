"""Choose the rivals' settings on a large graph among those found on smaller ones, by validation accuracy.

python results/search/transfer.py computers     adds to src/dissensus/presets/tuned/computers.toml
"""

import argparse
from itertools import product
from pathlib import Path
from statistics import mean

from dissensus import runs, train
from dissensus.train.presets import read_settings, write_settings

PRESETS = Path(__file__).parents[2] / "src/dissensus/presets/tuned"
MODELS = "gcn,gat,sage,grand-l,grand++-l,graphcon-tran,kuramoto"
SPLITS = (1, 2)
# Bags of words that only say which words occur have the same features either way.
FEATURES = {"pubmed": (True, "hellinger")}


def candidate(source: str, model: str, features: bool | str | None = None) -> tuple[list[str], dict]:
    """The models that share a model's tuned settings on a dataset, and these settings, with fewer epochs."""
    entries = read_settings(PRESETS / f"{source}.toml")
    entry = next(entry for entry in entries if model in entry["models"])
    layer = {"model": entry["model"], "train": {**entry["train"], "epochs": 80, "patience": 25}}
    if any(name.endswith("-rw") for name in entry["models"]):
        layer["model"].setdefault("rewire_neighbors", 16)
    if features is not None:
        layer["model"]["normalize_features"] = features
    return entry["models"], layer


def config(dataset: str, model: str, layer: dict, split: int) -> dict:
    flags = {f"{section}.{key}": value for section, part in layer.items() for key, value in part.items()}
    return train.resolve(dataset, model, preset="none", flags={**flags, "data.split": split}).as_dict()


def choose(dataset: str, model: str, sources: list[str], store: str | None, workers: int) -> None:
    tried = list(product(sources, FEATURES.get(dataset, (None,))))
    layers = [candidate(source, model, features)[1] for source, features in tried]
    grid = [config(dataset, model, layer, split) for layer in layers for split in SPLITS]
    done = runs.execute(grid, train.TARGET, store=store, executor="processes", workers=workers, threads=1)
    vals = [record.result["val"] if record.result else 0.0 for record in done.records]
    means = [mean(vals[len(SPLITS) * i :][: len(SPLITS)]) for i in range(len(tried))]
    names = [source + (f" ({features} features)" if features == "hellinger" else "") for source, features in tried]
    listed = [f"{name} {val:.2f}" for name, val in zip(names, means, strict=True)]
    print(f"{dataset} {model}:", ", ".join(listed), flush=True)
    note = f"mean validation accuracy over splits 1-2 with the settings of: {', '.join(listed)}"
    best = max(range(len(tried)), key=means.__getitem__)
    write_settings(PRESETS / f"{dataset}.toml", candidate(tried[best][0], model)[0], note, layers[best])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+", help="datasets to choose for")
    parser.add_argument("--sources", default="photo,cora,citeseer", help="datasets whose tuned settings are tried")
    parser.add_argument("--models", default=MODELS, help="of each family, the model that is tried")
    parser.add_argument("--store", help="keep finished runs here")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time")
    given = parser.parse_args()
    for dataset in given.datasets:
        for model in given.models.split(","):
            choose(dataset, model, given.sources.split(","), given.store, given.workers)
