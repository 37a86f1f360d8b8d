"""Training time of five continuous models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dissensus.studies._printed import printed
from dissensus.studies._study import Config, Plan, Request, Row, Training
from dissensus.studies._views import Details, Grid

_EPOCHS = {"cora": 100, "citeseer": 250}


def run_timed(config: Config) -> dict[str, Any]:
    """Train one run whose time counts; apart from others that happen to have the same settings."""
    from dissensus.train import execute

    return execute(config["timed"])


@dataclass(frozen=True, kw_only=True)
class Runtime(Training):
    """Trainings with a fixed number of epochs, one at a time."""

    def plan(self, request: Request) -> Plan:
        # A time is judged against others of the same machine, not against other splits: a few runs suffice.
        seeds = (1,) if request.quick else (1, 2, 3)
        chosen = {"splits": request.splits or (101,), "seeds": request.seeds or seeds}
        return super().plan(Request(**{**vars(request), **chosen}))

    def wrap(self, config: Config) -> Config:
        return {"timed": config}

    def unwrap(self, config: Config) -> Config:
        inner: Config = config["timed"]
        return inner

    def notes(self, rows: Sequence[Row]) -> list[str]:
        return ["The paper's times are those of an Nvidia A6000: ratios compare across machines, seconds do not."]


def _flags(point: Row) -> dict[str, Any]:
    epochs = {"train.epochs": _EPOCHS[point["dataset"]]} if point["dataset"] in _EPOCHS else {}
    return {**epochs, "train.patience": 0}


RUNTIME = Runtime(
    name="runtime",
    title="Running time",
    about=(
        "Seconds of training and evaluation in every epoch, one run at a time: 100 epochs on Cora, 250 on Citeseer, no "
        "early stopping, the settings of the preset."
    ),
    models=printed("runtime").values("model"),
    datasets=printed("runtime").values("dataset"),
    flags=_flags,
    target="dissensus.studies:run_timed",
    serial=True,
    views=(
        Grid(name="seconds", title="Seconds", value="seconds", best="min", readme=True),
        Grid(name="ratios", title="Time relative to GRAND-l", value="seconds", best="min", relative_to="grand-l"),
        Details(
            name="details", title="Each mean with its 95% interval, and the printed value", value="seconds", shown=True
        ),
    ),
)
