"""Where the opinions of BIMP go: equilibria, consensus, dissensus, rates, reduced and limiting forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dissensus import measure
from dissensus.solve import AutogradField, Dopri5, Field, equilibrium, solve
from dissensus.studies.theory import _setting
from dissensus.studies.theory._check import Fact, rule
from dissensus.studies.theory._laplacian import linear_flow
from dissensus.studies.theory._setting import Setting, largest, vec

_EXACT = 1e-9
_SETTLED = 1e-6
_ALPHAS = (0.0, 0.5, 1.0, 2.0)


def _after(field: Field, x: Tensor, time: float) -> Tensor:
    return solve(field, x, time, Dopri5(1e-9, 1e-12)).state


def _along(field: Field, x: Tensor, times: np.ndarray) -> Tensor:
    return solve(field, x, float(times[-1]), Dopri5(1e-9, 1e-13), save_at=times.tolist()).saved


def _range(x: Tensor) -> float:
    """The largest difference between agents over the options."""
    return largest(x.amax(0) - x.amin(0))


def _scalar_field(setting: Setting) -> AutogradField:
    """The reduced equation ``y' = -d y + tanh(u (alpha + 3) y)``."""
    slope, d = setting.attention * (setting.self_reinforcement + 3.0), setting.damping
    return AutogradField(lambda t, y: torch.tanh(slope * y) - d * y)


def _left_eigenvector(setting: Setting) -> Tensor:
    """w with ``A~' w = lambda_max w`` and ``w' 1 = 1``, [n o]."""
    values, vectors = torch.linalg.eig(_setting.effective(setting).T)
    w = vectors[:, values.real.argmax()].real
    return w / w.sum()


@rule(
    "convergence",
    where="Lemma 5.5",
    statement="with constant B every state converges to an equilibrium",
    note="Non-negative matrices make the flow cooperative. The printed proof gives almost every start; at and "
    "below u* it is every start (see unique-equilibrium).",
)
def convergence(setting: Setting) -> Iterator[Fact]:
    """Euler steps of half the damping time from two starts, at the given attention and at three times that."""
    for label, u in (("u", setting.attention), ("3 u", 3.0 * setting.attention)):
        field, step = setting.field(attention=u), 0.5 / setting.damping
        ends = [
            equilibrium(field, x, step_size=step, tol=1e-9, max_iter=20_000, method="picard", strict=False)
            for x in (setting.start, -5.0 * setting.start)
        ]
        yield Fact(f"residual, attention {label}", max(end.residual for end in ends), high=1e-9)
        yield Fact(f"steps, attention {label}", max(end.iterations for end in ends))


@rule(
    "consensus",
    where="Lemma B.4",
    statement="with B = 0, BIMP at u* oversmooths: X tends to 0",
    note="Differences between agents die out exponentially. The common opinion obeys y' = -d y + tanh(d y) and "
    "falls only as (2 d^3 t / 3)^(-1/2), with no exponential rate at the bifurcation point.",
)
def consensus(setting: Setting) -> Iterator[Fact]:
    """Late states without input, against the scalar equation that bounds the largest opinion."""
    x, eigenvalues = setting.start, torch.linalg.eigvals(_setting.effective(setting)).real.sort(descending=True).values
    gap = max(float(eigenvalues[0] - eigenvalues[1]), 0.01)
    time = max(500.0 / setting.damping, 12.0 / (setting.attention * gap))
    late = _after(setting.field(torch.zeros_like(x)), x, time)
    yield Fact("energy at the end / at the start", setting.energy(late) / setting.energy(x), high=_SETTLED)
    bound = float(_after(_scalar_field(replace(setting, excess=1.0)), x.abs().max().reshape(1), time))
    yield Fact("|X| late / its bound", largest(late) / bound, high=1.0 + _SETTLED)
    yield Fact("bound x (2 d^3 t / 3)^(1/2)", bound * math.sqrt(2.0 * setting.damping**3 * time / 3.0), 0.9, 1.1)


@rule(
    "dissensus",
    where="Theorem 5.6",
    statement="constant B with distinct entries: BIMP does not oversmooth",
    note="Sharper: at the equilibrium the agents' range is at least that of B over d + u(alpha + 3), which is 2 d "
    "at u*.",
)
def dissensus(setting: Setting) -> Iterator[Fact]:
    """The equilibrium under input."""
    x = equilibrium(setting.field(), setting.start, tol=1e-12, max_iter=20_000, method="picard", strict=False).state
    yield Fact("relative energy at the equilibrium", setting.relative_energy(x), low=1e-3)
    bound = _range(setting.source) / (setting.damping + setting.attention * (setting.self_reinforcement + 3.0))
    yield Fact("range of X - its lower bound", _range(x) - bound, low=-_EXACT)
    difference = (x[:, None] - x[None]).abs().amax(2).fill_diagonal_(math.inf)
    yield Fact("smallest distance of two agents / range", float(difference.min()) / _range(x), low=_SETTLED)
    yield Fact("lower bound / range", bound / _range(x), low=_SETTLED)


