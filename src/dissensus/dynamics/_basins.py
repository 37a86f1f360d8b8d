"""Which stable states there are, and how many starts lead to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from dissensus.dynamics._convert import AnyGraph
from dissensus.dynamics._equilibrium import NEUTRAL, newton
from dissensus.dynamics._flow import Array, Flow
from dissensus.dynamics._system import Parameters, System, as_state, system
from dissensus.errors import InputError

# States that differ by less, relative to saturated ones, are one equilibrium.
SAME_STATE = 1e-4
# Up to this many opinions, every pattern of signs is a start.
_ALL_SIGNS_UP_TO = 12
_AT_ONCE = 2000


@dataclass(frozen=True)
class Basins:
    """Stable equilibria and the starts that lead to them.

    Attributes:
        states: the equilibria, by descending share, [k, n, o].
        shares: of the starts that lead to each, [k]; what is missing to one oscillates or settles slowly.
        labels: the equilibrium of each start, [runs]; -1 for none.
    """

    states: Array = field(repr=False)
    shares: Array
    labels: Array = field(repr=False)


def basins(
    graph: System | AnyGraph,
    x0: Any = None,
    *,
    runs: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **parameters: Unpack[Parameters],
) -> Basins:
    """The stable equilibria that opinions settle at, and the share of starts that lead to each.

    Args:
        graph: a :class:`System`, or a graph with parameters.
        x0: starts, [runs, n, o]; None draws ``runs`` of them uniformly up to saturation, [-1/d, 1/d], and of systems of
            up to 12 opinions also tries every pattern of signs, without counting these in the shares: then, as a rule,
            every stable equilibrium is found.
        runs: number of random starts.
        seed: of the random starts.
        progress: called with the number of finished starts and of all.
        **parameters: see :class:`System`.
    """
    made = system(graph, **parameters)
    flow = made.flow()
    if x0 is None:
        if not isinstance(runs, int | np.integer) or runs < 1:
            raise InputError(f"runs is {runs!r}: give at least 1")
        starts = np.random.default_rng(seed).uniform(-1.0, 1.0, (runs, *flow.damping.shape))
        starts = starts * flow.saturated(1.0)
        tried = np.concatenate([starts, sign_patterns(flow) * flow.saturated(1.0)])
    else:
        tried = starts = as_state(x0, made.shape).detach().numpy().reshape(-1, *flow.damping.shape)
    found: list[Array] = []
    labels = np.full(len(tried), -1)
    for first in range(0, len(tried), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        labels[part] = attractors(flow, tried[part], 1.0, found)
        if progress is not None:
            progress(min(first + _AT_ONCE, len(tried)), len(tried))
    labels = labels[: len(starts)]
    counts = np.bincount(labels[labels >= 0], minlength=len(found))
    order = np.argsort(-counts, kind="stable")
    rank = np.append(np.argsort(order), -1)
    states = np.stack([found[k] for k in order]) if found else np.empty((0, *flow.damping.shape))
    return Basins(states.reshape(-1, *made.shape), counts[order] / len(starts), rank[labels])


def sign_patterns(flow: Flow) -> Array:
    """Every pattern of signs, of a small system; none of a large one. [patterns, n, o]"""
    if flow.size > _ALL_SIGNS_UP_TO:
        return np.empty((0, *flow.damping.shape))
    bits = np.arange(2**flow.size)[:, None] >> np.arange(flow.size) & 1
    return (2.0 * bits - 1.0).reshape(-1, *flow.damping.shape)


def attractors(flow: Flow, x: Array, u: float, found: list[Array]) -> Array:
    """Follow many starts, [runs, n, o], to stable equilibria: adds new ones to ``found``, returns each start's, or -1.

    All starts take the same steps, by the classical Runge-Kutta method, and leave the ensemble as they settle.
    """
    reach = u * np.abs(flow.attention).max() * abs(flow.matrix).sum(axis=1).max()
    h = 1.0 / (float(flow.damping.max()) + float(reach))
    labels, alive, size = np.full(len(x), -1), np.arange(len(x)), SAME_STATE * flow.scale(u)
    x = x.copy()
    for step in range(1, int(1000.0 / (float(flow.damping.min()) * h)) + 1):
        k = [flow.rates(x, u)]
        for share in (0.5, 0.5, 1.0):
            k.append(flow.rates(x + share * h * k[-1], u))
        x = x + h / 6.0 * (k[0] + 2.0 * k[1] + 2.0 * k[2] + k[3])
        if step % 25:
            continue
        slow = np.abs(k[0]).max((1, 2)) <= 0.1 * size * flow.damping.max()
        for index in np.flatnonzero(slow):
            labels[alive[index]] = _match(flow, x[index], u, found, size)
        keep = ~slow | (labels[alive] < 0)
        x, alive = x[keep], alive[keep]
        if len(alive) == 0:
            break
    return labels


def _match(flow: Flow, x: Array, u: float, found: list[Array], size: float) -> int:
    """The number of the stable equilibrium at x, a new one if need be; -1 if there is none."""
    for number, state in enumerate(found):
        if np.abs(x - state).max() <= size:
            return number
    settled = newton(flow, x, u)
    if settled is None or np.abs(settled - x).max() > 100.0 * size:
        return -1
    for number, other in enumerate(found):
        if np.abs(settled - other).max() <= size:
            return number
    if flow.leading(flow.evaluate(settled, u))[0][0].real > NEUTRAL * flow.damping.max():
        return -1
    found.append(settled)
    return len(found) - 1
