"""Aggregation as SGC and DGC do it, and what Lemma 5.5 assumes of BIMP's Jacobian."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from dissensus.studies.theory._check import Fact, rule
from dissensus.studies.theory._setting import Setting

_VANISHED = 1e-6  # relative to the start
_EXACT = 1e-12


def symmetric(setting: Setting) -> tuple[Tensor, Tensor]:
    r""":math:`\hat A = D^{-1/2} (A + I) D^{-1/2}` of the graph, [n, n], and its degrees D with self-loops, [n, 1]."""
    adjacent = (setting.communication != 0).double().fill_diagonal_(1.0)
    adjacent = torch.maximum(adjacent, adjacent.T)
    degrees = adjacent.sum(1, keepdim=True)
    return adjacent / (degrees * degrees.T).sqrt(), degrees


@rule(
    "sgc-dgc",
    where="Section 4.1, examples of Lemma 4.1",
    statement="SGC and DGC oversmooth: the Dirichlet energy tends to 0",
    note="Both aggregate with the symmetric D^(-1/2) (A + I) D^(-1/2), which is not right stochastic: the states tend "
    "to a multiple of the root of the degrees, of rank one and not constant, so by the printed definition they do not "
    "oversmooth. The states divided by the root of the degrees do.",
)
def sgc_dgc(setting: Setting) -> Iterator[Fact]:
    """``X <- A^ X`` and ``X' = (A^ - I) X`` until all but the leading mode have fallen by exp(-16)."""
    matrix, degrees = symmetric(setting)
    values, vectors = torch.linalg.eigh(matrix)
    second = float(values[:-1].abs().max())
    layers = math.ceil(16.0 / max(-math.log(second), 1e-3))
    time = 16.0 / max(1.0 - float(values[-2]), 1e-3)
    start = setting.start
    ends = {
        "SGC": vectors @ (values[:, None] ** layers * (vectors.T @ start)),
        "DGC": vectors @ (torch.exp(time * (values[:, None] - 1.0)) * (vectors.T @ start)),
    }
    before = setting.relative_energy(start / degrees.sqrt())
    for name, end in ends.items():
        scaled = setting.relative_energy(end / degrees.sqrt()) / before
        yield Fact(f"{name}, X / sqrt(degree): relative energy, end / start", scaled, high=_VANISHED)
    for name, end in ends.items():
        ratio = setting.relative_energy(end) / setting.relative_energy(start)
        yield Fact(f"{name}: relative energy, end / start", ratio, high=_VANISHED, printed=True)


@rule(
    "metzler",
    where="Lemma 5.5",
    statement="the Jacobian of BIMP is a Metzler matrix, and irreducible",
    note="With alpha >= 0 no entry beside the diagonal is negative. A power of the pattern with the diagonal filled "
    "has no zero: every opinion reaches every other. It needs a strongly connected graph of agents and of options.",
)
def metzler(setting: Setting) -> Iterator[Fact]:
    """Entries beside the diagonal, and the pattern's reach, at X = 0 and at a random state."""
    for label, x in (("X = 0", torch.zeros_like(setting.start)), ("X(0)", setting.start)):
        jacobian = setting.jacobian(x)
        beside = jacobian - torch.diag(jacobian.diagonal())
        yield Fact(f"smallest entry beside the diagonal at {label} / largest", _share(beside), low=-_EXACT)
        reach = (beside > 0).double() + torch.eye(len(beside), dtype=x.dtype)
        for _ in range(math.ceil(math.log2(len(beside)))):
            reach = ((reach @ reach) > 0).double()
        yield Fact(f"pairs that do not reach each other at {label}", float((reach == 0).sum()), high=0.0)


def _share(matrix: Tensor) -> float:
    return float(matrix.min() / matrix.abs().max().clamp_min(torch.finfo(matrix.dtype).tiny))


@rule(
    "step-limit",
    where="ours",
    statement="at u* a step of Euler is non-expansive at every state up to 1/(d - u* min_i m_ii), and no further",
    note="m_ii = alpha - 1 + (1 + (A_a)_ii)(1 + (A_o)_ii) is the diagonal of the mixing matrix. The limit is 2/d where "
    "that is smaller, and never below 1/d, which it tends to where nobody listens to themselves and alpha = 0. The "
    "norm of a row is convex in sech^2, so that X = 0 and a saturated state are the worst.",
)
def step_limit(setting: Setting) -> Iterator[Fact]:
    """The larger infinity-norm of ``I + dt J`` at X = 0 and where S is flat, at the limit and beyond."""
    d, own = setting.damping, float(setting.mixing.diagonal().min())
    identity = torch.eye(setting.start.numel(), dtype=setting.start.dtype)
    jacobians = (setting.jacobian(torch.zeros_like(setting.start)), -d * identity)
    limit = min(2.0 / d, 1.0 / (d - setting.attention * own))

    def norm(step: float) -> float:
        return max(float(torch.linalg.matrix_norm(identity + step * j, math.inf)) for j in jacobians)

    yield Fact("d x limit", d * limit, low=1.0)
    yield Fact("norm at the limit", norm(limit), high=1.0 + 1e-9)
    yield Fact("norm at 1/d", norm(1.0 / d), high=1.0 + 1e-9)
    yield Fact("norm at 1.01 x limit", norm(1.01 * limit), low=1.0 + 1e-4)