@rule(
    "reduction",
    where="Lemma B.3",
    statement="with B = 0, y = w' x obeys y' = -d y + tanh[u(alpha + 3) y]",
    note="Exact on consensus states; elsewhere the error falls with the square of the amplitude, relative to it. "
    "The proof misprints -d y' for -d y and u(alpha + 3 y) for u(alpha + 3) y; w is scaled to w' 1 = 1.",
)
def reduction(setting: Setting) -> Iterator[Fact]:
    """The full system projected on w against the reduced equation."""
    w, x = _left_eigenvector(setting), setting.start
    field, scalar = setting.field(torch.zeros_like(x)), _scalar_field(setting)
    times = np.linspace(0.0, 10.0 / setting.damping, 21)

    def error(start: Tensor, size: float) -> float:
        full = torch.stack([w @ vec(state) for state in _along(field, start, times)])
        reduced = _along(scalar, (w @ vec(start)).reshape(1), times)[:, 0]
        return largest(full - reduced) / size

    yield Fact("error from consensus", error(torch.full_like(x, 0.7), 0.7), high=_SETTLED)
    x = x / largest(x)
    errors = [error(size * x, size) for size in (0.2, 0.1, 0.05)]
    yield Fact("relative error, amplitude 0.05", errors[-1], high=1e-2)
    yield Fact("its order in the amplitude", math.log2(errors[-2] / errors[-1]), 1.8, 2.2)


@rule(
    "first-order",
    where="Lemma B.1",
    statement="linear opinion dynamics X' = (A_a - I) X is the first order of BIMP",
    note="With u = 1, A_o = 0, B = 0 and d = alpha + 1. These values put the model exactly at its bifurcation "
    "point, as A_o = 0 leaves lambda_max = 2.",
)
def first_order(setting: Setting) -> Iterator[Fact]:
    """The Jacobian at X = 0 against that of linear opinion dynamics."""
    alpha = setting.self_reinforcement
    made = replace(setting, options=torch.zeros_like(setting.options), damping=alpha + 1.0)
    o, neutral = len(setting.options), torch.zeros_like(setting.start)
    identity = torch.eye(setting.agents, dtype=neutral.dtype)
    linear = torch.kron(torch.eye(o, dtype=neutral.dtype), setting.communication - identity)
    jacobian = made.jacobian(neutral, 1.0)
    yield Fact("difference of the Jacobians", largest(jacobian - linear), high=_EXACT)
    leading = float(torch.linalg.eigvals(jacobian).real.max())
    yield Fact("leading eigenvalue of the Jacobian", leading, -_EXACT, _EXACT)


@rule(
    "linear-limits",
    where="Lemma B.2",
    statement="BIMP becomes a linear system as u tends to 0 or to infinity",
    note="Linear for small u. For large u it is affine on each region of constant signs only: the sign jumps "
    "between regions, and superposition fails by the height of the saturation.",
)
def linear_limits(setting: Setting) -> Iterator[Fact]:
    """Distance to the limiting fields, and the defect of superposition."""
    x, y = setting.start, setting.start.flip(0)
    small, large = 1e-4 * setting.attention, 1e12 * setting.attention
    driven = (setting.mixing @ vec(x)).view(x.T.shape).T
    plain = -setting.damping * x + setting.source
    by_small, by_large = (setting.field(attention=u)(0.0, x) - plain for u in (small, large))
    yield Fact("small u: |f - (-d x + u M x + b)| / u", largest(by_small - small * driven) / small, high=1e-4)
    yield Fact("large u: |f - (-d x + sign(M x) + b)|", largest(by_large - driven.sign()), high=1e-3)

    def defect(u: float) -> float:
        field = setting.field(torch.zeros_like(x), u)
        return largest(field(0.0, x + y) - field(0.0, x) - field(0.0, y))

    yield Fact("small u: |f(x + y) - f(x) - f(y)| / u", defect(small) / small, high=1e-4)
    yield Fact("large u: |f(x + y) - f(x) - f(y)|", defect(large), high=1e-4, printed=True)


@rule(
    "non-expansive",
    where="ours",
    statement="at u <= u*, d dt <= 1 a step of Euler is non-expansive in the sup-norm",
    note="For alpha >= 0: every entry of u((alpha - 1) I + A~) is non-negative and its rows sum to u(alpha + 3) <= d.",
)
def non_expansive(setting: Setting) -> Iterator[Fact]:
    """The infinity-norm of the step's Jacobian over four alphas, two steps and three states."""
    identity = torch.eye(setting.start.numel(), dtype=setting.start.dtype)
    states = [torch.zeros_like(setting.start), 0.1 * setting.start, 10.0 * setting.start]
    norms: dict[bool, list[float]] = {True: [], False: []}
    for alpha in _ALPHAS:
        made = replace(setting, self_reinforcement=alpha)
        for index, x in enumerate(states):
            jacobian = made.jacobian(x)
            for share in (0.1, 1.0):
                step = identity + share / setting.damping * jacobian
                norms[index == 0].append(float(torch.linalg.matrix_norm(step, math.inf)))
    yield Fact("norm at X = 0", max(norms[True]), 1.0 - _EXACT, 1.0 + _EXACT)
    yield Fact("norm at other states", max(norms[False]), high=1.0 + _EXACT)


