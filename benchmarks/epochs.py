"""Training side by side: graphs, models with the paper's settings, epochs with the clock on."""

import time
from contextlib import nullcontext
from statistics import median
from typing import Any

import torch
from torch.nn import functional as F
from torch_geometric.data import Data

from common import SIZES, say
from dissensus import data, nn
from dissensus.errors import DissensusError
from dissensus.runtime import training as training_settings
from dissensus.train import resolve
from plain import Plain, plain

_OPTIMIZERS = {"adam": torch.optim.Adam, "adamax": torch.optim.Adamax, "rmsprop": torch.optim.RMSprop}
# How much smaller graphs are in quick mode.
_QUICK = 32


def graph(name: str, *, quick: bool, real: bool = True) -> tuple[Data, str]:
    """A split of the dataset and what it is; generated with the dataset's sizes where it is not at hand or not asked
    for, and a fraction of them in quick mode."""
    if real and not quick:
        try:
            return data.load(name).split(1), name
        except DissensusError:
            say(f"{name} is not at hand: a graph of its size is generated")
    nodes, edges, features, classes = SIZES[name]
    shrink = _QUICK if quick else 1
    nodes, features = max(nodes // shrink, 128), max(features // shrink, 16)
    degree = 2 * edges / SIZES[name][0] / (4 if quick and name == "computers" else 1)
    made = data.csbm(nodes=nodes, classes=classes, features=features, degree=degree, seed=0).split(1)
    if name in ("cora", "citeseer"):  # words: one per cent of the features, most of them tied to the class
        generator = torch.Generator().manual_seed(0)
        made.x = (made.x > made.x.quantile(0.99, dim=1, keepdim=True)).float()
        made.x[torch.arange(nodes), torch.randint(features, (nodes,), generator=generator)] = 1.0
    return made, f"generated, {'a fraction of' if quick else 'as large as'} {name.capitalize()}"


def create(dataset: str, name: str, graph: Data, **changes: Any) -> tuple[nn.ContinuousModel, Any]:
    """Our model with the paper's settings for a dataset, seeded, and its training settings."""
    config = resolve(dataset, name, preset="paper")
    info = nn.info(name)
    options = info.complete({**config.model.options, **changes}, num_nodes=graph.num_nodes)
    torch.manual_seed(0)
    model = info.create(graph.num_features, config.model.hidden_channels, int(graph.y.max()) + 1, **options)
    model.prepare(graph)
    return model, config.train


class Run:
    """Training of one model, an epoch at a time, with the clock on."""

    def __init__(self, model: torch.nn.Module, graph: Data, settings: Any) -> None:
        self.model, self.graph = model, graph
        self.optimizer = _OPTIMIZERS[settings.optimizer](
            model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
        )
        self.seconds: list[float] = []
        self.losses: list[float] = []
        self.scores: list[tuple[float, float]] = []

    def epoch(self) -> None:
        """One epoch: forward, backward, step, and an evaluation on validation and test nodes."""
        torch.manual_seed(len(self.losses))
        model, graph = self.model, self.graph
        begun = time.perf_counter()
        loss = self.step()
        model.eval()
        with torch.no_grad():
            right = model(graph.x, graph.edge_index).argmax(1) == graph.y
            score = tuple(100.0 * float(right[mask].float().mean()) for mask in (graph.val_mask, graph.test_mask))
        self.seconds.append(time.perf_counter() - begun)
        self.losses.append(loss)
        self.scores.append(score)

    def step(self) -> float:
        """Forward, backward, step; the loss."""
        self.model.train()
        self.optimizer.zero_grad()
        scores = self.model(self.graph.x, self.graph.edge_index)
        loss = F.cross_entropy(scores[self.graph.train_mask], self.graph.y[self.graph.train_mask])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @property
    def test(self) -> float:
        """The test accuracy of the best validation epoch."""
        return max(self.scores)[1]

    def ms(self) -> float:
        """Milliseconds an epoch, the median; the first warms up where there are more."""
        return 1e3 * median(self.seconds[1:] or self.seconds)


# Epochs in a row of one version: what the other leaves behind, in caches and freed memory, is no cost of either.
_BLOCK = 10


def alone(model: Any, graph: Data, settings: Any, epochs: int, *, package_settings: bool = False) -> Run:
    """Our version trained by itself, as in a user's loop or with the process settings of :func:`train.fit`."""
    run = Run(model, graph, settings)
    with training_settings() if package_settings else nullcontext():
        for _ in range(epochs):
            run.epoch()
    return run


def race(ours: Any, graph: Data, settings: Any, epochs: int, plain_epochs: int) -> tuple[Run, Run]:
    """Both versions trained from the same parameters in a plain PyTorch loop, some epochs of each in turn."""
    runs = Run(ours, graph, settings), Run(plain(ours), graph, settings)
    counts = epochs, plain_epochs
    while any(len(run.losses) < count for run, count in zip(runs, counts, strict=True)):
        for run, count in zip(runs, counts, strict=True):
            for _ in range(min(_BLOCK, count - len(run.losses))):
                run.epoch()
        if epochs >= 25:
            done, other = (len(run.losses) for run in runs)
            say(f"  epochs {done} and {other}: ours {runs[0].ms():.1f} ms, plain {runs[1].ms():.1f} ms")
    return runs


def evaluations(run: Run) -> float:
    """Evaluations of the field in a forward pass, as trained so far."""
    model = run.model
    if isinstance(model, Plain):
        before = model.evaluations
        with torch.no_grad():
            model(run.graph.x, run.graph.edge_index)
        return model.evaluations - before
    with torch.no_grad():
        return model.integrate(run.graph.x, run.graph.edge_index).stats.evaluations
