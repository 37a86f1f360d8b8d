"""Runs: load the dataset of a configuration, create its model and train it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch_geometric.data import Data

from dissensus import nn
from dissensus.data import Dataset
from dissensus.errors import InputError
from dissensus.train._config import Config
from dissensus.train._fit import Epoch, Result, WorkerGroup, seeded, train_loop


@dataclass(frozen=True, eq=False)
class Run(Result):
    """A :class:`Result` with its configuration and dataset.

    Attributes:
        config: the configuration, including defaults.
        dataset: the dataset that the model was trained on.
    """

    config: Config = field(kw_only=True)
    dataset: Dataset = field(kw_only=True, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain values, without the training curves and the parameters."""
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
        """The values of :meth:`as_dict` and the training curves, as saved in a store."""
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
    """Load the dataset of a configuration, create its model, and train it (see :func:`fit`).

    The seed of the configuration determines weights and dropout: the same configuration gives bitwise equal results on
    the same machine with the same number of threads.

    Args:
        config: the run.
        loader: batches of the same graph, as for :func:`fit`.
        progress: called after every epoch.
        workers: number of workers that train the model together (needs the extra ``ray``). Each worker has the whole
            graph in memory and trains on its own clusters, so ``train.clusters`` must be set, and the number of batches
            must be a multiple of the number of workers. An optimizer step is the one that a single worker would take on
            the batches of all workers. The first worker evaluates.
        threads: number of threads of each worker, which reserves as many cores (and a GPU if ``train.device`` is one).
        address: address of a running Ray cluster, on whose nodes the package is installed. By default, Ray is started
            on this machine.
    """
    if workers is not None:
        from dissensus.train._distributed import run_distributed

        if loader is not None:
            raise InputError("workers share clusters, not a loader's batches: leave out one of them")
        return run_distributed(config, workers=workers, threads=threads, address=address, progress=progress)
    return run_on(config, config.data.load(), WorkerGroup(), loader=loader, progress=progress)


def run_on(
    config: Config,
    dataset: Dataset,
    group: WorkerGroup,
    *,
    loader: Iterable[Data] | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> Run:
    """:func:`run` for one of several workers, on a loaded dataset."""
    graph = dataset.split(config.data.split)
    with seeded(config.train):
        model = config.model.create(graph.num_features, dataset.num_outputs, graph.num_nodes)
        result = train_loop(model, graph, config.train, group, loader=loader, progress=progress)
    return Run(**vars(result), config=config, dataset=dataset)


def execute(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Train one run. Grids of :mod:`dissensus.runs` call this function by its name ``"dissensus.train:execute"``.

    Args:
        config: the values that :meth:`Config.as_dict` returns.

    Returns:
        ``split, seed, metric, val, test, epoch, seconds`` and more (:meth:`Run.as_dict`), shares in per cent; and
        ``history``, the training curves ``validation`` and ``loss``, one value per epoch with five digits.
    """
    return run(Config.from_dict(config)).record()