@rule(
    "unique-equilibrium",
    where="ours",
    statement="at u <= u* the equilibrium is unique, whatever the start",
    note="Follows from non-expansive: Euler's step 1/d is Picard's iteration of X = (tanh(..) + B)/d.",
)
def unique_equilibrium(setting: Setting) -> Iterator[Fact]:
    """Equilibria reached from far apart, under the input and under a tenth of it."""
    for share in (1.0, 0.1):
        field = setting.field(share * setting.source)
        starts = [torch.full_like(setting.start, value) for value in (-10.0, 10.0)]
        ends = [equilibrium(field, x, tol=1e-13, max_iter=20_000, method="picard", strict=False) for x in starts]
        distance = largest(ends[0].state - ends[1].state)
        yield Fact(f"distance of the ends, input x {share:g}", distance, high=1e-8)


@rule(
    "exponential-rate",
    where="ours",
    statement="at u < u* any two states approach at the rate d - u(alpha + 3) or faster",
    note="Tight: near X = 0, without input, a common opinion falls at exactly this rate.",
)
def exponential_rate(setting: Setting) -> Iterator[Fact]:
    """Distances over time at 0.8 of the attention, in units of the guarantee."""
    made = replace(setting, excess=0.8 * setting.excess)
    rate = made.damping - made.attention * (made.self_reinforcement + 3.0)
    times = np.linspace(0.0, 10.0 / setting.damping, 21)
    field = made.field()
    distance = (_along(field, setting.start, times) - _along(field, -3.0 * setting.start, times)).abs().amax((1, 2))
    guaranteed = distance[0] * torch.from_numpy(np.exp(-rate * times))
    yield Fact("largest distance / guarantee", float((distance / guaranteed).max()), high=1.0 + _SETTLED)
    yield Fact("measured rate / guarantee", measure.decay_rate(distance, times).rate / rate, low=1.0)
    yield Fact("guaranteed rate", rate, low=_EXACT)
    ones = torch.full_like(setting.start, 1e-4)
    tight = _along(made.field(torch.zeros_like(ones)), ones, times).abs().amax((1, 2))
    yield Fact("the same near X = 0", measure.decay_rate(tight, times).rate / rate, 1.0 - 1e-4, 1.0 + 1e-4)


@rule(
    "drift",
    where="ours",
    statement="at u* the state stays bounded with S = tanh; with S(z) = z consensus grows as T",
    note="The leading eigenvalue of the linear model is 0 at u*: along it the input adds up, X tends to 1 (w' b) T, "
    "and all else becomes small beside it, as in GRAND++. tanh bounds X by (1 + |b|)/d. Below u* the linear model is "
    "bounded as well, by |b|/(d - u(alpha + 3)), so that less depends on S.",
)
def drift(setting: Setting) -> Iterator[Fact]:
    """The linear model at two late times, at u* and at 0.9 u*, and the equilibrium with tanh."""
    flat, identity = vec(setting.source)[:, None], torch.eye(setting.source.numel(), dtype=setting.source.dtype)

    def linear(excess: float, time: float) -> Tensor:
        made = replace(setting, excess=excess * setting.excess)
        return linear_flow(made.attention * made.mixing - made.damping * identity, flat, time, flat)

    def uneven(x: Tensor) -> float:
        return largest(x - x.mean()) / largest(x)

    late = 1e6 / setting.damping
    ends = {excess: [linear(excess, share * late) for share in (1.0, 2.0)] for excess in (1.0, 0.9)}
    growth = {excess: largest(after) / largest(before) for excess, (before, after) in ends.items()}
    yield Fact("linear at u*: |X(2T)| / |X(T)|", growth[1.0], 1.95, 2.05)
    yield Fact("linear at 0.9 u*: |X(2T)| / |X(T)|", growth[0.9], high=1.0 + _SETTLED)
    before, after = (uneven(end) for end in ends[1.0])
    yield Fact("linear at u*: what is not consensus, share at 2T / at T", after / before, high=0.55)
    x = equilibrium(setting.field(), setting.start, tol=1e-12, max_iter=20_000, method="picard", strict=False).state
    yield Fact("tanh at u*: d |X| / (1 + |b|)", setting.damping * largest(x) / (1.0 + largest(flat)), high=1.0)
    yield Fact("tanh at u*: what is not consensus, share", uneven(x), low=0.1)
