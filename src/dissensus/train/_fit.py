"""One training loop for any module on any graph."""

import time as clock
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from dissensus import nn, runtime
from dissensus.data import Clusters
from dissensus.errors import InputError, TrainingError
from dissensus.train._batch import Batch, WholeGraph, check_batch, check_graph, check_loader, clusters_of
from dissensus.train._config import TrainConfig
from dissensus.train._consistency import Consistency
from dissensus.train._evaluate import Score, evaluate
from dissensus.train._metrics import metric_of

_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "rmsprop": torch.optim.RMSprop,
}

_T = TypeVar("_T")


@dataclass(frozen=True)
class Epoch:
    """One epoch: its number from 1, the training loss, the validation metric and the validation loss."""

    number: int
    loss: float
    val: float
    val_loss: float


@dataclass(frozen=True, eq=False)
class Result:
    """The result of training.

    Attributes:
        val: the metric on the validation targets at the best epoch; in per cent unless it is an error.
        test: the metric on the test targets at the same epoch (and solver time).
        metric: the name of the metric, such as ``accuracy``.
        epoch: the best epoch, counted from 1.
        time: the selected solver time; None unless ``select_time`` is on.
        seconds: duration of training and evaluation.
        history: one entry per epoch, with ``number``, ``loss``, ``val`` and ``val_loss``.
        model: the module as it was at the best epoch, in evaluation mode. With ``select_time`` its ``time`` is the
            selected one.
    """

    val: float
    test: float
    metric: str
    epoch: int
    time: float | None
    seconds: float
    history: tuple[Epoch, ...] = field(repr=False)
    model: Any = field(repr=False)


class WorkerGroup:
    """The workers that train a model together, each on its own batches. This base class is a single worker."""

    rank = 0
    size = 1

    def wrap(self, model: torch.nn.Module) -> Callable[..., Tensor]:
        """The function to call in training instead of the model; it averages gradients over the workers."""
        return model

    def sum(self, value: float) -> float:
        """The sum of a value over the workers."""
        return value

    def broadcast(self, function: Callable[[], _T]) -> _T:
        """Call the function on the first worker, and return its result on all workers."""
        return function()


def fit(
    model: torch.nn.Module,
    data: Data,
    config: TrainConfig | None = None,
    *,
    loader: Iterable[Data] | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> Result:
    """Train a module on one split of a graph, evaluate it after every epoch, and return it as it was at its best epoch.

    **Loss.** For classes, the loss is the mean cross-entropy over the training targets. For numbers (floating-point
    ``y``), it is the mean absolute error, or the mean squared error if the metric is ``rmse``. ``consistency`` adds a
    term over all nodes, without labels, that makes predictions agree with the sharpened ones of the previous epoch.
    ``node_dropout`` sets all features of a random share of the nodes to zero in every step, but keeps their labels, so
    that the model learns to predict nodes from their neighbours.

    **Selection.** The best epoch is the one with the best validation metric. Ties are broken by the lower validation
    loss, then by the earlier epoch. With ``select_time``, every epoch is evaluated at all steps of the solver up to
    time 3T, as in the GRAND family, and the best pair of epoch and time is selected. A module of yours can take part:
    give it the attributes ``has_solver_time = True`` and ``time`` (T), and a method ``scores_over_time(x, edge_index,
    end, callback)`` that calls ``callback(t, scores)`` after every step up to ``end``, also at T; further arguments are
    those of its forward. Its ``time`` is then set to the selected one.

    **Batches.** An epoch is one optimizer step on the whole graph. With ``clusters`` there is one step for each group
    of clusters (see :func:`dissensus.data.clusters`), and with a loader one for each of its batches. Evaluation always
    uses the whole graph: without the edges between clusters it would be a different task, and often an easier one.

    **Reproducibility.** The same module, data and configuration give bitwise equal results on the same machine with the
    same number of threads. The random state of the caller is restored. Training runs inside
    :func:`dissensus.runtime.training`. A module without parameters is only evaluated.

    Args:
        model: any module with ``forward(x, edge_index)`` that returns scores [n, classes], or [n, 1] for numbers. Every
            field of the data whose name is an argument of the forward is passed as well, such as ``edge_weight``,
            ``edge_attr``, ``batch`` or ``pos``; never ``y``. A forward with ``**kwargs`` gets ``edge_weight`` and
            ``edge_attr`` where the data has them, to pass them on to its layers. The module is trained in place and
            moved to the device and dtype of the configuration.
        data: a PyG ``Data`` with ``x``, ``edge_index``, ``y`` and boolean ``train_mask``, ``val_mask`` and
            ``test_mask`` of one split, such as ``data.load("cora").split(1)``. If it has a ``batch``, ``y`` and the
            masks may have one entry per graph; the scores of a graph are then the mean of those of its nodes.
        config: how to train; by default ``TrainConfig()``. If it names no ``metric``, this is ``data.metric`` if there
            is one, otherwise the accuracy for classes and the mean absolute error for numbers.
        loader: batches of the same graph, iterated over in every epoch: PyG's ``NeighborLoader``, or any iterable of
            PyG ``Data`` with ``x``, ``edge_index``, ``y`` and ``train_mask``, and with ``edge_weight`` and
            ``edge_attr`` if the graph has them. If a batch has a ``batch_size``, only its first ``batch_size`` nodes
            are in the loss. The run can only be repeated with the same loader.
        progress: function called after every epoch.

    >>> from dissensus import data, nn, train
    >>> model = nn.create("gcn", in_channels=34, hidden_channels=16, out_channels=4)
    >>> result = train.fit(model, data.load("karate").split(1), train.TrainConfig(epochs=5))
    >>> result.model is model
    True
    """
    settings = TrainConfig() if config is None else config
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"the model is {type(model).__name__}: give a torch.nn.Module (train.run takes a Config)")
    if not isinstance(settings, TrainConfig):
        raise InputError(f"the configuration is {type(settings).__name__}: give a TrainConfig, such as config.train")
    check_graph(data)
    with seeded(settings):
        _check_forward(model.to(*_device_and_dtype(settings)), WholeGraph.of(data, *_device_and_dtype(settings)))
        return train_loop(model, data, settings, WorkerGroup(), loader=loader, progress=progress)


