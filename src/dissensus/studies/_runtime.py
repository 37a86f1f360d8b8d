"""Training time and memory of five continuous models."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from dissensus.runs import Record, RunConfig
from dissensus.studies._printed import printed
from dissensus.studies._study import Request, Row, StudyRuns, Training
from dissensus.studies._views import Details, Grid

_MODELS, _DATASETS = (printed("runtime").values(name) for name in ("model", "dataset"))
_EPOCHS = {"cora": 100, "citeseer": 250}


def run_timed(config: RunConfig) -> dict[str, Any]:
    """Train one run whose time counts; apart from others that happen to have the same settings."""
    from dissensus.train import execute

    return execute(config["timed"])


def run_memory(config: RunConfig) -> dict[str, Any]:
    """Train one epoch, and again while torch counts what its tensors take.

    Returns:
        ``memory``: the most MiB that tensors of the second epoch take at once, the dataset's own apart.
    """
    from torch.profiler import ProfilerActivity, profile

    from dissensus.train import execute

    execute(config["memory"])
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiled:
        execute(config["memory"])
    events = profiled.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    return {"memory": max(accumulate(size for _, size in changes)) / 2**20}


@dataclass(frozen=True, kw_only=True)
class Measured(Training):
    """A few trainings with a fixed number of epochs, apart from others that happen to have the same settings.

    Attributes:
        seeds: by default; machines are compared, not splits, so that a few runs suffice.
        column: of the value that is measured.
    """

    seeds: tuple[int, ...]
    column: str

    def plan(self, request: Request) -> StudyRuns:
        seeds = self.seeds[:1] if request.quick else self.seeds
        chosen = {"splits": request.splits or (101,), "seeds": request.seeds or seeds}
        return super().plan(Request(**{**vars(request), **chosen}))

    def wrap(self, config: RunConfig) -> RunConfig:
        return {self.column: config}

    def unwrap(self, config: RunConfig) -> RunConfig:
        inner: RunConfig = config[self.column]
        return inner

    def rows(self, record: Record) -> list[Row]:
        return [{**row, "memory": (record.result or {}).get("memory")} for row in super().rows(record)]


class Runtime(Measured):
    """Says what compares."""

    def notes(self, rows: Sequence[Row]) -> list[str]:
        return ["The paper's times are those of an Nvidia A6000: ratios compare across machines, seconds do not."]


def _flags(point: Row) -> dict[str, Any]:
    epochs = {"train.epochs": _EPOCHS[point["dataset"]]} if point["dataset"] in _EPOCHS else {}
    return {**epochs, "train.patience": 0}


MEMORY = Measured(
    name="memory",
    title="Memory",
    about=(
        "The most memory that tensors take at once in an epoch of training and evaluation, in MiB, with the settings "
        "of the paper. By the paper's estimate BIMP needs what GRAND-l needs and a matrix of options by options more."
    ),
    preset="paper",
    models=_MODELS,
    datasets=_DATASETS,
    flags=lambda point: {"train.epochs": 1, "train.patience": 0},
    target="dissensus.studies:run_memory",
    seeds=(1,),
    column="memory",
    views=(
        Grid(name="memory", title="Memory of an epoch in MiB", value="memory", best="min", readme=True, shown=True),
        Grid(
            name="ratios",
            title="Memory relative to GRAND-l",
            value="memory",
            best="min",
            relative_to="grand-l",
            readme=True,
            shown=True,
        ),
    ),
)

RUNTIME = Runtime(
    name="runtime",
    title="Running time",
    about=(
        "Seconds of training and evaluation in every epoch, one run at a time: 100 epochs on Cora, 250 on Citeseer, no "
        "early stopping, the settings of the paper."
    ),
    preset="paper",
    models=_MODELS,
    datasets=_DATASETS,
    flags=_flags,
    target="dissensus.studies:run_timed",
    seeds=(1, 2, 3, 4, 5),
    column="timed",
    serial=True,
    views=(
        Grid(name="seconds", title="Seconds", value="seconds", best="min", readme=True),
        Grid(
            name="ratios",
            title="Time relative to GRAND-l",
            value="seconds",
            best="min",
            relative_to="grand-l",
            readme=True,
        ),
        Details(value="seconds", shown=True),
    ),
)
