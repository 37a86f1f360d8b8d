"""One training loop for all models."""

import ctypes
import sys
import time as clock
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from json import dumps, loads
from math import isfinite
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from dissensus import data, nn
from dissensus.data import Clusters, Dataset
from dissensus.data._clusters import import_metis
from dissensus.errors import DissensusError, InputError
from dissensus.graph import clear_cache
from dissensus.train._batch import Batch, Split, check_batch, check_loader, clusters_of
from dissensus.train._config import Config, DataConfig, ModelConfig
from dissensus.train._consistency import Consistency
from dissensus.train._evaluate import Score, evaluate

_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "rmsprop": torch.optim.RMSprop,
}


_Made = TypeVar("_Made")


class TrainingError(DissensusError, RuntimeError):
    """The training diverged; the message says what to change."""


@dataclass(frozen=True)
class Epoch:
    """One epoch: its number from 1, the training loss, validation accuracy in per cent and validation loss."""

    number: int
    loss: float
    val: float
    val_loss: float


@dataclass(frozen=True, eq=False)
class Result:
    """What a run gave.

    Attributes:
        config: the resolved configuration.
        val: the best validation accuracy, in per cent.
        test: the test accuracy of the same epoch (and time).
        epoch: that epoch, counted from 1.
        time: that solver time; None unless ``train.select_time`` is on.
        seconds: what training and evaluation took.
        history: one :class:`Epoch` for each epoch that was run.
        model: the model as it was at that epoch, in evaluation mode; its ``time`` is the selected one.
        dataset: what it was trained on.
    """

    config: Config
    val: float
    test: float
    epoch: int
    time: float | None
    seconds: float
    history: tuple[Epoch, ...] = field(repr=False)
    model: nn.Model = field(repr=False)
    dataset: Dataset = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The result in plain values, without history and parameters."""
        return {
            "dataset": self.dataset.name,
            "model": self.config.model.name,
            "split": self.config.data.split,
            "seed": self.config.train.seed,
            "val": self.val,
            "test": self.test,
            "epoch": self.epoch,
            "epochs": len(self.history),
            "time": self.time,
            "seconds": self.seconds,
            "selection": "epoch and time" if self.config.train.select_time else "epoch",
            "protocol": self.dataset.protocol,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "options": self.model.config,
        }


class Team:
    """Those who train one model together, each on batches of its own: here one alone."""

    rank = 0
    size = 1

    def join(self, model: nn.Model) -> Callable[..., Tensor]:
        """What to call in training in place of the model, so that the gradients become the mean over the team's."""
        return model

    def total(self, value: float) -> float:
        """The sum of everyone's values."""
        return value

    def first(self, make: Callable[[], _Made]) -> _Made:
        """What the first of the team makes, for everyone."""
        return make()


def fit(
    config: Config, *, loader: Iterable[Data] | None = None, progress: Callable[[Epoch], None] | None = None
) -> Result:
    """Train a model on one split with cross entropy on the training nodes, and evaluate every epoch.

    With ``train.consistency`` the loss has a second part, over all nodes and without their labels: agree with the
    sharpened prediction of the epoch before.

    What counts is the epoch of the best validation accuracy; of equal ones that of the lowest validation loss, then the
    earliest. With ``train.select_time`` each epoch is judged at every step of the solver up to 3T, as the GRAND family
    does, and what counts is the best pair of epoch and time. The same configuration gives the same bits on the same
    machine with the same number of threads; the caller's random state is left as it was. While it trains, numbers too
    small to be normal are zero. On Linux the process keeps freed memory from then on (on batches, returns it at once),
    as mapping it again takes time.

    An epoch is one step of the optimizer on the whole graph; with ``train.clusters`` one step for each group of
    clusters (:func:`dissensus.data.clusters`), and with a loader one for each of its batches. Evaluation is on the
    whole graph, without gradients, which takes the memory of some states: scored cluster by cluster a graph would be
    another one, without the edges between clusters, and often an easier one.

    Args:
        config: the run.
        loader: batches of the same graph, passed over once an epoch: PyG's ``NeighborLoader``, or anything that yields
            PyG ``Data`` with ``x``, ``edge_index``, ``y`` and ``train_mask``, and ``edge_weight`` where edges have
            weights. With ``batch_size`` in a batch, the loss is that of its first so many nodes. Such a run can be
            repeated only with the same loader.
        progress: called after every epoch.
    """
    return train(config, load(config.data), Team(), loader=loader, progress=progress)


