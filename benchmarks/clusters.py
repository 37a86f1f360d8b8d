"""BIMP trained on clusters of nodes beside full batch, on a generated graph of ogbn-arxiv's size."""

from typing import Any

from common import say
from memory import measured

# What a step of the optimizer works on -> steps an epoch, settings: the whole graph, and a quarter of its clusters.
_WAYS: dict[str, tuple[int, dict[str, Any]]] = {
    "whole graph": (1, {}),
    "clusters": (4, {"train.clusters": 64, "train.clusters_per_step": 16}),
}


def run(quick: bool = False) -> dict[str, Any]:
    """Peak memory above the data, accuracy and time of both ways, evaluation on the whole graph included."""
    channels, steps = (8, 4) if quick else (128, 60)
    name, split = ("csbm", 1) if quick else ("arxiv-synthetic", 0)
    flags = {
        "data.split": split,
        "model.hidden_channels": channels,
        "model.option_attention": "gram",
        "model.method": "euler",
        "model.time": 4.0,
        "train.lr": 0.01,
    }
    rows = []
    for way, (an_epoch, changes) in _WAYS.items():
        epochs = steps // an_epoch
        say(f"  {way}: {epochs} epochs of {an_epoch} steps")
        (found,) = measured("fitting", [{"dataset": name, "flags": {**flags, **changes, "train.epochs": epochs}}])
        rows.append({"step_on": way, "epochs": epochs, "steps_an_epoch": an_epoch, **found})
    whole, pieces = rows
    return {
        "benchmark": "clusters",
        "about": f"BIMP, {channels} channels, T = 4 in Euler steps of 1, option attention gram, {steps} steps",
        "rows": rows,
        "memory_ratio": pieces["peak_mb"] / whole["peak_mb"] if whole["peak_mb"] else None,
        "accuracy_difference": pieces["test"] - whole["test"],
        "note": "An epoch passes over the graph once: one step on the whole graph, four on clusters (64 of them, 16 a "
        "step, joined at random); both make the same number of steps. Peak memory is that of the process above the "
        "data, from partitioning to the last evaluation.",
    }
