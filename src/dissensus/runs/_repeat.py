"""One configuration over several splits and seeds: a plain loop here, or a grid with an executor and a store."""

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
    """One run that has ended: its configuration, its result (None if it failed), its error, and its seconds."""

    config: RunConfig
    result: dict[str, Any] | None
    error: str | None
    seconds: float


@dataclass
class Repeats:
    """What :func:`repeat` gives.

    Attributes:
        config: the configuration; its split and seed stand for all of them.
        splits: the splits.
        seeds: the seeds.
        attempts: the runs that have ended.
        best: the trained model of the best validation, where it was made in this process; otherwise None.
        seconds: what all of them took.
        interrupted: whether an interrupt has ended them early.
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
        found = [attempt.result for attempt in self.attempts if attempt.result is not None]
        return sorted(found, key=lambda result: (result["split"], result["seed"]))

    @property
    def metric(self) -> str:
        """What ``val`` and ``test`` are."""
        return metric_of(self.results[0])

    def as_dict(self) -> dict[str, Any]:
        """Plain values: mean, spread (0 over one run) and interval (None over one run), and every run."""
        results, config = self.results, self.config.as_dict()
        # These vary over the runs, so they are with each of them.
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
        """One row: the means over the runs, with their spread."""
        answer = self.as_dict()
        test, val, seconds = (Value.of(run[name] for run in answer["runs"]) for name in ("test", "val", "seconds"))
        interval = answer["test_interval"]
        reach = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
        shown = self.metric.replace("_", " ") + ("" if is_error(self.metric) else " %")
        return Table(
            columns=["model", "dataset", f"test {shown}", "95% interval", f"validation {shown}", "seconds a run"],
            rows=[[Path(answer["model"]).name, Path(answer["dataset"]).stem, test, reach, val, seconds]],
            note=f"Mean ± standard deviation (runs), each at its best validation over {answer['selection']}. "
            f"Splits: {answer['protocol']}.",
        )

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Write the model of the best validation; one that was made elsewhere or before is made again, bit for bit.

        Returns:
            Where it is, and its split, seed, val and test.
        """
        from dissensus import train

        split, seed = (max(self.results, key=_rank)[name] for name in ("split", "seed"))
        made = self.best or train.run(_at(self.config, split, seed))
        train.save(made, folder)
        return {"folder": str(folder), "split": split, "seed": seed, "val": made.val, "test": made.test}


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

    Without a store it is a plain loop of :func:`dissensus.train.run` in this process. A run that fails does not stop
    the others; if all do, that is an error. An interrupt keeps what has finished.

    Args:
        config: the run; its split and seed are replaced.
        splits: by default those of the dataset, ten random ones or all that it brings along.
        seeds: of training; by default that of the configuration.
        store: file that finished runs are kept in, and found in again.
        executor: ``inline``, ``processes`` or ``ray``; with ``workers``, ``threads``, ``address`` and ``retry_failed``
            as for :func:`execute`.
        log: where to follow epochs besides: ``tensorboard:DIR``, ``wandb:PROJECT`` or ``mlflow:URI``.
        on_epoch: called in this process after every epoch of a run made here.
        on_run: called with every run that ends, and the number of all.
    """
    if log and executor != "inline":
        raise InputError("--log follows runs in this process: use it with --executor inline")
    begun, config = time.perf_counter(), config.pinned()
    splits = list(splits or config.data.load().default_splits)
    found = Repeats(config, splits, list(seeds or [config.train.seed]))
    configs = grid(config.as_dict(), {"data.split": found.splits, "train.seed": found.seeds})
    options: dict[str, Any] = {"store": store, "retry_failed": retry_failed}

    def ended(run: Record | Attempt) -> None:
        found.attempts.append(Attempt(run.config, run.result, run.error, run.seconds))
        on_run(found.attempts[-1], len(configs))

    if store is not None and _all_stored(store, configs, retry_failed):
        # Only runs that are still to be made need torch, which takes seconds to load.
        for record in execute(configs, TARGET, **options).records:
            found.attempts.append(Attempt(record.config, record.result, record.error, record.seconds))
        return _finished(found, begun)
    config.check()
    dataset = config.data.load()
    # Of thousands of splits, drawing each would take longer than the first run.
    for split in {*found.splits[:10], max(found.splits)}:
        dataset.split(split)
    with ExitStack() as stack:
        logger = open_logger(log) if log else None
        if logger is not None:
            stack.callback(logger.close)

        def make(plain: RunConfig) -> dict[str, Any]:
            from dissensus import train

            one = Config.from_dict(plain)

            def epoch(now: "Epoch") -> None:
                on_epoch(one, now)
                if logger is not None:
                    name = f"{Path(one.data.name).stem}-{Path(one.model.name).name}-{one.data.split}-{one.train.seed}"
                    logger.log(name, one, now.number, {"loss": now.loss, "val": now.val, "val_loss": now.val_loss})

            made = train.run(one, progress=epoch)
            result = made.record()
            if found.best is None or _rank(result) > _rank(found.best.as_dict()):
                found.best = made
            return result

        try:
            if store is None and executor == "inline" and workers is None and address is None:
                for plain in configs:
                    outcome = call(make, plain, threads)
                    ended(Attempt(plain, outcome["result"], outcome["error"], outcome["seconds"]))
            else:
                options |= {"workers": workers, "threads": threads, "address": address}
                options["function"] = make if executor == "inline" else None
                made = execute(configs, TARGET, executor=executor, on_result=ended, **options)
                found.attempts = [Attempt(r.config, r.result, r.error, r.seconds) for r in made.records]
                _forget_other(found)
        except KeyboardInterrupt:
            if not found.results:
                raise
            found.interrupted = True
    return _finished(found, begun)


def metric_of(result: dict[str, Any]) -> str:
    """What ``val`` and ``test`` of a result are; stores of before there were several have accuracies."""
    return str(result.get("metric", "accuracy"))


def _finished(found: Repeats, begun: float) -> Repeats:
    found.seconds = time.perf_counter() - begun
    if not found.results:
        raise DissensusError(f"all {len(found.attempts)} runs failed; the first: {found.attempts[0].error}")
    return found


def _forget_other(found: Repeats) -> None:
    """Leave out the model made here where one that the store had is better."""
    best = found.best
    if best is not None and found.results and _rank(best.as_dict()) < max(map(_rank, found.results)):
        found.best = None


def _rank(result: dict[str, Any]) -> tuple[float, int, int]:
    sign = -1.0 if is_error(metric_of(result)) else 1.0
    return sign * result["val"], -result["split"], -result["seed"]


def _at(config: Config, split: int, seed: int) -> Config:
    return replace(config, data=replace(config.data, split=split), train=replace(config.train, seed=seed))


def _all_stored(store: str | os.PathLike[str], configs: Sequence[RunConfig], retry_failed: bool) -> bool:
    if not Path(store).is_file():
        return False
    with Store(store) as opened:
        return not opened.missing(configs, retry_failed=retry_failed)
