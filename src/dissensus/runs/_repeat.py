"""Train a configuration on several splits and seeds: in a plain loop, or as a grid with an executor and a store."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import DissensusError, InputError
from dissensus.report import Table, Value
from dissensus.runs._call import call
from dissensus.runs._config import RunConfig, grid
from dissensus.runs._execute import execute
from dissensus.runs._log import open_logger
from dissensus.runs._store import Record, Store
from dissensus.train import TARGET, Config, is_error

if TYPE_CHECKING:
    from dissensus.train import Epoch, Run


@dataclass(frozen=True)
class Attempt:
    """A run that has ended: its configuration, its result (None if it failed), its error, and its duration."""

    config: RunConfig
    result: dict[str, Any] | None
    error: str | None
    seconds: float


@dataclass
class Repeats:
    """The result of :func:`repeat`.

    Attributes:
        config: the configuration; its own split and seed are not used.
        splits: the splits.
        seeds: the seeds.
        attempts: the runs that have ended.
        best: the run with the best validation metric, if it was trained in this process; otherwise None.
        seconds: duration of the call.
        interrupted: whether an interrupt has ended the call early.
    """

    config: Config
    splits: list[int]
    seeds: list[int]
    attempts: list[Attempt] = field(default_factory=list)
    best: "Run | None" = None
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of the finished runs, by split and seed."""
        results = [attempt.result for attempt in self.attempts if attempt.result is not None]
        return sorted(results, key=lambda result: (result["split"], result["seed"]))

    @property
    def metric(self) -> str:
        """The name of the metric of ``val`` and ``test``."""
        return metric_of(self.results[0])

    def as_dict(self) -> dict[str, Any]:
        """Plain values: mean, standard deviation (0 for one run), interval (None for one run), and every run."""
        results, config = self.results, self.config.as_dict()
        # These differ between the runs and are listed with them.
        del config["data"]["split"], config["train"]["seed"]
        answer: dict[str, Any] = {
            "dataset": self.config.data.name,
            "model": self.config.model.name,
            "splits": self.splits,
            "seeds": self.seeds,
            "metric": self.metric,
        }
        for name in ("test", "val"):
            value = Value.of(result[name] for result in results)
            several = len(results) > 1
            answer[f"{name}_mean"], answer[f"{name}_std"] = value.mean, value.std if several else 0.0
            answer[f"{name}_interval"] = list(value.interval) if several else None
        keys = ("split", "seed", "val", "test", "epoch", "seconds", "time")
        return answer | {
            "seconds": self.seconds,
            "selection": results[0]["selection"],
            "protocol": results[0]["protocol"],
            "config": config,
            "runs": [{key: result[key] for key in keys} for result in results],
            "errors": [
                {"split": a.config["data"]["split"], "seed": a.config["train"]["seed"], "error": a.error}
                for a in self.attempts
                if a.result is None
            ],
        }

    def table(self) -> Table:
        """A table of one row: the means over the runs with their standard deviations."""
        answer = self.as_dict()
        test, val, seconds = (Value.of(run[name] for run in answer["runs"]) for name in ("test", "val", "seconds"))
        interval = answer["test_interval"]
        limits = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
        shown = self.metric.replace("_", " ") + ("" if is_error(self.metric) else " %")
        return Table(
            columns=["model", "dataset", f"test {shown}", "95% interval", f"validation {shown}", "seconds per run"],
            rows=[[Path(answer["model"]).name, Path(answer["dataset"]).stem, test, limits, val, seconds]],
            note=f"Mean ± standard deviation (runs), each at its best validation over {answer['selection']}. "
            f"Splits: {answer['protocol']}.",
        )

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Save the model with the best validation metric to a folder.

        If it was trained in another process or is from the store, it is trained again, with bitwise equal results.

        Returns:
            The folder, and the split, seed, val and test of the model.
        """
        from dissensus import train

        split, seed = (max(self.results, key=_rank)[name] for name in ("split", "seed"))
        run = self.best or train.run(_with_split(self.config, split, seed))
        train.save(run, folder)
        return {"folder": str(folder), "split": split, "seed": seed, "val": run.val, "test": run.test}


def repeat(
    config: Config,
    *,
    splits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    store: str | os.PathLike[str] | None = None,
    executor: str = "inline",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    retry_failed: bool = False,
    log: str | None = None,
    on_epoch: "Callable[[Config, Epoch], None]" = lambda config, epoch: None,
    on_run: Callable[[Attempt, int], None] = lambda attempt, total: None,
) -> Repeats:
    """Train a configuration on several splits and with several seeds.

    By default, this is a plain loop over :func:`dissensus.train.run` in this process. A run that fails does not stop
    the others; if all of them fail, an error is raised. An interrupt ends the loop and keeps the finished runs.

    Args:
        config: the configuration; its split and seed are replaced.
        splits: the splits; by default the dataset's own, or ten random ones.
        seeds: the seeds of training; by default that of the configuration.
        store: file of finished runs, which are not executed again.
        executor: ``inline``, ``processes`` or ``ray``; with ``workers``, ``threads``, ``address`` and ``retry_failed``
            as for :func:`execute`.
        log: where to log every epoch: ``tensorboard:DIR``, ``wandb:PROJECT`` or ``mlflow:URI``.
        on_epoch: called after every epoch of a run in this process.
        on_run: called with every run that ends, and the number of all runs.
    """
    if log and executor != "inline":
        raise InputError("--log follows runs in this process: use it with --executor inline")
    start_time, config = time.perf_counter(), config.pinned()
    splits = list(splits or config.data.load().default_splits)
    repeats = Repeats(config, splits, list(seeds or [config.train.seed]))
    configs = grid(config.as_dict(), {"data.split": repeats.splits, "train.seed": repeats.seeds})
    options: dict[str, Any] = {"store": store, "retry_failed": retry_failed}

    def ended(run: Record | Attempt) -> None:
        repeats.attempts.append(Attempt(run.config, run.result, run.error, run.seconds))
        on_run(repeats.attempts[-1], len(configs))

    if store is not None and _all_stored(store, configs, retry_failed):
        # Only runs that have to be executed need torch, whose import takes seconds.
        for record in execute(configs, TARGET, **options).records:
            repeats.attempts.append(Attempt(record.config, record.result, record.error, record.seconds))
        return _finished(repeats, start_time)
    config.check()
    dataset = config.data.load()
    # Check the splits before training. Drawing thousands of them would take longer than the first run.
    for split in {*repeats.splits[:10], max(repeats.splits)}:
        dataset.split(split)
    with ExitStack() as stack:
        logger = open_logger(log) if log else None
        if logger is not None:
            stack.callback(logger.close)

        def train_one(plain: RunConfig) -> dict[str, Any]:
            from dissensus import train

            one = Config.from_dict(plain)

            def progress(epoch: "Epoch") -> None:
                on_epoch(one, epoch)
                if logger is not None:
                    name = f"{Path(one.data.name).stem}-{Path(one.model.name).name}-{one.data.split}-{one.train.seed}"
                    values = {"loss": epoch.loss, "val": epoch.val, "val_loss": epoch.val_loss}
                    logger.log(name, one, epoch.number, values)

            run = train.run(one, progress=progress)
            result = run.record()
            if repeats.best is None or _rank(result) > _rank(repeats.best.as_dict()):
                repeats.best = run
            return result

        try:
            if store is None and executor == "inline" and workers is None and address is None:
                for plain in configs:
                    outcome = call(train_one, plain, threads)
                    ended(Attempt(plain, outcome["result"], outcome["error"], outcome["seconds"]))
            else:
                options |= {"workers": workers, "threads": threads, "address": address}
                options["function"] = train_one if executor == "inline" else None
                summary = execute(configs, TARGET, executor=executor, on_result=ended, **options)
                repeats.attempts = [Attempt(r.config, r.result, r.error, r.seconds) for r in summary.records]
                _drop_worse_model(repeats)
        except KeyboardInterrupt:
            if not repeats.results:
                raise
            repeats.interrupted = True
    return _finished(repeats, start_time)


def metric_of(result: dict[str, Any]) -> str:
    """The metric of ``val`` and ``test`` of a result; results of earlier versions name none and have accuracies."""
    return str(result.get("metric", "accuracy"))


def _finished(repeats: Repeats, start_time: float) -> Repeats:
    repeats.seconds = time.perf_counter() - start_time
    if not repeats.results:
        raise DissensusError(f"all {len(repeats.attempts)} runs failed; the first: {repeats.attempts[0].error}")
    return repeats


def _drop_worse_model(repeats: Repeats) -> None:
    """Drop the best model of this process if a run from the store has a better validation metric."""
    best = repeats.best
    if best is not None and repeats.results and _rank(best.as_dict()) < max(map(_rank, repeats.results)):
        repeats.best = None


def _rank(result: dict[str, Any]) -> tuple[float, int, int]:
    sign = -1.0 if is_error(metric_of(result)) else 1.0
    return sign * result["val"], -result["split"], -result["seed"]


def _with_split(config: Config, split: int, seed: int) -> Config:
    return replace(config, data=replace(config.data, split=split), train=replace(config.train, seed=seed))


def _all_stored(store: str | os.PathLike[str], configs: Sequence[RunConfig], retry_failed: bool) -> bool:
    if not Path(store).is_file():
        return False
    with Store(store) as opened:
        return not opened.missing(configs, retry_failed=retry_failed)
