"""Accuracy against training time and peak memory."""

from typing import Any

from dissensus.runs import RunConfig
from dissensus.studies._depth import at_depth
from dissensus.studies._runtime import Measured, run_memory
from dissensus.studies._study import Row
from dissensus.studies._views import Details, Grid, Lines


def run_cost(config: RunConfig) -> dict[str, Any]:
    """Train one run whose time counts, and add the peak memory of one epoch (see :func:`run_memory`)."""
    from dissensus.train import execute

    training = config["cost"]
    short = {**training, "train": {**training["train"], "epochs": 1}}
    return {**execute(training), **run_memory({"memory": short})}


def _trade(x: str, label: str) -> Lines:
    return Lines(
        name=x,
        title=f"Accuracy against {label.lower()}, a point for each depth",
        facet="dataset",
        x=x,
        mean_over="depth",
        x_log=True,
        x_label=label,
        y_label="test accuracy (%)",
        readme=True,
    )


def _flags(point: Row) -> dict[str, Any]:
    return {**at_depth(point), "train.epochs": 100, "train.patience": 0}


COST = Measured(
    name="cost",
    title="Accuracy, time and memory",
    about=(
        "Test accuracy in per cent, seconds of training and evaluation over 100 epochs, and the most memory that "
        "tensors take at once, in MiB, at equal depth; one run at a time. Settings are those of the preset tuned, "
        "where residual GCN and GCNII take what was tuned for a GCN."
    ),
    models=("bimp", "gcn-res", "grand-l", "gcnii"),
    datasets=("cora", "pubmed"),
    dimensions=("dataset", "model", "depth"),
    axes={"depth": (2, 8, 32, 128)},
    flags=_flags,
    quick_axes={"depth": (2,)},
    target="dissensus.studies:run_cost",
    seeds=(1, 2, 3),
    column="cost",
    serial=True,
    views=(
        _trade("seconds", "Seconds of training"),
        _trade("memory", "Peak memory in MiB"),
        *(
            Grid(name=value, title=title, value=value, facet="dataset", columns="depth", best=best, shown=True)
            for value, title, best in (
                ("test", "Test accuracy in per cent", "max"),
                ("seconds", "Seconds of 100 epochs", "min"),
                ("memory", "Peak memory in MiB", "min"),
            )
        ),
        Details(value="seconds"),
    ),
)
