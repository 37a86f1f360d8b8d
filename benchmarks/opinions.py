"""Ensembles of opinions beside a loop over scipy's integrator, large sparse networks, and diagrams by either solver."""

import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse
from scipy.integrate import solve_ivp

from common import say
from dissensus import dynamics
from dissensus.dynamics import _continuation, _flow

TIME = 20.0


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, and its result."""
    begun = time.perf_counter()
    result = function()
    return time.perf_counter() - begun, result


def ensemble(runs: int, agents: int, looped: int, repeats: int = 3) -> dict[str, float]:
    """All runs of one network in one call, the fastest of some, and some of the runs one by one."""
    graph = nx.watts_strogatz_graph(agents, 6, 0.2, seed=0)
    matrix = dynamics.as_matrix(graph)
    u = 1.5 * dynamics.critical_attention(matrix)
    starts = np.random.default_rng(0).uniform(-1.0, 1.0, (runs, agents, 1))
    times = [seconds(lambda: dynamics.simulate(matrix, starts, attention=u, times=[0.0, TIME])) for _ in range(repeats)]
    ours, found = min(time for time, _ in times), times[0][1]
    mixing = scipy.sparse.csr_array(matrix + scipy.sparse.eye_array(agents))

    def right(_: float, x: np.ndarray) -> np.ndarray:
        return np.tanh(u * (mixing @ x)) - x

    def loop() -> np.ndarray:
        given = {"method": "RK45", "rtol": 1e-6, "atol": 1e-9}
        return np.stack([solve_ivp(right, (0.0, TIME), x[:, 0], **given).y[:, -1] for x in starts[:looped]])

    loops = [seconds(loop) for _ in range(repeats)]
    one_by_one, final = min(time for time, _ in loops), loops[0][1]
    difference = float(np.abs(found.final[:looped, :, 0].numpy() - final).max())
    scipy_seconds = one_by_one * runs / looped
    outcomes, counts = seconds(found.outcomes)
    say(f"  {runs} runs: {ours:.1f} s, scipy in a loop {scipy_seconds:.0f} s; {counts} in {outcomes:.2f} s")
    return {
        "runs": runs,
        "agents": agents,
        "seconds": ours,
        "scipy_seconds": scipy_seconds,
        "scipy_runs_measured": looped,
        "scipy_over_ours": scipy_seconds / ours,
        "largest_difference": difference,
        "outcomes_seconds": outcomes,
    }


def large(agents: int, degree: int = 8) -> dict[str, float]:
    """A random network, sparse throughout."""
    graph = nx.fast_gnp_random_graph(agents, degree / agents, seed=0)
    component = max(nx.connected_components(graph), key=len)
    matrix = dynamics.as_matrix(graph.subgraph(sorted(component)))
    start = np.random.default_rng(0).uniform(-1.0, 1.0, matrix.shape[0])
    critical, u = seconds(lambda: dynamics.critical_attention(matrix))
    simulated, _ = seconds(lambda: dynamics.simulate(matrix, start, attention=1.5 * u, times=[0.0, TIME]))
    settled, found = seconds(lambda: dynamics.equilibrium(matrix, start, attention=1.5 * u))
    say(f"  {matrix.shape[0]} agents: u* {critical:.1f} s, simulation {simulated:.1f} s, equilibrium {settled:.1f} s")
    return {
        "agents": matrix.shape[0],
        "edges": matrix.nnz // 2,
        "critical_seconds": critical,
        "simulate_seconds": simulated,
        "equilibrium_seconds": settled,
        "residual": found.residual,
    }


def diagrams(sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """A diagram of three branches, its linear systems solved densely and by iteration."""
    usual, rows = (_continuation.DENSE_UP_TO, _flow.ALL_UP_TO), []
    try:
        for agents in sizes:
            graph = nx.barabasi_albert_graph(agents, 3, seed=1)
            u = dynamics.critical_attention(graph)
            row: dict[str, float] = {"agents": agents}
            for name, limit in (("dense", 10**9), ("iterative", 0)):
                _continuation.DENSE_UP_TO = _flow.ALL_UP_TO = limit
                run = seconds(lambda: dynamics.bifurcation(graph, u_max=1.3 * u, max_branches=3))  # noqa: B023
                row[f"{name}_seconds"] = run[0]
            say(f"  {agents} agents: dense {row['dense_seconds']:.2f} s, iterative {row['iterative_seconds']:.2f} s")
            rows.append(row)
    finally:
        _continuation.DENSE_UP_TO, _flow.ALL_UP_TO = usual
    return rows


def run(quick: bool = False) -> dict[str, Any]:
    """Seconds of an ensemble, of large networks, and of diagrams by either solver."""
    return {
        "benchmark": "opinions",
        "about": "nonlinear opinion dynamics at 1.5 u*, to T = 20 with a relative tolerance of 1e-6",
        "ensemble": ensemble(*((20, 10, 2) if quick else (10_000, 100, 100))),
        "large": large(300 if quick else 50_000),
        "diagrams": diagrams((20,) if quick else (60, 125, 250)),
        "note": "Ensembles are the fastest of three. The seconds of scipy's loop are those of the measured runs, times "
        "all over measured.",
    }