def _check_forward(model: torch.nn.Module, graph: WholeGraph) -> None:
    """Run one forward pass, which also initialises lazy modules, and check its result."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            scores = graph.scores(model)
    except InputError:
        raise
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        given = ", ".join(["x", "edge_index", *graph.inputs(model)])
        raise InputError(
            f"{type(model).__name__}.forward fails when called with {given} of this graph, x of shape "
            f"{list(graph.x.shape)} ({type(error).__name__}: {error}): it must accept "
            "forward(x, edge_index) and return scores [n, classes]"
        ) from error
    for module, mode in modes.items():
        module.training = mode
    if not isinstance(scores, Tensor) or scores.dim() != 2 or len(scores) != len(graph.y):
        shape = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(
            f"{type(model).__name__} returns {shape}: return one row of scores for each of {len(graph.y)} targets"
        )
    regression = graph.y.is_floating_point()
    wanted = 1 if regression else int(graph.y.max()) + 1
    if scores.size(1) < wanted or (regression and scores.size(1) > 1):
        kind = "one number" if regression else f"classes 0 to {wanted - 1}"
        raise InputError(
            f"{type(model).__name__} returns {scores.size(1)} scores, but the target is {kind}: create it with "
            f"out_channels={wanted}"
        )


def train_loop(
    model: torch.nn.Module,
    data: Data,
    settings: TrainConfig,
    group: WorkerGroup,
    *,
    loader: Iterable[Data] | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> Result:
    """:func:`fit` for one of several workers, on checked data, inside :func:`seeded`."""
    device, dtype = _device_and_dtype(settings)
    graph = WholeGraph.of(data, device, dtype)
    metric = metric_of(
        settings.metric or getattr(data, "metric", None), graph.y, lambda: (graph.y[graph.val], graph.y[graph.test])
    )
    _check_settings(model, graph, settings, loader)
    start = clock.perf_counter()
    with runtime.training(batches=loader is not None or settings.clusters is not None):
        model.to(device, dtype)
        graph.prepare(model)
        clusters = clusters_of(settings, data, group.rank, group.size)
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # A model without parameters, such as label propagation, has nothing to train: it is evaluated once.
        optimizer = (
            _OPTIMIZERS[settings.optimizer](parameters, lr=settings.lr, weight_decay=settings.weight_decay)
            if parameters
            else None
        )
        consistency = None if settings.consistency is None else Consistency(settings.consistency)
        on_scores = None if consistency is None else consistency.record
        forward = group.wrap(model)
        if group.rank:
            # All workers have the same weights, but different dropout.
            torch.manual_seed(settings.seed + 1_000_003 * group.rank)
        best: Score | None = None
        best_epoch, state, history = 0, {}, []
        for number in range(1, (settings.epochs if parameters else 1) + 1):
            batches = (batch.without_features(settings.node_dropout) for batch in _batches(graph, clusters, loader))
            loss = _train_epoch(model, forward, batches, metric.loss, optimizer, group, consistency)
            score = group.broadcast(
                lambda: evaluate(model, graph, metric, select_time=settings.select_time, on_scores=on_scores)
            )
            _check_finite(number, loss, score.val_loss, settings.lr)
            history.append(Epoch(number, loss, score.val, score.val_loss))
            if progress is not None:
                progress(history[-1])
            if score.beats(best):
                best, best_epoch, state = score, number, deepcopy(model.state_dict())
            elif settings.patience and number - best_epoch >= settings.patience:
                break
    assert best is not None
    model.load_state_dict(state)
    if best.time is not None:
        trained: Any = model
        trained.time = best.time
        if isinstance(model, nn.Model):
            model.config["time"] = best.time
    return Result(
        val=best.val,
        test=best.test,
        metric=metric.name,
        epoch=best_epoch,
        time=best.time,
        seconds=clock.perf_counter() - start,
        history=tuple(history),
        model=model.eval(),
    )


def _check_settings(
    model: torch.nn.Module, graph: WholeGraph, settings: TrainConfig, loader: Iterable[Data] | None
) -> None:
    """Raise an error for settings that do not work with this model, target or loader."""
    check_model(model, settings, batched=loader is not None)
    if settings.consistency is not None and graph.y.is_floating_point():
        raise InputError("train.consistency needs class probabilities, but y has numbers: leave it out")
    if settings.clusters is not None and graph.graph is not None:
        raise InputError("train.clusters divides a single graph, but this is a collection of graphs: leave it out")
    if loader is None:
        return
    check_loader(loader)
    if settings.consistency is not None:
        raise InputError("train.consistency needs the whole graph in every step: leave it out, or the loader")
    if settings.clusters is not None:
        raise InputError("a loader and train.clusters are two ways to make batches: give one of them")


def check_model(model: torch.nn.Module, settings: TrainConfig, *, batched: bool = False) -> None:
    """Raise an error for settings that this model does not support: select_time, or training on batches."""
    name = type(model).__name__
    if settings.select_time and not getattr(model, "has_solver_time", False):
        raise InputError(
            f"{name} has no solver time to select: set train.select_time to false, or give the module the attributes "
            "and the method that the documentation of train.fit names"
        )
    if (batched or settings.clusters is not None) and isinstance(model, nn.Model) and model.bound_nodes is not None:
        raise InputError(
            f"this {name} only works on the whole graph, so it cannot train on parts of it: leave out the loader or "
            "train.clusters, or set its option_attention to gram or identity"
        )


def _batches(graph: WholeGraph, clusters: Clusters | None, loader: Iterable[Data] | None) -> Iterator[Batch]:
    """The batches of one epoch."""
    parts = clusters if loader is None else (check_batch(batch, graph.fields) for batch in loader)
    if parts is None:
        yield graph
        return
    runtime.Cache.clear_all()  # the last evaluation has cached the whole graph
    for part in parts:
        yield Batch.of(part, graph.x.device, graph.x.dtype)
        runtime.Cache.clear_all()  # the same batch is unlikely to be used again


def _train_epoch(
    model: torch.nn.Module,
    forward: Callable[..., Tensor],
    batches: Iterable[Batch],
    loss_of: Callable[[Tensor, Tensor], Tensor],
    optimizer: torch.optim.Optimizer | None,
    group: WorkerGroup,
    consistency: Consistency | None,
) -> float:
    """Take one optimizer step per batch. Returns the mean loss over all training targets, before each step."""
    model.train()
    loss_sum, target_sum = 0.0, 0.0
    for batch in batches:
        own = len(batch.train)
        targets = group.sum(own)
        if targets == 0:
            continue
        target_sum += targets
        if optimizer is not None:
            optimizer.zero_grad()
        scores = batch.scores(model, forward)
        if own:
            # Scaled so that the average over the workers is the mean over the targets of all.
            part = scores.index_select(0, batch.train), batch.y.index_select(0, batch.train)
            loss = loss_of(*part) * (own * group.size / targets)
        else:
            loss = 0.0 * scores.sum()
        if consistency is not None:
            loss = loss + consistency.loss(scores)
        if optimizer is not None:
            loss.backward()
            optimizer.step()
        loss_sum += float(loss.detach()) * targets / group.size
        del scores, loss  # frees the solver's checkpoints before the next batch needs memory
    if target_sum == 0:
        raise InputError("no batch of the epoch has a training node: use a loader that yields nodes of train_mask")
    return group.sum(loss_sum) / target_sum


def _check_finite(epoch: int, loss: float, val_loss: float, lr: float) -> None:
    if isfinite(loss) and isfinite(val_loss):
        return
    which = "training" if not isfinite(loss) else "validation"
    raise TrainingError(
        f"the {which} loss is {loss if which == 'training' else val_loss} in epoch {epoch}: lower train.lr (it is "
        f"{lr:g}), shorten the time or the step of the solver, or set train.dtype=float64"
    )


def device_of(name: str) -> torch.device:
    """The torch device of this name, if it can be used."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    # torch raises RuntimeError, AssertionError or NotImplementedError, depending on the backend.
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"train.device {name!r} cannot be used here ({reason}): use cpu") from error
    return device


def _device_and_dtype(settings: TrainConfig) -> tuple[torch.device, torch.dtype]:
    return device_of(settings.device), getattr(torch, settings.dtype)


@contextmanager
def seeded(settings: TrainConfig) -> Iterator[None]:
    """Context manager for seeded, deterministic training. Random state and settings are restored afterwards."""
    device = device_of(settings.device)
    memory: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filled = memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else None):
        torch.manual_seed(settings.seed)
        # Some sparse CUDA kernels have no deterministic form; they only raise a warning.
        torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
        # The solver writes every buffer before reading it, so filling uninitialised memory only costs time.
        memory.fill_uninitialized_memory = False
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            memory.fill_uninitialized_memory = filled
