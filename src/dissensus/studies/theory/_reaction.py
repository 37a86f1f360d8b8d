"""Laplacian dynamics with an input or a reaction: GRAND++ and GREAD."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.solve import Dopri5, solve
from dissensus.studies.theory._check import Fact, rule
from dissensus.studies.theory._laplacian import consensus_weights, laplacian_of, linear_flow, spectral_gap
from dissensus.studies.theory._setting import Setting

_VANISHED = 1e-6  # a relative energy below this counts as none
_EXACT = 1e-9


def _with_input(setting: Setting, source: Tensor) -> tuple[float, list[Tensor]]:
    """``X' = -L X + B`` at a late time and twice that, and the time."""
    laplacian = laplacian_of(setting.communication)
    time = 3e4 / spectral_gap(laplacian)
    return time, [linear_flow(-laplacian, setting.start, factor * time, source) for factor in (1.0, 2.0)]


@rule(
    "laplacian-with-input",
    where="Lemma 4.3",
    statement="X' = -L X + B oversmooths, for any B",
    note="In the sense of the relative energy, and unless w' B = 0 with the left null vector w of L: then there is "
    "a bounded equilibrium that is no consensus. (A source from which the plain mean is subtracted has w' B = "
    "0 exactly where L is symmetric.)",
)
def laplacian_with_input(setting: Setting) -> Iterator[Fact]:
    """A generic B, and one without a component along the ones-vector."""
    _, (_, late) = _with_input(setting, setting.source)
    yield Fact("relative energy, generic B", setting.relative_energy(late), high=_VANISHED)
    balanced = setting.source - consensus_weights(laplacian_of(setting.communication)) @ setting.source
    _, (_, settled) = _with_input(setting, balanced)
    yield Fact("relative energy, w' B = 0", setting.relative_energy(settled), high=_VANISHED, printed=True)


@rule(
    "grand++",
    where="Lemma A.1",
    statement="GRAND++-l oversmooths: X grows along the ones-vector",
    note="X tends to 1 (w' B) t plus a constant, so the relative energy falls as 1/t^2. The raw energy, by which "
    "oversmoothing is defined, tends to a positive constant and cannot show it.",
)
def grand_plus_plus(setting: Setting) -> Iterator[Fact]:
    """Late states of ``X' = -L X + B``."""
    time, (early, late) = _with_input(setting, setting.source)
    slope = consensus_weights(laplacian_of(setting.communication)) @ setting.source
    growth = (late - early) / time
    error = float((growth - slope).abs().max() / slope.abs().max())
    relative = [setting.relative_energy(x) for x in (early, late)]
    yield Fact("relative energy", relative[1], high=_VANISHED)
    yield Fact("|growth - 1 w' B| / |w' B|", error, high=1e-3)
    yield Fact("exponent of the relative energy in t", math.log2(relative[1] / relative[0]), -2.02, -1.98)
    yield Fact("raw energy", setting.energy(late), high=_VANISHED, printed=True)
    yield Fact("raw energy at 2 t / at t", setting.energy(late) / setting.energy(early), 0.99, 1.01)


def _gread_f(setting: Setting) -> ReactionDiffusion:
    # -L X + X (1 - X) = A X + (1 - rows of A) X - X^2
    linear = 1.0 - setting.communication.sum(1, keepdim=True)
    return ReactionDiffusion(setting.pattern, setting.values, linear=linear, quadratic=-1.0)


def _until(field: ReactionDiffusion, x: Tensor, size: float, longest: float) -> tuple[float, Tensor]:
    """Midpoint steps, shorter as the state grows, until an entry exceeds ``size`` or the time is over."""
    time = 0.0
    while time < longest and float(x.abs().max()) < size:
        step = 0.02 / (1.0 + float(x.abs().max()))
        x = x + step * field(time, x + 0.5 * step * field(time, x))
        time += step
    return time, x


