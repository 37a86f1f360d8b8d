"""What makes a split hard: how many test nodes have a training node of their own class within two hops.

    python results/search/reach.py photo

prints, for each split that BIMP has in results/homophilic, that share in per cent, BIMP's accuracy and the mean of all
models, and the correlations over splits.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dissensus import data

RUNS = Path(__file__).parents[1] / "homophilic" / "runs.csv"


def main(name: str) -> None:
    accuracy: dict[str, dict[int, float]] = defaultdict(dict)
    with RUNS.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["dataset"] == name and row["status"] == "done":
                accuracy[row["model"]][int(row["split"])] = float(row["test"])
    splits = sorted(accuracy["bimp"])
    models = [model for model in accuracy if all(split in accuracy[model] for split in splits)]
    dataset = data.load(name)
    y, (row, col) = dataset.graph.y.numpy(), dataset.graph.edge_index.numpy()
    adjacency = csr_array((np.ones(len(row)), (row, col)), shape=(len(y), len(y)))
    bimp = [accuracy["bimp"][split] for split in splits]
    everyone = [float(np.mean([accuracy[model][split] for model in models])) for split in splits]
    reached = [100.0 * reach(adjacency, dataset.split(split), y) for split in splits]
    print(f"split  reached  bimp   mean of {len(models)} models")
    for line in zip(splits, reached, bimp, everyone, strict=True):
        print("{:5d}  {:7.1f}  {:5.1f}  {:5.1f}".format(*line))
    for label, values in (("bimp", bimp), (f"mean of {len(models)} models", everyone)):
        print(f"correlation of reached and {label}: {np.corrcoef(reached, values)[0, 1]:.2f}")


def reach(adjacency: csr_array, split: Any, y: np.ndarray) -> float:
    """The share of test nodes with a training node of their class at one or two hops."""
    train, test = split.train_mask.numpy(), split.test_mask.numpy()
    labels = np.zeros((len(y), int(y.max()) + 1))
    labels[train, y[train]] = 1.0
    one = adjacency @ labels
    return float((one + adjacency @ one)[np.arange(len(y)), y][test].astype(bool).mean())


if __name__ == "__main__":
    main(sys.argv[1])
