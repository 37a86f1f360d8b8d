"""Linear aggregation and Laplacian dynamics without input."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.solve import Dopri5, solve
from dissensus.studies.theory._check import Fact, rule
from dissensus.studies.theory._laplacian import consensus_weights, laplacian_of, linear_flow, spectral_gap
from dissensus.studies.theory._setting import Setting

_VANISHED = 1e-6  # a relative energy below this counts as none
_EXACT = 1e-9
_POWERS = 10_000  # at most, on graphs whose differences hardly shrink


def _late_rate(matrix: Tensor, x: Tensor, rate: float) -> float:
    """The rate at which differences shrink under powers of a matrix, once slower modes have outlived the others.

    Consensus is taken out and the rest rescaled at every power, so that rounding does not end the decay; ``rate`` is
    about what is expected.
    """
    waiting = min(math.ceil(100.0 / rate), _POWERS)
    w = consensus_weights(torch.eye(len(matrix), dtype=x.dtype) - matrix)
    logs = 0.0
    for power in range(2 * waiting):
        x = matrix @ x
        x = x - w @ x
        size = float(x.norm())
        x = x / size
        logs += math.log(size) if power >= waiting else 0.0
    return -logs / waiting


def _random(setting: Setting, *shape: int) -> Tensor:
    # Drawn from a fixed seed: a check on the same setting is the same number.
    return torch.from_numpy(np.random.default_rng(setting.agents).normal(size=shape))


def _after_layers(setting: Setting, a: Tensor, depth: int) -> float:
    """Relative energy after layers ``X <- A X W`` with random W, rescaled so that nothing overflows."""
    channels = setting.start.shape[1]
    x = setting.start
    for weight in _random(setting, depth, channels, channels):
        x = a @ x @ weight
        x = x / x.norm()
    return setting.relative_energy(x)


@rule(
    "linear-aggregation",
    where="Lemma 4.1",
    statement="X <- A X W oversmooths, for all inputs and all graphs",
    note="Right where A is right stochastic with self-loops. That A is right stochastic is assumed without loss of "
    "generality, but A = D A~ does not commute with D (nor does X D W have matching sizes): a sum over "
    "neighbours tends to the leading eigenvector of A, of rank one and not constant. Without self-loops a "
    "bipartite graph alternates for ever. The energy is relative to the squared norm, as the weights W can "
    "make the raw one anything.",
)
def linear_aggregation(setting: Setting) -> Iterator[Fact]:
    """``X^{l+1} = A X^l W^l``: the relative energy falls as |lambda_2|^(2 l)."""
    a = setting.communication
    modulus = float(torch.linalg.eigvals(a).abs().sort(descending=True).values[1])
    rate = max(-math.log(max(modulus, 1e-9)), 1e-3)
    layers = math.ceil(16.0 / rate)
    yield Fact("relative energy, last layer", _after_layers(setting, a, layers), high=_VANISHED)
    yield Fact("contraction rate / -ln |lambda_2|", _late_rate(a, setting.start, rate) / rate, 0.95, 1.05)
    sums = _after_layers(setting, (a != 0).double(), 400)
    yield Fact("relative energy, sum over neighbours", sums, high=_VANISHED, printed=True)
    path = torch.diag(torch.ones(setting.agents - 1, dtype=a.dtype), 1)
    path = path + path.T
    alternating = _after_layers(setting, path / path.sum(1, keepdim=True), 400)
    yield Fact("relative energy, path without self-loops", alternating, high=_VANISHED, printed=True)


@rule(
    "consensus-value",
    where="Section 3.2",
    statement="linear consensus is linear in X(0), the same on every graph",
    note="The value is w' X(0) with the left eigenvector w of the graph: linear in the start, but it depends on "
    "the graph unless the matrix is doubly stochastic.",
)
def consensus_value(setting: Setting) -> Iterator[Fact]:
    """The limit of ``X' = -L X`` is ``1 w' X(0)``."""
    laplacian = laplacian_of(setting.communication)
    limit = linear_flow(-laplacian, setting.start, 30.0 / spectral_gap(laplacian))
    value = consensus_weights(laplacian) @ setting.start
    yield Fact("|limit - 1 w' X(0)|", float((limit - value).abs().max()), high=_VANISHED)
    squared = setting.communication**2
    other = consensus_weights(laplacian_of(squared / squared.sum(1, keepdim=True))) @ setting.start
    yield Fact("difference to a graph of other weights", float((value - other).abs().max()), high=_EXACT, printed=True)


@rule(
    "laplacian-dynamics",
    where="Lemma 4.2",
    statement="X' = -L X oversmooths, for all inputs and all graphs",
    note="With L = D - A on a connected undirected graph (see laplacian-sign); also where the influence changes in "
    "time.",
)
def laplacian_dynamics(setting: Setting) -> Iterator[Fact]:
    """The energy falls as exp(-2 mu t) with the spectral gap mu of L."""
    laplacian = laplacian_of(setting.communication)
    gap = spectral_gap(laplacian)
    field = ReactionDiffusion(setting.pattern, setting.values, linear=-setting.communication.sum(1, keepdim=True))
    late = solve(field, setting.start, 12.0 / gap, Dopri5(1e-9, 1e-13)).state
    start = setting.energy(setting.start)
    yield Fact("energy at the end / at the start", setting.energy(late) / start, high=_VANISHED)
    step = 0.1 / gap
    flow = torch.from_numpy(scipy.linalg.expm(-step * laplacian.numpy()))
    yield Fact("contraction rate / mu", _late_rate(flow, setting.start, 0.1) / 0.1, 0.95, 1.05)
    rng, x = np.random.default_rng(setting.agents), setting.start
    for _ in range(math.ceil(40.0 / gap)):
        drawn = setting.communication * torch.from_numpy(rng.random(setting.communication.shape) + 0.1)
        x = 0.5 * x + 0.5 * (drawn / drawn.sum(1, keepdim=True)) @ x
    yield Fact("the same, influence redrawn every step", setting.energy(x) / start, high=_VANISHED)


@rule(
    "laplacian-sign",
    where="Section 4.2, erratum",
    statement="X' = -L X with L = A - D oversmooths",
    note="With the printed sign the dynamics is the diffusion equation run backwards and diverges; L = D - A is meant.",
)
def laplacian_sign(setting: Setting) -> Iterator[Fact]:
    """Both signs, the right one up to the time at which differences have fallen by exp(-10)."""
    laplacian = laplacian_of(setting.communication)
    start, norm = setting.energy(setting.start), float(setting.start.norm())
    right = linear_flow(-laplacian, setting.start, 10.0 / spectral_gap(laplacian))
    printed = linear_flow(laplacian, setting.start, 20.0)
    yield Fact("energy at the end / at the start, L = D - A", setting.energy(right) / start, high=_VANISHED)
    yield Fact("growth of the norm until t = 20, L = A - D", float(printed.norm()) / norm, high=1.0, printed=True)
