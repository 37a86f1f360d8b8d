"""How gradients travel through Euler steps of BIMP: bounds from above and below."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dissensus import measure
from dissensus.solve import Euler, solve
from dissensus.studies.theory._check import Fact, rule
from dissensus.studies.theory._setting import Setting, vec

_EXACT = 1e-9
_STEPS = 200
_SHARE = 0.05  # d dt, so that d T = 10


@dataclass(frozen=True)
class _Paths:
    """Infinity-norms of derivatives after every step, [steps] each.

    Attributes:
        state: of x^M by the initial state, the input held: the product of the steps' Jacobians.
        source: of x^M by the input b.
        total: of x^M by x^0 = b, both paths together.
        chain: of the printed product, which has the input in the first step alone.
    """

    state: np.ndarray
    source: np.ndarray
    total: np.ndarray
    chain: np.ndarray


def _step_size(setting: Setting) -> float:
    return _SHARE / setting.damping


def _norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, math.inf))


def _derivatives(setting: Setting, x: Tensor, steps: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """By the state, by the source and by the printed chain, after every Euler step from x with input x."""
    dt, identity = _step_size(setting), torch.eye(x.numel(), dtype=x.dtype)
    field = setting.field(x)
    state, source, chain = identity, torch.zeros_like(identity), identity
    for step in range(steps):
        jacobian = identity + dt * setting.jacobian(x)
        state, source = jacobian @ state, jacobian @ source + dt * identity
        chain = jacobian @ chain if step else jacobian + dt * identity
        x = x + dt * field(0.0, x)
        yield state, source, chain


def _paths(setting: Setting, x: Tensor) -> _Paths:
    norms = [
        (_norm(state), _norm(source), _norm(state + source), _norm(chain))
        for state, source, chain in _derivatives(setting, x, _STEPS)
    ]
    return _Paths(*np.array(norms).T)


def _by_autograd(setting: Setting, x: Tensor, steps: int) -> Tensor:
    """The derivative of x^M by x^0 = b, as training computes it, in the order of :func:`vec`."""

    def end(flat: Tensor) -> Tensor:
        start = flat.view(x.T.shape).T
        dt = _step_size(setting)
        return vec(solve(setting.field(start), start, steps * dt, Euler(dt)).state)

    return torch.autograd.functional.jacobian(end, vec(x))


@rule(
    "gradient-upper",
    where="Theorem 5.7, Lemma A.3",
    statement="gradients are bounded: |dx^M/dx^1| <= 1 + 4 M u dt",
    note="Sharper: the state path never exceeds 1, and with the source in every step |dx^M/dx^0| <= 1 + T. The "
    "printed bound takes the first order of (1 + 4 u dt)^(M - 1), which for long times is no bound on it; and "
    "its chain rule meets the source in the first step only, so that for 4 u < 1 the true derivative by x^0 "
    "exceeds it.",
)
def gradient_upper(setting: Setting) -> Iterator[Fact]:
    """Measured norms beside the printed bounds and ours, on a random trajectory and at X = 0."""
    dt, u = _step_size(setting), setting.attention
    steps = np.arange(1, _STEPS + 1)
    times = dt * steps
    runs = [_paths(setting, x) for x in (setting.start, torch.zeros_like(setting.start))]
    yield Fact("state path, largest norm (our bound 1)", max(r.state.max() for r in runs), high=1.0 + _EXACT)
    first_order, product = 1.0 + 4.0 * steps * u * dt, (1.0 + 4.0 * u * dt) ** (steps - 1)
    yield Fact("printed bound 1 + 4 M u dt at T", float(first_order[-1]))
    yield Fact("printed bound / (1 + 4 u dt)^(M - 1) at T", float(first_order[-1] / product[-1]), low=1.0, printed=True)
    below = times[first_order < 0.5 * product].min(initial=math.inf)
    yield Fact("time from which it is below half of that", float(below))
    total = max(float((r.total / (1.0 + times)).max()) for r in runs)
    yield Fact("|dx^M/dx^0| / (1 + T), ours", total, high=1.0 + _EXACT)
    whole = first_order * (1.0 + (4.0 * u + 1.0) * dt)
    excess = max(float((r.total / whole).max()) for r in runs)
    yield Fact("|dx^M/dx^0| / printed bound", excess, high=1.0, printed=True)
    *_, (state, source, _) = _derivatives(setting, setting.start, 20)
    difference = (state + source - _by_autograd(setting, setting.start, 20)).abs().max()
    yield Fact("difference to backpropagation, 20 steps", float(difference), high=_EXACT)


@rule(
    "gradient-lower",
    where="Theorem 5.7, Lemma A.4",
    statement="gradients do not vanish exponentially",
    note="Through the source: |dx^M/db| >= (1 - (1 - d dt)^M)/d. The path from the initial state does vanish "
    "exponentially, and so does the printed product, whose expansion to first order in dt says nothing about "
    "long times. A detached source gives up the path that lasts.",
)
def gradient_lower(setting: Setting) -> Iterator[Fact]:
    """Both paths at a late time."""
    paths, steps = _paths(setting, setting.start), np.arange(1, _STEPS + 1)
    lower = (1.0 - (1.0 - _SHARE) ** steps) / setting.damping
    yield Fact("source path / its lower bound", float((paths.source / lower).min()), low=1.0 - _EXACT)
    yield Fact("d |dx^M/dx^0| at T", setting.damping * paths.total[-1], low=0.99)
    yield Fact("state path at T", paths.state[-1])
    late = slice(_STEPS // 2, None)
    times = _step_size(setting) * steps[late]
    state, chain = (measure.decay_rate(norms[late], times).rate for norms in (paths.state, paths.chain))
    yield Fact("decay rate of the state path / d", state / setting.damping, low=1e-3)
    yield Fact("decay rate of the printed product / d", chain / setting.damping, high=1e-3, printed=True)


@rule(
    "loss-gradient",
    where="Lemma A.3",
    statement="|dL/dW| <= (T + (1 + T)|x^0| + |y|)(1 + 4 M u dt)(1 + (4u + 1) dt)|X_in| / (N_a N_o)",
    note="For the mean squared error and X^0 = X_in W. The loss is a number: its derivative by x^M is a row, whose "
    "entries add up along the chain, not a diagonal matrix. So the factor 1/(N_a N_o) does not stay, and the printed "
    "bound is exceeded where T is short. Corrected: |dL/dW| <= (c + |y|)(1 + T)|X_in| with c = max(|x^0|, "
    "(1 + |x^0|)/d), which bounds |x^M| at every depth; the printed |x^0| + T(1 + |x^0|) holds and grows.",
)
def loss_gradient(setting: Setting) -> Iterator[Fact]:
    """The largest entry of dL/dW by backpropagation beside both bounds, at three depths; the targets y are 0."""
    dt, u, d = _step_size(setting), setting.attention, setting.damping
    inputs = torch.cat([torch.ones_like(setting.start[:, :1]), setting.start], 1)  # a constant feature, and random ones
    numbers = np.random.default_rng(setting.agents).normal(size=(inputs.shape[1], setting.start.shape[1]))
    states, ours, printed = [], [], []
    for steps in (1, 20, _STEPS):
        weight = torch.from_numpy(numbers).requires_grad_()
        x = inputs @ weight
        first = float(x.detach().abs().max())
        last = solve(setting.field(x), x, steps * dt, Euler(dt)).state
        (gradient,) = torch.autograd.grad(0.5 * (last**2).mean(), weight)
        largest, time = float(gradient.abs().max() / inputs.abs().max()), steps * dt
        bound = max(first, (1.0 + first) / d)
        states.append((float(last.detach().abs().max()), first + time * (1.0 + first), bound))
        ours.append(largest / (bound * (1.0 + time)))
        product = (1.0 + 4.0 * steps * u * dt) * (1.0 + (4.0 * u + 1.0) * dt)
        printed.append(largest * x.numel() / ((time + (1.0 + time) * first) * product))
    yield Fact("|x^M| / printed bound", max(x / growing for x, growing, _ in states), high=1.0 + _EXACT)
    yield Fact("|x^M| / ours", max(x / fixed for x, _, fixed in states), high=1.0 + _EXACT)
    yield Fact("|dL/dW| / ours", max(ours), high=1.0 + _EXACT)
    yield Fact("|dL/dW| / printed bound", max(printed), high=1.0, printed=True)
