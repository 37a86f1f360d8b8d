"""Time for each edge and step, and peak memory, as graphs grow and as time grows; 128 channels."""

import math
from typing import Any

from common import clock, opinion, random_graph, say
from dissensus.solve import Discrete, Euler, solve
from memory import measured

_DEGREE = 14
_EDGES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
_STEPS = (8, 64, 512)


def run(quick: bool = False) -> dict[str, Any]:
    """Nanoseconds for each edge and Euler step, forward and backward; megabytes by size and by number of steps."""
    edges, steps, channels = (_EDGES[:2], _STEPS[:1], 8) if quick else (_EDGES, _STEPS, 128)
    times = [_time(count, channels, steps[0]) for count in edges]
    costs = [row["ns_per_edge_and_step"] for row in times]
    sizes = [(count, steps[0], "discrete") for count in edges]
    lengths = [(edges[1], count, gradient) for gradient in ("discrete", "adjoint") for count in steps]
    memory = _memory(sizes + lengths, channels)
    by_size, by_steps = memory[: len(sizes)], memory[len(sizes) :]
    return {
        "benchmark": "scaling",
        "about": f"BIMP's field, {channels} channels, mean degree {_DEGREE}, Euler steps forward and backward",
        "time": times,
        "largest_over_smallest_cost": max(costs) / min(costs),
        "memory_by_size": by_size,
        "memory_exponent": _exponent(*((row["edges"], row["peak_mb"]) for row in (by_size[0], by_size[-1]))),
        "memory_by_steps": by_steps,
        "note": "Peak memory is that of the process above what it holds before the integration, also in states of the "
        "graph. The discrete gradient has memory=0: as few states as it can do with. An exponent of 1 is memory linear "
        "in the size.",
    }


def _time(edges: int, channels: int, steps: int) -> dict[str, Any]:
    nodes = edges // _DEGREE
    say(f"  time: {edges} edges")
    field, x = opinion(random_graph(nodes, edges), nodes, channels)
    cotangent = x.new_ones(x.shape)

    def whole() -> None:
        solve(field, x, 0.5 * steps, Euler(0.5), Discrete(memory=0)).state.backward(cotangent)

    seconds = clock(whole, repeats=max(1, 100_000 // edges), rounds=3)
    return {
        "edges": edges,
        "nodes": nodes,
        "ms_per_step": 1e3 * seconds / steps,
        "ns_per_edge_and_step": 1e9 * seconds / steps / edges,
    }


def _memory(cases: list[tuple[int, int, str]], channels: int) -> list[dict[str, Any]]:
    say(f"  memory: {', '.join(f'{edges} edges x {steps} steps ({gradient})' for edges, steps, gradient in cases)}")
    options = [
        {"nodes": edges // _DEGREE, "edges": edges, "channels": channels, "steps": steps, "gradient": gradient}
        for edges, steps, gradient in cases
    ]
    rows = []
    for option, found in zip(options, measured("steps", options), strict=True):
        state = 4e-6 * channels * option["nodes"]
        rows.append({**option, **found, "peak_states": found["peak_mb"] / state})
    return rows


def _exponent(first: tuple[float, float], last: tuple[float, float]) -> float | None:
    """p of ``y ~ x^p`` through two points; None where a peak was too small to be seen."""
    if min(first[1], last[1]) <= 0.0:
        return None
    return math.log(last[1] / first[1]) / math.log(last[0] / first[0])
