"""BIMP at infinite depth beside T = 12 and 128 steps: accuracy, time and what the equilibrium costs to find."""

from statistics import mean, stdev
from typing import Any

import torch

from common import say
from dissensus import train

_DATASETS = ("cora", "citeseer", "pubmed")
_SPLITS = (101, 102, 103)
# depth -> changes of the tuned settings
_DEPTHS: dict[str, dict[str, Any]] = {
    "T = 12": {"time": 12.0},
    "128 steps": {"time": 128.0},
    "equilibrium, u = u*": {"depth": "equilibrium", "attention_ratio": 1.0},
    "equilibrium, u = 0.9 u*": {"depth": "equilibrium", "attention_ratio": 0.9},
}


def run(quick: bool = False) -> dict[str, Any]:
    """Test accuracy over splits and milliseconds an epoch, training and evaluation included."""
    datasets, splits = (("csbm",), (1,)) if quick else (_DATASETS, _SPLITS)
    return {
        "benchmark": "infinite",
        "about": "BIMP's accuracy and time at T = 12, at 128 Euler steps of 1, and at the equilibrium",
        "rows": [_case(name, depth, splits, quick) for name in datasets for depth in _DEPTHS],
        "note": "The preset tuned but for the depth and, on Pubmed, the selection over solver time; splits "
        f"{', '.join(map(str, splits))}. Iterations are those of the trained models, by Anderson's method; the "
        "residual is the largest.",
    }


def _case(name: str, depth: str, splits: tuple[int, ...], quick: bool) -> dict[str, Any]:
    say(f"  {name}, {depth}")
    runs = [_fit(name, depth, split, quick) for split in splits]
    found = [_equilibrium(run) for run in runs if depth.startswith("equilibrium")]
    tests = [run.test for run in runs]
    return {
        "dataset": name,
        "depth": depth,
        "test": mean(tests),
        "std": stdev(tests) if len(tests) > 1 else None,
        "splits": len(tests),
        "ms_per_epoch": mean(1e3 * run.seconds / len(run.history) for run in runs),
        "iterations": mean(point.iterations for point in found) if found else None,
        "residual": max(point.residual for point in found) if found else None,
    }


def _fit(name: str, depth: str, split: int, quick: bool) -> train.Result:
    changes = {f"model.{key}": value for key, value in _DEPTHS[depth].items()}
    if quick:
        changes |= {"train.epochs": 2, "model.hidden_channels": 8}
    preset = "none" if quick else "tuned"
    # An equilibrium has no time to select.
    changes |= {"data.split": split, "train.select_time": False}
    return train.run(train.resolve(name, "bimp", preset=preset, flags=changes))


def _equilibrium(run: train.Result) -> Any:
    graph = run.dataset.split(run.config.data.split)
    with torch.no_grad():
        return run.model.equilibrium(graph.x, graph.edge_index)
