"""The same training by two workers, and by one on both workers' batches at once; prints the losses of both.

A program of its own, because Ray decides about the interface when it is imported.
"""

import json

from torch_geometric.data import Batch

from dissensus import data
from dissensus.train import resolve, run


class Pairs:
    """Two batches of clusters at a time, as one of two graphs."""

    def __init__(self, clusters: data.Clusters) -> None:
        self.clusters = clusters

    def __iter__(self):
        batches = iter(self.clusters)
        return (Batch.from_data_list([one, other]) for one, other in zip(batches, batches, strict=True))


def main() -> None:
    """No arguments."""
    # Forty training nodes in 24 clusters: their numbers differ, and some clusters have none.
    options = {"data.nodes": 400, "data.classes": 2, "data.noise": 0.5, "train.epochs": 3, "train.lr": 0.02}
    still = {"model.dropout": 0.0, "model.input_dropout": 0.0, "model.method": "euler", "model.hidden_channels": 8}
    flags, shared = options | still, {"train.clusters": 24}
    epochs = []
    two = run(resolve("csbm", preset="none", flags=flags | shared), workers=2, progress=epochs.append)
    graph = two.dataset.split(1)
    clusters = data.clusters(graph, 24, seed=1)
    one = run(resolve("csbm", preset="none", flags=flags), loader=Pairs(clusters))
    difference = max(
        float((a - b).abs().max()) for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True)
    )
    answer = {
        "one": [epoch.loss for epoch in one.history],
        "two": [epoch.loss for epoch in two.history],
        "seen": [epoch.loss for epoch in epochs],
        "val": [one.val, two.val],
        "parameters": difference,
        "counts": clusters.part[graph.train_mask].bincount(minlength=24).tolist(),
        "training": two.model.training,
        "clusters": two.config.train.clusters,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
