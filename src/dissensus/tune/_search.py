"""The search itself: Ray Tune proposes and stops, every run is made and stored as in a grid."""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from dissensus.errors import DissensusError, InputError, one_of, optional
from dissensus.ray_cluster import connected
from dissensus.runs import Record, Store, execute, grid, key
from dissensus.train import TARGET, Config, is_error, presets
from dissensus.tune._space import Space

SEARCHES = ("random", "tpe")
SCHEDULERS = ("asha", "none")
# Interrupts are the command's business, and nobody reads the files that Tune would log to.
_TUNE_ENVIRONMENT = {
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "RAY_AIR_NEW_OUTPUT": "0",
}
# How often a trial is started again when its worker or node is lost.
_RESTARTS = 3
# The mean of a trial stays a number where a run of it fails.
_FAILED_ERROR = 1e9


@dataclass(frozen=True)
class Trial:
    """One proposal: its settings by dotted path, the metric's mean on validation, and over how many splits so far."""

    settings: Mapping[str, Any]
    val: float
    splits: int

    def __str__(self) -> str:
        numbers = {path: f"{value:.4g}" if isinstance(value, float) else value for path, value in self.settings.items()}
        shown = ", ".join(f"{path}={value}" for path, value in numbers.items())
        return f"validation {self.val:.2f} over {self.splits} splits: {shown}"


