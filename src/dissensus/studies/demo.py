"""The demonstration: a graph convolutional network and BIMP, deeper and deeper, on an embedded graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from dissensus import measure
from dissensus.train import Config, Epoch, Result, fit

DEPTHS = (2, 8, 32, 128)
MODELS = ("gcn", "bimp")
DATASET = "digits"

_HIDDEN = 32
_DROPOUT = {"dropout": 0.2, "input_dropout": 0.0}


@dataclass(frozen=True)
class Outcome:
    """One trained model.

    Attributes:
        model: its name.
        depth: layers, or Euler steps of size one.
        accuracy: on the test nodes, in per cent, at the epoch of the best validation accuracy.
        energy: Dirichlet energy of the last hidden state.
        rank: effective rank of the last hidden state, out of 32 channels.
        seconds: what training and evaluation took.
        layers, energies, ranks: the same measures along the layers of this one model.
    """

    model: str
    depth: int
    accuracy: float
    energy: float
    rank: float
    seconds: float
    layers: tuple[int, ...]
    energies: tuple[float, ...]
    ranks: tuple[float, ...]


def config(model: str, depth: int, epochs: int) -> Config:
    """The run of one model at one depth: 20 labels a class, the same width, dropout and optimiser for both."""
    options = {"num_layers": depth} if model == "gcn" else {"time": float(depth), "method": "euler", "step_size": 1.0}
    return Config.from_dict(
        {
            "data": {"name": DATASET, "split": 1},
            "model": {"name": model, "hidden_channels": _HIDDEN, **_DROPOUT, **options},
            "train": {"epochs": epochs, "optimizer": "adam", "lr": 0.02, "weight_decay": 5e-4, "seed": 1},
        }
    )


def run(
    *,
    depths: tuple[int, ...] = DEPTHS,
    epochs: int = 40,
    progress: Callable[[str, int, Epoch], None] = lambda model, depth, epoch: None,
) -> Iterator[Outcome]:
    """Train both models at every depth, shallow ones first, and measure what they learned."""
    for depth in depths:
        for model in MODELS:
            yield _outcome(model, depth, fit(config(model, depth, epochs), progress=_bound(progress, model, depth)))


def _bound(progress: Callable[[str, int, Epoch], None], model: str, depth: int) -> Callable[[Epoch], None]:
    return lambda epoch: progress(model, depth, epoch)


def _outcome(model: str, depth: int, result: Result) -> Outcome:
    graph = result.dataset.graph
    # The scores of a network of L layers are its L-th state; its hidden states end one before.
    last = depth - 1 if model == "gcn" else depth
    layers = tuple(sorted({*(2**i for i in range(8) if 2**i < last), last}))
    with torch.no_grad():
        states = result.model.trajectory(graph.x, graph.edge_index, layers)
    energies = tuple(measure.dirichlet_energy(states, graph.edge_index).tolist())
    ranks = tuple(measure.effective_rank(states).tolist())
    return Outcome(model, depth, result.test, energies[-1], ranks[-1], result.seconds, layers, energies, ranks)
