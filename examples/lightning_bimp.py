"""BIMP trained by Lightning on the whole graph, with the epoch of the best validation accuracy kept and tested:

pip install lightning
python examples/lightning_bimp.py --dataset cora --epochs 100
"""

import argparse
import tempfile
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from dissensus import data
from dissensus.nn import BIMP


class NodeClassifier(lightning.LightningModule):
    """A model's loss and accuracy on the training, validation and test nodes of a graph."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.model = BIMP(in_channels, hidden_channels, out_channels, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.model(x, edge_index)

    def training_step(self, graph: Data) -> Tensor:
        return self.score(graph, "train")

    def validation_step(self, graph: Data) -> None:
        self.score(graph, "val")

    def test_step(self, graph: Data) -> None:
        self.score(graph, "test")

    def score(self, graph: Data, part: str) -> Tensor:
        mask = graph[f"{part}_mask"]
        scores, classes = self(graph.x, graph.edge_index)[mask], graph.y[mask]
        loss = cross_entropy(scores, classes)
        accuracy = (scores.argmax(1) == classes).float().mean()
        self.log_dict({f"{part}_loss": loss, f"{part}_accuracy": accuracy}, batch_size=len(classes), prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01, weight_decay=5e-3)


def train(dataset: str = "digits", epochs: int = 50, **trainer_options: Any) -> float:
    """The test accuracy at the epoch of the best validation accuracy."""
    lightning.seed_everything(0)
    loaded = data.load(dataset)
    graph = loaded.split(1)
    loader = DataLoader([graph])  # one batch: the whole graph
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=epochs,
            callbacks=[ModelCheckpoint(folder, monitor="val_accuracy", mode="max")],
            logger=False,
            log_every_n_steps=1,
            **trainer_options,
        )
        classifier = NodeClassifier(graph.num_features, 32, loaded.num_classes, method="euler", time=8.0)
        trainer.fit(classifier, loader, loader)
        (scores,) = trainer.test(dataloaders=loader, ckpt_path="best")
    return scores["test_accuracy"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--epochs", type=int, default=50)
    given = parser.parse_args()
    print(f"test accuracy: {train(given.dataset, given.epochs):.3f}")
