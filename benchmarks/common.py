"""What the benchmarks share: sizes, clocks, and BIMP's field on a random graph."""

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dissensus.dynamics import Opinion
from dissensus.graph import build

# nodes, undirected edges, features, classes
SIZES = {
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "computers": (13_752, 245_861, 767, 10),
    "arxiv": (169_343, 1_166_243, 128, 40),
}


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def clock(function: Callable[[], Any], repeats: int, rounds: int = 5) -> float:
    """Seconds of a call: the best mean of some rounds, as others on the machine only ever slow it down."""
    function()
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(repeats):
            function()
        best = min(best, (time.perf_counter() - begun) / repeats)
    return best


def together(functions: dict[str, Callable[[], Any]], repeats: int, rounds: int) -> dict[str, float]:
    """Seconds of several calls, their rounds in turn."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            best[name] = min(best[name], clock(function, repeats, rounds=1))
    return best


def random_graph(nodes: int, edges: int, seed: int = 0) -> Tensor:
    """``edge_index`` of about ``edges`` directed edges, every one with its reverse, between nodes drawn uniformly."""
    generator = torch.Generator().manual_seed(seed)
    one, other = torch.randint(nodes, (2, edges // 2), generator=generator)
    return torch.stack([torch.cat([one, other]), torch.cat([other, one])])


def opinion(edge_index: Tensor, nodes: int, channels: int) -> tuple[Opinion, Tensor]:
    """BIMP's field on a graph, with random right-stochastic matrices that need gradients, and a state."""
    torch.manual_seed(0)
    pattern = build(edge_index, nodes).pattern
    degree = pattern.rowptr.diff()
    values = (1.0 / degree.repeat_interleave(degree)).requires_grad_()
    options = torch.randn(channels, channels).softmax(-1).requires_grad_()
    x = 0.5 * torch.randn(nodes, channels)
    return Opinion(pattern, values, options, x.clone().requires_grad_(), damping=1.0, attention=0.25), x
