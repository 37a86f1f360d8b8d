"""One training epoch of BIMP on Cora (forward, backward, step) against plain PyG + torchdiffeq, in one process."""

import time
from statistics import median
from typing import Any

import torch

from epochs import Run, create, graph
from plain import plain

_EPOCHS = 20


def run(quick: bool = False) -> dict[str, Any]:
    """Milliseconds of both (medians), their ratio, and the largest difference of their losses."""
    data, title = graph("cora", quick=quick)
    rows = []
    for dropout, changes in (("the paper's", {}), ("none", {"dropout": 0.0, "input_dropout": 0.0})):
        model, settings = create("cora", "bimp", data, option_attention="gram", own_score=8.0, **changes)
        rows.append({"graph": title, "dropout": dropout, **_race(Run(model, data, settings), settings, quick)})
    return {
        "benchmark": "epoch",
        "about": "one training epoch of BIMP on Cora: 80 options, dopri5 at tolerance 1e-3, T = 12.27",
        "rows": rows,
        "note": "Before every epoch the plain version takes our parameters, so that both losses are of one problem; "
        "with dropout the two draw different numbers.",
    }


def _race(ours: Run, settings: Any, quick: bool) -> dict[str, Any]:
    spent: tuple[list[float], list[float]] = ([], [])
    difference = 0.0
    for epoch in range(2 if quick else _EPOCHS):
        losses = []
        for run, seconds in zip((Run(plain(ours.model), ours.graph, settings), ours), spent, strict=True):
            torch.manual_seed(epoch)
            begun = time.perf_counter()
            losses.append(run.step())
            seconds.append(time.perf_counter() - begun)
        difference = max(difference, abs(losses[0] - losses[1]))
    plain_ms, ours_ms = (1e3 * median(seconds[1:]) for seconds in spent)
    return {
        "ours_ms": ours_ms,
        "plain_ms": plain_ms,
        "speedup": plain_ms / ours_ms,
        "largest_loss_difference": difference,
    }
