"""BIMP trained on clusters of nodes beside full batch, on a generated graph of ogbn-arxiv's size."""

from typing import Any

from common import say
from memory import measured

# What a step of the optimizer works on -> settings: the whole graph, and a quarter of its clusters, joined at random.
_WAYS: dict[str, dict[str, Any]] = {
    "whole graph": {},
    "clusters": {"train.clusters": 64, "train.clusters_per_step": 16},
}


def run(quick: bool = False) -> dict[str, Any]:
    """Peak memory above the data, accuracy and time of both ways, evaluation on the whole graph included."""
    channels, epochs = (8, 2) if quick else (128, 20)
    name, split = ("csbm", 1) if quick else ("arxiv-synthetic", 0)
    flags = {
        "data.split": split,
        "model.hidden_channels": channels,
        "model.option_attention": "gram",
        "model.method": "euler",
        "model.time": 4.0,
        "train.epochs": epochs,
        "train.lr": 0.01,
    }
    rows = []
    for way, changes in _WAYS.items():
        say(f"  {way}")
        (found,) = measured("fitting", [{"dataset": name, "flags": {**flags, **changes}}])
        rows.append({"step_on": way, **found})
    whole, pieces = rows
    return {
        "benchmark": "clusters",
        "about": f"BIMP, {channels} channels, T = 4 in Euler steps of 1, option attention gram, {epochs} epochs",
        "rows": rows,
        "memory_ratio": pieces["peak_mb"] / whole["peak_mb"] if whole["peak_mb"] else None,
        "accuracy_difference": pieces["test"] - whole["test"],
        "note": "An epoch passes over the graph once: one step on the whole graph, four on clusters (64 of them, 16 a "
        "step). Peak memory is that of the process above the data, from partitioning to the last evaluation.",
    }
