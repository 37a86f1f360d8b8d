"""Judge the best settings of a search again, by validation accuracy under training seeds that the search did not use.

A search tries many settings once each, so that the best of them is partly luck; on the WebKB graphs several tie. Those
that did best on all its splits are run under more seeds here, and the best under these seeds alone becomes the preset.

python results/search/again.py wisconsin --stores results/search/stores/wisconsin-tuned-bimp.db
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

from dissensus import runs, train
from dissensus.train.presets import read_settings, write_settings

PRESETS = Path(__file__).parents[2] / "src/dissensus/presets"


def found(stores: list[str], keep: int) -> list[tuple[float, dict]]:
    """The settings with the best mean validation accuracy of those that ran on every split, best first."""
    vals: dict[str, dict[int, float]] = defaultdict(dict)
    for store in stores:
        for record in runs.Store(store).query():
            if record.result:
                config = json.loads(json.dumps(record.config))
                split = config["data"].pop("split")
                vals[json.dumps(config, sort_keys=True)][split] = record.result["val"]
    full = max(map(len, vals.values()))
    judged = [(mean(by_split.values()), config) for config, by_split in vals.items() if len(by_split) == full]
    return [(val, json.loads(config)) for val, config in sorted(judged, reverse=True)[:keep]]


def judge(stores: list[str], seeds: list[int], keep: int, workers: int, store: str | None) -> tuple[str, dict]:
    """The settings that do best under the seeds, and a sentence about them."""
    candidates = found(stores, keep)
    splits = sorted({record.config["data"]["split"] for path in stores for record in runs.Store(path).query()})
    grid = [
        {**config, "data": {**config["data"], "split": split}, "train": {**config["train"], "seed": seed}}
        for _, config in candidates
        for seed in seeds
        for split in splits
    ]
    done = runs.execute(grid, train.TARGET, store=store, executor="processes", workers=workers, threads=1)
    vals = [record.result["val"] if record.result else 0.0 for record in done.records]
    share = len(seeds) * len(splits)
    means = [mean(vals[share * i :][:share]) for i in range(len(candidates))]
    for after, (before, config) in zip(means, candidates, strict=True):
        print(f"{before:.2f} in the search, {after:.2f} again:", config["model"], config["train"], flush=True)
    best = max(range(len(means)), key=means.__getitem__)
    note = (
        f"mean validation accuracy {means[best]:.2f} over splits {splits[0]}-{splits[-1]} "
        f"and seeds {seeds[0]}-{seeds[-1]}, the best of the {len(candidates)} that led a search"
    )
    return note, candidates[best][1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="dataset of the searches")
    parser.add_argument("--stores", nargs="+", required=True, help="what the searches wrote, all for one model")
    parser.add_argument("--preset", default="tuned", help="preset to write to")
    parser.add_argument("--keep", type=int, default=6, help="settings to judge again")
    parser.add_argument("--seeds", type=int, default=5, help="training seeds, from 11 on: the tables use 1 to 10")
    parser.add_argument("--store", help="keep finished runs here")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time")
    given = parser.parse_args()
    seeds = list(range(11, 11 + given.seeds))
    note, config = judge(given.stores, seeds, given.keep, given.workers, given.store)
    path = PRESETS / given.preset / f"{given.dataset}.toml"
    name = config["model"].pop("name")
    models = next(entry["models"] for entry in read_settings(path) if name in entry["models"])
    optional = {"device", "dtype", "seed", "select_time"}
    training = {key: value for key, value in config["train"].items() if key not in optional}
    write_settings(path, models, note, {"model": config["model"], "train": training})
    print(f"{given.dataset} {name}: {note}")