def train(
    config: Config,
    dataset: Dataset,
    team: Team,
    *,
    loader: Iterable[Data] | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> Result:
    """:func:`fit` by one of a team, on a dataset at hand."""
    settings, dtype = config.train, getattr(torch, config.train.dtype)
    device = _device(settings.device)
    _check_pieces(config, loader)
    graph = dataset.split(config.data.split)
    begun = clock.perf_counter()
    with _repeatable(settings.seed, device):
        model = create(config.model, graph.num_features, dataset.num_classes, graph.num_nodes).to(device, dtype)
        split = Split.of(graph, device, dtype)
        split.prepare(model)
        clusters = clusters_of(settings, graph, team.rank, team.size)
        optimizer = _OPTIMIZERS[settings.optimizer](
            model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
        )
        consistency = None if settings.consistency is None else Consistency(settings.consistency)
        see = None if consistency is None else consistency.see
        forward = team.join(model)
        if clusters is None and loader is None:
            keep_freed_memory()
        else:
            _return_freed_memory()
        if team.rank:
            # The same weights for everyone, but not the same dropout.
            torch.manual_seed(settings.seed + 1_000_003 * team.rank)
        best: Score | None = None
        best_epoch, state, history = 0, {}, []
        for number in range(1, settings.epochs + 1):
            loss = _epoch(model, forward, _batches(split, clusters, loader), optimizer, team, consistency)
            score = team.first(lambda: evaluate(model, split, select_time=settings.select_time, see=see))
            _check_finite(number, loss, score.val_loss, config)
            history.append(Epoch(number, loss, score.val, score.val_loss))
            if progress is not None:
                progress(history[-1])
            if score.beats(best):
                best, best_epoch = score, number
                state = {key: value.clone() for key, value in model.state_dict().items()}
            elif settings.patience and number - best_epoch >= settings.patience:
                break
    assert best is not None
    model.load_state_dict(state)
    if best.time is not None:
        _end_at(model, best.time)
    return Result(
        config=config,
        val=best.val,
        test=best.test,
        epoch=best_epoch,
        time=best.time,
        seconds=clock.perf_counter() - begun,
        history=tuple(history),
        model=model.eval(),
        dataset=dataset,
    )


def load(config: DataConfig) -> Dataset:
    """The dataset of a configuration; the last ones stay in memory, so that a grid of runs loads each once."""
    # A file may change at any time: it is remembered only by its fingerprint.
    kept = config.fingerprint is not None or config.name in data.names()
    dataset = (_load if kept else _load.__wrapped__)(
        config.name, config.largest_component, config.undirected, dumps(dict(config.options)), config.fingerprint
    )
    if config.fingerprint not in (None, dataset.fingerprint):
        raise InputError(
            f"{config.name} has changed since this configuration was made (its fingerprint is {dataset.fingerprint}, "
            f"not {config.fingerprint}): restore the file, or start from the file as it is"
        )
    return dataset


@lru_cache(maxsize=2)
def _load(
    name: str, largest_component: bool, undirected: bool | None, options: str, fingerprint: str | None
) -> Dataset:
    return data.load(name, largest_component=largest_component, undirected=undirected, **loads(options))


def create(config: ModelConfig, in_channels: int, out_channels: int, num_nodes: int) -> nn.Model:
    """The model of a configuration for a graph of these sizes."""
    options = dict(config.options)
    if options.get("option_attention") == "node":
        options.setdefault("num_nodes", num_nodes)
    return nn.create(
        config.name,
        in_channels=in_channels,
        hidden_channels=config.hidden_channels,
        out_channels=out_channels,
        **options,
    )


def check(config: Config) -> None:
    """Refuse what :class:`Config` cannot judge by itself: the model's options, the device, a missing partitioner."""
    _device(config.train.device)
    if config.train.partitioner == "metis":
        import_metis()
    with torch.random.fork_rng(devices=[]):
        try:
            create(config.model, 1, 2, 1)
        except TypeError as error:
            raise InputError(f"an option of {config.model.name} is of the wrong type: {error}") from error


def _check_pieces(config: Config, loader: Iterable[Data] | None) -> None:
    if loader is None:
        return
    check_loader(loader)
    if config.train.consistency is not None:
        raise InputError("train.consistency needs the whole graph in every step: leave it out, or the loader")
    if config.train.clusters is not None:
        raise InputError("a loader and train.clusters are two ways to make batches: give one of them")
    if config.model.options.get("option_attention") == "node":
        raise InputError(
            "model.option_attention=node is tied to the nodes of the whole graph, so it cannot train on a loader's "
            "batches: use gram or identity"
        )


def _batches(split: Split, clusters: Clusters | None, loader: Iterable[Data] | None) -> Iterator[Batch]:
    """The batches of one epoch."""
    pieces = clusters if loader is None else (check_batch(batch, split.edge_weight is not None) for batch in loader)
    if pieces is None:
        yield split
        return
    clear_cache()  # of the whole graph, which the evaluation has looked at
    for piece in pieces:
        yield Batch.of(piece, split.x.device, split.x.dtype)
        clear_cache()  # its graph hardly comes again


def keep_freed_memory() -> None:
    """Let glibc keep what an epoch frees for the next one: to map it again costs several per cent of it."""
    _set_glibc(trim=2**31 - 1, mmap=2**25)


def _return_freed_memory() -> None:
    """Let glibc return large blocks as soon as they are freed: batches differ in size, so what it keeps adds up."""
    _set_glibc(trim=2**17, mmap=2**20)


def _set_glibc(*, trim: int, mmap: int) -> None:
    """How much memory may lie free at the end of the heap, and from which size on a block is mapped by itself."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(-1, trim)
        mallopt(-3, mmap)


def _epoch(
    model: nn.Model,
    forward: Callable[..., Tensor],
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    team: Team,
    consistency: Consistency | None,
) -> float:
    """One step for each batch of every member; the mean loss of the training nodes, as each was met."""
    model.train()
    loss_sum, met = 0.0, 0.0
    for batch in batches:
        own = len(batch.train)
        nodes = team.total(own)
        if nodes == 0:
            continue
        met += nodes
        optimizer.zero_grad()
        scores = batch.scores(model, forward)
        if own:
            # The mean over the team of these is the mean over the nodes of all.
            loss = batch.loss(scores, batch.train) * (own * team.size / nodes)
        else:
            loss = 0.0 * scores.sum()
        if consistency is not None:
            loss = loss + consistency.loss(scores)
        loss.backward()
        optimizer.step()
        loss_sum += float(loss.detach()) * nodes / team.size
        del scores, loss  # with what the solver kept for them, before the next batch's are made
    if met == 0:
        raise InputError("no batch of the epoch has a training node: let the loader yield the nodes of train_mask")
    return team.total(loss_sum) / met


def _check_finite(epoch: int, loss: float, val_loss: float, config: Config) -> None:
    if isfinite(loss) and isfinite(val_loss):
        return
    which = "training" if not isfinite(loss) else "validation"
    raise TrainingError(
        f"the {which} loss is {loss if which == 'training' else val_loss} in epoch {epoch}: lower train.lr (it is "
        f"{config.train.lr:g}), shorten the time or the step of the solver, or set train.dtype=float64"
    )


def _end_at(model: Any, time: float) -> None:
    model.time = time
    model.config["time"] = time


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    # torch raises RuntimeError, AssertionError or NotImplementedError, as the backend pleases.
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"train.device {name!r} cannot be used here ({reason}): use cpu") from error
    return device


@contextmanager
def _repeatable(seed: int, device: torch.device) -> Iterator[None]:
    """Seeded, deterministic, and everything as it was afterwards."""
    memory: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filled, flushed = memory.fill_uninitialized_memory, _flushes()
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else None):
        torch.manual_seed(seed)
        # Some sparse kernels of CUDA have no deterministic form; there it is a warning.
        torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
        # The solver writes every buffer before it reads it; filling each first costs time.
        memory.fill_uninitialized_memory = False
        # States and gradients of a deep network that has collapsed are so small that a processor takes several times as
        # long for each product with them.
        torch.set_flush_denormal(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            memory.fill_uninitialized_memory = filled
            torch.set_flush_denormal(flushed)


def _flushes() -> bool:
    """Whether this thread takes numbers for zero that are too small to be normal."""
    return not bool(torch.tensor(1e-40) * 1.0)
