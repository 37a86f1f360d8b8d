"""One training epoch of BIMP (forward, backward, step) against plain PyG + torchdiffeq, in one process.

Cora with the paper's settings: 80 options, dopri5 at tolerance 1e-3, T = 12.27. Epochs of the two alternate, and before
each the plain model takes our parameters, so that both see the same problem and their losses can be compared.
"""

import copy
import time
from statistics import median
from typing import Any

import torch
from torch.nn import functional as F
from torch_geometric.data import Data

from dissensus import data
from dissensus.errors import InputError
from dissensus.nn import BIMP
from plain import PlainBIMP

# The paper's settings for Cora.
SETTINGS = {"heads": 4, "attention_channels": 16, "time": 12.2695, "damping": 0.8952, "rtol": 1e-3, "atol": 1e-3}
DROPOUT = {"dropout": 0.1353, "input_dropout": 0.4172}


def run(epochs: int = 20) -> dict[str, Any]:
    """Milliseconds an epoch of both (medians), their ratio, and the largest difference of the losses."""
    graph, name = cora()
    exact = _race(graph, {"dropout": 0.0, "input_dropout": 0.0}, max(epochs // 4, 3))
    timed = _race(graph, DROPOUT, epochs)
    return {
        "benchmark": "training",
        "graph": name,
        "epochs": epochs,
        "plain_ms": timed["plain_ms"],
        "ours_ms": timed["ours_ms"],
        "speedup": timed["plain_ms"] / timed["ours_ms"],
        "speedup_without_dropout": exact["plain_ms"] / exact["ours_ms"],
        "largest_loss_difference_without_dropout": exact["difference"],
        "evaluations": {"plain": exact["plain_evaluations"], "ours": exact["ours_evaluations"]},
    }


def cora() -> tuple[Data, str]:
    """Cora's first split; a generated graph of its size where Cora is not at hand."""
    try:
        return data.load("cora").split(1), "cora"
    except InputError:
        generator = torch.Generator().manual_seed(0)
        graph = data.csbm(nodes=2708, classes=7, features=1433, degree=3.9, seed=0).split(1)
        graph.x = (torch.rand(2708, 1433, generator=generator) < 0.0127).float()
        return graph, "generated, of Cora's size"


def _race(graph: Data, dropout: dict[str, float], epochs: int) -> dict[str, Any]:
    torch.manual_seed(0)
    ours = BIMP(graph.num_features, 80, int(graph.y.max()) + 1, **SETTINGS, **dropout)
    plain = PlainBIMP(copy.deepcopy(ours))
    optimizers = [torch.optim.Adamax(m.parameters(), lr=0.0178, weight_decay=0.0078) for m in (ours, plain)]
    seconds: tuple[list[float], list[float]] = ([], [])
    difference = 0.0
    for epoch in range(epochs + 2):
        plain.take(ours)
        losses = []
        for model, optimizer, spent in zip((ours, plain), optimizers, seconds, strict=True):
            torch.manual_seed(epoch)
            begun = time.perf_counter()
            losses.append(_epoch(model, graph, optimizer))
            if epoch >= 2:  # the first ones warm up
                spent.append(time.perf_counter() - begun)
        difference = max(difference, abs(losses[0] - losses[1]))
    evaluations = ours.integrate(graph.x, graph.edge_index).stats.evaluations
    return {
        "ours_ms": 1e3 * median(seconds[0]),
        "plain_ms": 1e3 * median(seconds[1]),
        "difference": difference,
        "ours_evaluations": evaluations,
        "plain_evaluations": plain.evaluations / (epochs + 2),
    }


def _epoch(model: torch.nn.Module, graph: Data, optimizer: torch.optim.Optimizer) -> float:
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(graph.x, graph.edge_index)[graph.train_mask], graph.y[graph.train_mask])
    loss.backward()
    optimizer.step()
    return loss.item()