@dataclass(frozen=True)
class SearchResult:
    """What :func:`search` found.

    Attributes:
        trials: all of them, in the order of their start.
        best: the best of those that went through every split.
        splits: that were validated on.
        method: search and scheduler.
        seconds: wall-clock time.
    """

    trials: tuple[Trial, ...]
    best: Trial
    splits: tuple[int, ...]
    method: str
    seconds: float

    def __str__(self) -> str:
        return (
            f"mean on validation {self.best.val:.2f} over splits {','.join(map(str, self.splits))}, the best of "
            f"{len(self.trials)} trials ({self.method})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "splits": list(self.splits),
            "trials": len(self.trials),
            "finished": sum(trial.splits == len(self.splits) for trial in self.trials),
            "val_mean": self.best.val,
            "settings": dict(self.best.settings),
            "seconds": self.seconds,
        }

    def write(
        self, path: str | os.PathLike[str], models: Sequence[str], layers: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Write a preset of ``layers``, the settings by section that were searched from, and what was found.

        Args:
            path: a ``.toml`` file; what it has for other models stays.
            models: the names that the settings are for.
            layers: such as ``{"train": {"epochs": 100}}``; what names the run (data, split, model, seed) is left out.
        """
        merged = {section: dict(layers.get(section, {})) for section in Config.sections()}
        for setting, value in self.best.settings.items():
            section, _, name = setting.partition(".")
            merged[section][name] = value
        named = {"data": ("name", "split"), "model": ("name",), "train": ("seed", "device")}
        kept = {part: {k: v for k, v in values.items() if k not in named[part]} for part, values in merged.items()}
        presets.write_settings(Path(path), models, str(self), kept)


def search(
    base: Config,
    space: Space,
    *,
    trials: int,
    splits: Sequence[int],
    algorithm: str = "random",
    scheduler: str = "asha",
    seed: int = 1,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    threads: int = 1,
    address: str | None = None,
    on_report: Callable[[int, Trial], None] | None = None,
) -> SearchResult:
    """Search ``space`` for the settings with the best mean of the metric on validation over ``splits``.

    A trial trains on one split after the other and reports the mean so far; a run that fails counts as 0 (of an
    error, as 1e9). With ``asha`` trials that are behind the best half after 1, 2, 4, ... splits are stopped.

    Args:
        base: the configuration that the settings of a trial are put into.
        space: what to search.
        trials: how many to try.
        splits: seeds of the splits.
        algorithm: ``random``, or ``tpe``, Optuna's tree-structured Parzen estimator.
        scheduler: ``asha``, or ``none`` to give every trial all splits.
        seed: of the proposals: the same seed proposes the same again, and with ``tpe`` after the same results.
        store: where finished runs are kept. The same search started again takes from there what it has.
        workers: trials at a time; by default as many as the cores allow.
        threads: threads of one trial.
        address: of a running Ray cluster, ``"host:port"``; without it Ray is started on this machine.
        on_report: called with the number of a trial, from 1, and what it has reached, after each of its splits.
    """
    one_of("search", algorithm, SEARCHES)
    one_of("scheduler", scheduler, SCHEDULERS)
    for name, count in (("trials", trials), ("splits", len(splits)), ("threads", threads), ("workers", workers or 1)):
        if count < 1:
            raise InputError(f"{name} is {count}: give at least 1")
    base, begun = base.pinned(), time.perf_counter()
    base.check()
    dataset = base.data.load()
    for split in splits:
        dataset.split(split)
    error = is_error(base.train.metric or dataset.metric)
    with ExitStack() as stack:
        opened = stack.enter_context(Store(":memory:" if store is None else store))
        tune = stack.enter_context(_tune(address, None if workers is None else workers * threads))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dissensus-tune-", ignore_cleanup_errors=True))
        board = _Board(opened, on_report or (lambda number, trial: None))
        trainable = tune.with_parameters(
            _trial, base=base.as_dict(), splits=list(splits), known=_known(opened, error), threads=threads, error=error
        )
        tuner = tune.Tuner(
            tune.with_resources(trainable, {"cpu": threads}),
            param_space={path: domain.on_ray() for path, domain in space.domains.items()},
            tune_config=tune.TuneConfig(
                metric="val",
                mode="min" if error else "max",
                num_samples=trials,
                search_alg=_algorithm(algorithm, seed),
                scheduler=_scheduler(scheduler, len(splits)),
                max_concurrent_trials=workers,
                # Every new process would load torch again.
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                storage_path=folder,
                verbose=0,
                callbacks=[_listener(board)],
                failure_config=tune.FailureConfig(max_failures=_RESTARTS),
            ),
        )
        tuner.fit()
    found = tuple(board.trials.values())
    finished = [trial for trial in found if trial.splits == len(splits)]
    if not finished:
        raise DissensusError(
            f"none of the {trials} trials could be started: {board.error or 'see the messages of Ray'}"
        )
    best = (min if error else max)(finished, key=lambda trial: trial.val)
    if board.error and best.val == _value(None, error):
        raise DissensusError(f"every run failed; the last: {board.error}")
    return SearchResult(found, best, tuple(splits), f"{algorithm}, {scheduler}", time.perf_counter() - begun)


def apply(base: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with settings by dotted path put into it."""
    return grid(base, {path: [value] for path, value in settings.items()})[0]


def _trial(
    settings: dict[str, Any],
    base: dict[str, Any],
    splits: list[int],
    known: dict[str, float],
    threads: int,
    error: bool,
) -> None:
    """One trial, on a worker: train on the splits that are not known yet, and report after each."""
    from ray import tune

    values = []
    for split in splits:
        config = apply(base, {**settings, "data.split": split})
        made = None
        if key(config) in known:
            values.append(known[key(config)])
        else:
            (record,) = execute([config], TARGET, threads=threads).records
            values.append(_value(record.result, error))
            made = json.dumps(asdict(record))
        tune.report({"val": fmean(values), "splits": len(values), "made": made})


def _value(result: Mapping[str, Any] | None, error: bool) -> float:
    if result is None:
        return _FAILED_ERROR if error else 0.0
    return float(result["val"])


def _known(store: Store, error: bool) -> dict[str, float]:
    return {record.key: _value(record.result, error) for record in store.query() if record.target == TARGET}


class _Board:
    """What the trials have reported, in this process: runs go to the store at once."""

    def __init__(self, store: Store, on_report: Callable[[int, Trial], None]) -> None:
        self.store, self.on_report = store, on_report
        self.trials: dict[str, Trial] = {}
        self.error: str | None = None

    def add(self, name: str, settings: Mapping[str, Any], report: Mapping[str, Any]) -> None:
        if report["made"] is not None:
            record = Record(**json.loads(report["made"]))
            self.store.put(record)
            self.error = record.error or self.error
        self.trials[name] = Trial(dict(settings), report["val"], report["splits"])
        self.on_report(list(self.trials).index(name) + 1, self.trials[name])


def _listener(board: _Board) -> Any:
    from ray import tune

    class Listener(tune.Callback):
        def on_trial_result(
            self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any
        ) -> None:
            board.add(trial.trial_id, trial.config, result)

        def __reduce__(self) -> tuple[Any, ...]:
            # Tune pickles its callbacks to restore them later; the store is what a search goes on from here.
            return tune.Callback, ()

    return Listener()


def _algorithm(name: str, seed: int) -> Any:
    if name == "random":
        from ray.tune.search.basic_variant import BasicVariantGenerator

        return BasicVariantGenerator(random_state=seed)
    optuna = optional("optuna", "optuna")
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return OptunaSearch(sampler=optuna.samplers.TPESampler(seed=seed))


def _scheduler(name: str, splits: int) -> Any:
    from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler

    if name == "none" or splits == 1:
        return FIFOScheduler()
    return AsyncHyperBandScheduler(max_t=splits, grace_period=1, reduction_factor=2)


@contextmanager
def _tune(address: str | None, cores: int | None) -> Iterator[Any]:
    """Ray Tune on a cluster that is connected to, or started, for the time of the block."""
    with connected(address, cores, _TUNE_ENVIRONMENT):
        yield optional("ray[tune]", "ray", "ray.tune")
