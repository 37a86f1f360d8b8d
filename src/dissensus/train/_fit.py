"""One training loop for all models."""

import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from json import dumps, loads
from math import isfinite
from typing import Any

import torch

from dissensus import data, nn
from dissensus.data import Dataset
from dissensus.errors import DissensusError, InputError
from dissensus.train._config import Config, DataConfig, ModelConfig
from dissensus.train._evaluate import Score, Split, evaluate

_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "rmsprop": torch.optim.RMSprop,
}


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


def fit(config: Config, *, progress: Callable[[Epoch], None] | None = None) -> Result:
    """Train a model on one split, full batch, with cross entropy on the training nodes, and evaluate every epoch.

    What counts is the epoch of the best validation accuracy; of equal ones that of the lowest validation loss, then the
    earliest. With ``train.select_time`` each epoch is judged at every step of the solver up to 3T, as the GRAND family
    does, and what counts is the best pair of epoch and time. The same configuration gives the same bits on the same
    machine with the same number of threads; the caller's random state is left as it was.

    Args:
        config: the run.
        progress: called after every epoch.
    """
    dataset = load(config.data)
    settings, dtype = config.train, getattr(torch, config.train.dtype)
    device = _device(settings.device)
    graph = dataset.split(config.data.split)
    begun = clock.perf_counter()
    with _repeatable(settings.seed, device):
        model = create(config.model, graph.num_features, dataset.num_classes, graph.num_nodes).to(device, dtype)
        split = Split.of(graph, device, dtype)
        _give_sources(model, graph.train_mask.to(device))
        optimizer = _OPTIMIZERS[settings.optimizer](
            model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
        )
        best: Score | None = None
        best_epoch, state, history = 0, {}, []
        for number in range(1, settings.epochs + 1):
            loss = _step(model, split, optimizer)
            score = evaluate(model, split, select_time=settings.select_time)
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
    """Refuse what :class:`Config` cannot judge without torch: the model's options and the device."""
    _device(config.train.device)
    with torch.random.fork_rng(devices=[]):
        try:
            create(config.model, 1, 2, 1)
        except TypeError as error:
            raise InputError(f"an option of {config.model.name} is of the wrong type: {error}") from error


def _step(model: nn.Model, split: Split, optimizer: torch.optim.Optimizer) -> float:
    model.train()
    optimizer.zero_grad()
    loss = split.loss(model(split.x, split.edge_index), split.train)
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def _check_finite(epoch: int, loss: float, val_loss: float, config: Config) -> None:
    if isfinite(loss) and isfinite(val_loss):
        return
    which = "training" if not isfinite(loss) else "validation"
    raise TrainingError(
        f"the {which} loss is {loss if which == 'training' else val_loss} in epoch {epoch}: lower train.lr (it is "
        f"{config.train.lr:g}), shorten the time or the step of the solver, or set train.dtype=float64"
    )


def _give_sources(model: nn.Model, train_mask: torch.Tensor) -> None:
    """GRAND++ draws its source from the training nodes, which only the split knows."""
    set_sources = getattr(model, "set_sources", None)
    if set_sources is not None:
        set_sources(train_mask)


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
    filled = memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else None):
        torch.manual_seed(seed)
        # Some sparse kernels of CUDA have no deterministic form; there it is a warning.
        torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
        # The solver writes every buffer before it reads it; filling each first costs time.
        memory.fill_uninitialized_memory = False
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            memory.fill_uninitialized_memory = filled
