"""BIMP trained on clusters of nodes beside full batch, on a generated graph of ogbn-arxiv's size."""

from typing import Any

from common import say
from memory import measured

# What a step of the optimizer works on -> steps an epoch, settings: the whole graph, and a third of its clusters.
_WAYS: dict[str, tuple[int, dict[str, Any]]] = {
    "whole graph": (1, {}),
    "clusters": (3, {"train.clusters": 64, "train.clusters_per_step": 22}),
}


def run(quick: bool = False) -> dict[str, Any]:
    """Peak memory above the data, accuracy and time of both ways, evaluation on the whole graph included."""
    channels, epochs = (8, 4) if quick else (128, 60)
    name, split = ("csbm", 1) if quick else ("arxiv-synthetic", 0)
    flags = {
        "data.split": split,
        "model.hidden_channels": channels,
        "model.option_attention": "gram",
        "model.method": "euler",
        "model.time": 4.0,
        "train.lr": 0.01,
        "train.epochs": epochs,
    }
    rows, curves = [], []
    for way, (steps, changes) in _WAYS.items():
        say(f"  {way}: {epochs} epochs of {steps} steps")
        (found,) = measured("fitting", [{"dataset": name, "flags": {**flags, **changes}}])
        curves.append(found.pop("validation"))
        # After as many steps of the optimizer as the whole graph makes in all.
        found["val_at_equal_steps"] = max(curves[-1][: epochs // steps])
        rows.append({"step_on": way, "steps_an_epoch": steps, **found})
    whole, pieces = rows
    return {
        "benchmark": "clusters",
        "about": f"BIMP, {channels} channels, T = 4 in Euler steps of 1, option attention gram, {epochs} epochs",
        "rows": rows,
        "validation": [
            {"epoch": epoch, **{way: curve[epoch - 1] for way, curve in zip(_WAYS, curves, strict=True)}}
            for epoch in range(max(1, epochs // 12), epochs + 1, max(1, epochs // 12))
        ],
        "memory_ratio": pieces["peak_mb"] / whole["peak_mb"] if whole["peak_mb"] else None,
        "accuracy_difference": pieces["test"] - whole["test"],
        "equal_steps_difference": pieces["val_at_equal_steps"] - whole["val_at_equal_steps"],
        "note": "An epoch passes over the graph once: one step on the whole graph, three on clusters (64 of them, 22 a "
        "step, joined at random). Test accuracy is compared after as many epochs, validation accuracy also after as "
        f"many steps ({epochs}). Peak memory is that of the process above the data, from partitioning to the last "
        "evaluation.",
    }