def _negative(setting: Setting) -> Tensor:
    return -0.1 - setting.start.abs()


@rule(
    "gread-f",
    where="Lemma A.2",
    statement="GREAD-F diverges below a negative threshold -C",
    note="The threshold is 0: the largest entry obeys M' <= M (1 - M), so from a negative state some entry "
    "diverges before ln(1 + 1/|M|), in finite time. No C bounds |(L X)_i| by C |X_i|, as X_i can be 0 beside "
    "others. Positive states converge to consensus at one instead, which is oversmoothing by the raw energy.",
)
def gread_f(setting: Setting) -> Iterator[Fact]:
    """``X' = -L X + X (1 - X)`` from a state of negative entries, and from its mirror image."""
    start, field = _negative(setting), _gread_f(setting)
    bound = math.log1p(1.0 / float(-start.max()))
    time, late = _until(field, start, 1e8, 2.0 * bound)
    yield Fact("time of divergence / ln(1 + 1/|M|)", time / bound, high=1.0)
    yield Fact("largest |X|", float(late.abs().max()), low=1e8)
    touched = start.clone()
    touched[0] = 0.0
    moved = float((laplacian_of(setting.communication) @ touched)[0].abs().max())
    yield Fact("|(L X)_i| where X_i = 0", moved, high=_EXACT, printed=True)
    settled = solve(field, -start, 40.0, Dopri5(1e-9, 1e-12)).state
    yield Fact("|X - 1| from positive states", float((settled - 1.0).abs().max()), high=_VANISHED)


@rule(
    "gread-f-collapse",
    where="Lemma A.2",
    statement="diverging GREAD-F oversmooths: all features collapse",
    note="The entry that diverges first does so in finite time and leaves the others behind: relative to its size "
    "the state tends to a single node, the opposite of a constant. Exchange with neighbours is linear and "
    "cannot keep up with the square.",
)
def gread_f_collapse(setting: Setting) -> Iterator[Fact]:
    """The relative energy at divergence, channel by channel."""
    _, late = _until(_gread_f(setting), _negative(setting)[:, :1], 1e8, 20.0)
    size = float(late.abs().max())
    yield Fact("relative energy at |X| = 1e8", setting.relative_energy(late), high=_VANISHED)
    others = late.abs().flatten().sort().values[:-1] / size
    yield Fact("median of the others / largest", float(others.median()))


@rule(
    "gread-fb",
    where="Lemma A.2",
    statement="GREAD-FB* oversmooths: dominated by the ones-vector",
    note="For alpha > beta > 0 and in the sense of the relative energy. The raw energy grows with the state unless "
    "(alpha - beta) mu > beta.",
)
def gread_fb(setting: Setting) -> Iterator[Fact]:
    """``X' = ((beta - alpha) L + beta I) X``, followed in the frame that grows as exp(beta t)."""
    laplacian, beta = laplacian_of(setting.communication), setting.reaction
    matrix = (beta - setting.diffusion) * laplacian
    time = 12.0 / (abs(setting.diffusion - beta) * spectral_gap(laplacian))
    x = linear_flow(matrix, setting.start, time)
    x = x / x.norm()
    later = linear_flow(matrix, x, 1.0)
    yield Fact("relative energy", setting.relative_energy(x), high=_VANISHED)
    yield Fact("growth rate / beta", 1.0 + math.log(float(later.norm())) / beta, 1.0 - 1e-3, 1.0 + 1e-3)
    ones = torch.full((setting.agents,), setting.agents**-0.5, dtype=x.dtype)
    yield Fact("share of the norm along the ones-vector", float((ones @ x).norm()), low=1.0 - _VANISHED)
    raw = linear_flow(matrix + beta * torch.eye(setting.agents, dtype=x.dtype), setting.start, 5.0)
    yield Fact(
        "raw energy at t = 5 / at 0", setting.energy(raw) / setting.energy(setting.start), high=1.0, printed=True
    )
