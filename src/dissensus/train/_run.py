"""A run: everything that its configuration names is loaded and made here, then trained by :func:`fit`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch_geometric.data import Data

from dissensus import nn
from dissensus.data import Dataset
from dissensus.errors import InputError
from dissensus.train._config import Config
from dissensus.train._fit import Epoch, Result, Team, loop, seeded


@dataclass(frozen=True, eq=False)
class Run(Result):
    """A :class:`Result`, with what it is of.

    Attributes:
        config: the resolved configuration.
        dataset: what it was trained on.
    """

    config: Config = field(kw_only=True)
    dataset: Dataset = field(kw_only=True, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The result in plain values, without history and parameters."""
        model = self.config.model
        return {
            "dataset": self.dataset.name,
            "model": model.name,
            "split": self.config.data.split,
            "seed": self.config.train.seed,
            "metric": self.metric,
            "val": self.val,
            "test": self.test,
            "epoch": self.epoch,
            "epochs": len(self.history),
            "time": self.time,
            "seconds": self.seconds,
            "selection": "epoch and time" if self.config.train.select_time else "epoch",
            "protocol": self.dataset.protocol,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "options": self.model.config if isinstance(self.model, nn.Model) else dict(model.options),
        }

    def record(self) -> dict[str, Any]:
        """:meth:`as_dict` and the training curves, as a store keeps them."""
        curves = {"validation": [epoch.val for epoch in self.history], "loss": [epoch.loss for epoch in self.history]}
        short = {name: [float(f"{value:.5g}") for value in values] for name, values in curves.items()}
        return self.as_dict() | {"history": short}


def run(
    config: Config,
    *,
    loader: Iterable[Data] | None = None,
    progress: Callable[[Epoch], None] | None = None,
    workers: int | None = None,
    threads: int = 1,
    address: str | None = None,
) -> Run:
    """Load the data of a configuration, make its model, and train it (see :func:`fit`).

    The seed of the configuration is that of the weights and of dropout: the same configuration gives the same bits on
    the same machine with the same number of threads.

    Args:
        config: the run.
        loader: batches of the same graph, as for :func:`fit`.
        progress: called after every epoch.
        workers: number of workers that train the model together (needs the extra ``ray``). Each holds the whole graph
            and steps on clusters of its own: ``train.clusters`` is set, and its batches can be shared evenly. A step of
            the optimizer is the one that a single worker would make on the batches of all; the first worker evaluates.
        threads: of one worker, which asks Ray for as many cores (and for a GPU where ``train.device`` is one).
        address: of a running Ray cluster, on whose nodes the package is installed; without, Ray starts here.
    """
    if workers is not None:
        from dissensus.train._distributed import run_distributed

        if loader is not None:
            raise InputError("workers share clusters, not a loader's batches: leave out one of them")
        return run_distributed(config, workers=workers, threads=threads, address=address, progress=progress)
    return run_on(config, config.data.load(), Team(), loader=loader, progress=progress)


def run_on(
    config: Config,
    dataset: Dataset,
    team: Team,
    *,
    loader: Iterable[Data] | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> Run:
    """:func:`run` by one of a team, on a dataset at hand."""
    graph = dataset.split(config.data.split)
    with seeded(config.train):
        model = config.model.create(graph.num_features, dataset.num_outputs, graph.num_nodes)
        result = loop(model, graph, config.train, team, loader=loader, progress=progress)
    return Run(**vars(result), config=config, dataset=dataset)


def execute(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Train one run; ``"dissensus.train:execute"`` is the target of a grid of them in :mod:`dissensus.runs`.

    Args:
        config: what :meth:`Config.as_dict` gives.

    Returns:
        ``split, seed, metric, val, test, epoch, seconds`` and more (:meth:`Run.as_dict`), shares in per cent; and
        ``history``, the training curves ``validation`` and ``loss``, one value an epoch to five digits.
    """
    return run(Config.from_dict(config)).record()
