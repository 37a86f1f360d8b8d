"""Choose the rivals' settings on a large graph among those found on smaller ones, by validation accuracy.

python results/search/transfer.py computers     adds to src/dissensus/presets/tuned/computers.toml
"""

import argparse
from pathlib import Path
from statistics import mean

from dissensus import runs, train
from dissensus.train._presets import read_settings, write_settings

PRESETS = Path(__file__).parents[2] / "src/dissensus/presets/tuned"
MODELS = "gcn,gat,sage,grand-l,grand++-l,graphcon-tran,kuramoto"
SPLITS = (1, 2)


def candidate(source: str, model: str) -> tuple[list[str], dict]:
    """The models that share a model's tuned settings on a dataset, and these settings, with fewer epochs."""
    entries = read_settings(PRESETS / f"{source}.toml")
    entry = next(entry for entry in entries if model in entry["models"])
    layer = {"model": entry["model"], "train": {**entry["train"], "epochs": 80, "patience": 25}}
    if any(name.endswith("-rw") for name in entry["models"]):
        layer["model"].setdefault("rewire_neighbors", 16)
    return entry["models"], layer


def config(dataset: str, model: str, layer: dict, split: int) -> dict:
    flags = {f"{section}.{key}": value for section, part in layer.items() for key, value in part.items()}
    return train.resolve(dataset, model, preset="none", flags={**flags, "data.split": split}).as_dict()


def choose(dataset: str, model: str, sources: list[str], store: str | None, workers: int) -> None:
    layers = {source: candidate(source, model)[1] for source in sources}
    tried = [config(dataset, model, layers[source], split) for source in sources for split in SPLITS]
    done = runs.execute(tried, train.TARGET, store=store, executor="processes", workers=workers, threads=1)
    vals = [record.result["val"] if record.result else 0.0 for record in done.records]
    means = {source: mean(vals[len(SPLITS) * i :][: len(SPLITS)]) for i, source in enumerate(sources)}
    best = max(means, key=means.get)
    print(f"{dataset} {model}:", ", ".join(f"{source} {value:.2f}" for source, value in means.items()), flush=True)
    note = f"mean validation accuracy {means[best]:.2f} over splits 1-2 with {best}'s, the best of {', '.join(sources)}"
    write_settings(PRESETS / f"{dataset}.toml", candidate(best, model)[0], note, layers[best])


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
