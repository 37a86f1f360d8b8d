"""The integrator: one loop for every Runge-Kutta table, with fixed steps or with step-size control."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from dissensus._memory import empty_like
from dissensus.errors import SolverError
from dissensus.solve._field import AutogradField, Field, Pullback, Split, evaluate
from dissensus.solve._sums import Sum, Sums, relative, rms
from dissensus.solve._tableau import Tableau, Weights
from dissensus.solve._tape import Step, Tape

# Called after every accepted step with the time and the state there; the state's memory may be reused afterwards.
Callback = Callable[[float, Tensor], None]
# Size of an error, relative to the tolerance: accepted at or below one.
Norm = Callable[[Tensor], float]

# A step is at most so many times as long as the one before it.
_MOST = 10.0
# A step aims at this share of the longest that the tolerance seems to allow.
_SAFETY = 0.9
# How much of a step a mesh has to spare: the fewer and longer its steps, the less sure are their errors.
_SPARE = 0.2


@dataclass
class Stats:
    """What an integration cost.

    Attributes:
        evaluations: of the field, forward.
        accepted: steps.
        rejected: steps tried and thrown away by the step-size control.
        backward_evaluations: pullbacks, plus the evaluations of the field that the backward pass repeated; zero until
            the backward pass has run.
    """

    evaluations: int = 0
    accepted: int = 0
    rejected: int = 0
    backward_evaluations: int = 0


@dataclass(frozen=True)
class Method:
    """How to step: a table, and a step size or tolerances."""

    tableau: Tableau
    step_size: float = 1.0
    rtol: float = 1e-3
    atol: float = 1e-3
    max_steps: int = 10_000


def split_for(field: Field, x: Tensor) -> Split:
    """The field's parts, where its drive has the shape of the state; else the field as a whole."""
    split = field.split
    return split if split.drive is None or split.drive.shape == x.shape else Split(field)


class Stages:
    """What the steps from states such as x combine: the values ``k`` of the stages, [stages, *x.shape], one more for an
    adaptive method (of the new state); ``first`` is that of the first stage, which may be elsewhere. ``spare`` is
    memory for what need not outlive a stage."""

    def __init__(self, split: Split, tableau: Tableau, x: Tensor, spare: Tensor | None = None) -> None:
        self.split, self.tableau, self.spare = split, tableau, spare
        self.k = empty_like(x, tableau.stages + tableau.adaptive)
        self.first = self.k[0]

    def _begin(self, x: Tensor, h: float) -> None:
        """A step of size h begins at x."""
        weights, drive = Weights.of(self.tableau, h, self.split.gain, self.split.decay), self.split.drive
        rows = (*weights.stages[1:], weights.error) if self.tableau.adaptive else weights.stages[1:]
        terms = [(row.drive, row.state, *row.values)[drive is None :] for row in rows]
        others = [x, self.first] if drive is None else [drive, x, self.first]
        self.sums = Sums(others, self.k[1:], terms)

    def run(
        self, t: float, h: float, x: Tensor, *, keep: bool, first: bool = True, last: bool = True
    ) -> tuple[Tensor, list[Pullback]]:
        """A step of size h from x at time t.

        Without ``first`` the value of the first stage is there already; without ``last`` the new state is not made.

        Returns:
            The new state, in fresh memory, and with ``keep`` the pullbacks of the stages.
        """
        self._begin(x, h)
        pullbacks: list[Pullback] = []
        if not first:
            x = self._after(0, keep).tensor()
        for i in range(not first, self.tableau.stages):
            then = self._after(i, keep) if last or i < self.tableau.stages - 1 else None
            pullback = self.evaluate(t + self.tableau.c[i] * h, x, i, keep=keep, then=then)
            if pullback is not None:
                pullbacks.append(pullback)
            if then is not None:
                x = then.out
        return x, pullbacks

    def evaluate(self, t: float, x: Tensor, i: int, *, keep: bool, then: Sum | None = None) -> Pullback | None:
        """The value of stage i, whose input is x, and then a sum of which it is the last term.

        Returns:
            With ``keep`` the pullback.
        """
        takes = [then] if then is not None and self.split.takes_sums else []
        pullback = None
        if keep:
            _, pullback = self.split.core.vjp(t, x, self.k[i], *takes)
        else:
            self.split.core(t, x, self.k[i], *takes)
        if then is not None and not takes:
            then.tensor()
        return pullback

    def _after(self, i: int, keep: bool) -> Sum:
        """What is next after stage i: the input of another, ``s x + d B + sum_j w_j k_j``, or the new state; with
        ``keep`` all of them outlive the step."""
        outlives = keep or i == self.tableau.stages - 1
        return Sum(self.sums, i, empty_like(self.k[0]) if outlives or self.spare is None else self.spare)

    def error(self, x: Tensor, new: Tensor, method: Method, norm: Norm) -> float:
        """The norm of an adaptive method's error estimate, relative to the tolerance."""
        row, tolerance = self.tableau.stages, (method.atol, method.rtol)
        if norm is rms:
            return self.sums.relative_rms(row, x, new, *tolerance)
        return norm(relative(self.sums(row, empty_like(x)), x, new, *tolerance))


def too_many_steps(count: int, method: Method, stop: float) -> SolverError:
    """The error for a fixed-step method that cannot reach the time ``stop``."""
    return SolverError(
        f"{count} steps of {method.step_size:g} are needed to reach t = {stop:g}, more than max_steps = "
        f"{method.max_steps}: raise step_size or max_steps"
    )


def underflow(t: float, h: float) -> SolverError:
    """The error for a step-size control that has given up at time t."""
    return SolverError(
        f"step size underflow at t = {t:g} (step {h:.1e}): the dynamics is too stiff or diverges there; shorten the "
        "time, loosen rtol and atol, use float64, or a fixed-step method such as 'euler' or 'rk4'"
    )


def step_limit(t: float, method: Method, stop: float) -> SolverError:
    """The error for a step-size control that has used up its steps at time t."""
    return SolverError(
        f"{method.max_steps} steps reached only t = {t:g} of {stop:g}: loosen rtol and atol, shorten the time, or "
        "raise max_steps"
    )


def equal_mesh(times: Sequence[float], errors: Sequence[float], order: int) -> tuple[float, ...]:
    """The ends of few steps over the same time whose errors are about equal and within the tolerance.

    A step of length h with r times the error that it may have could have been ``h r^(-1/order)`` long, so that around
    it ``r^(1/order) / h`` steps are needed per unit of time. Each step of the mesh takes an equal share of their sum:
    of n steps at most 0.9 - 0.2/n.

    Args:
        times: 0 and the ends of the steps taken.
        errors: r of each.
        order: of the method.
    """
    needed = np.cumsum([0.0, *(max(r ** (1.0 / order), _SAFETY / _MOST) for r in errors)])
    total = float(needed[-1])
    count = math.ceil((total + _SPARE) / _SAFETY)
    return *np.interp(total * np.arange(1, count) / count, needed, times).tolist(), times[-1]


class Integrator:
    """Integrates one field from time 0; ``norm`` measures the error estimate of adaptive methods.

    The steps are recorded on ``tape``, with the pullbacks of their stages while it keeps them. An adaptive method tries
    steps that end at the points of ``mesh`` first; the step-size control goes on after them, or after the first of them
    whose error is too large.
    """

    def __init__(
        self,
        field: Field,
        method: Method,
        stats: Stats,
        *,
        tape: Tape | None = None,
        callback: Callback | None = None,
        norm: Norm = rms,
        mesh: Sequence[float] = (),
    ) -> None:
        self.field, self.method, self.stats = field, method, stats
        self.tape, self.callback, self.norm = tape, callback, norm
        self.ahead = sorted(mesh, reverse=True)
        self.times = [0.0]
        self.errors: list[float] = []  # of the accepted steps of an adaptive method, relative to the tolerance

    def run(self, x: Tensor, stops: Sequence[float]) -> list[Tensor]:
        """The states at the ascending times ``stops``; a step ends at each of them."""
        tableau = self.method.tableau
        self.split = split_for(self.field, x)
        self.keep = self.tape is not None and self.tape.keeps_pullbacks
        self.room = empty_like(x)
        self.stages, self.held = Stages(self.split, tableau, x, self.room), False
        self.first: Pullback | None = None  # pullback of k[0], where the last step's last stage is this one's first
        self.pullbacks: list[Pullback] = []
        if tableau.adaptive and stops[-1] > 0.0:
            self.first = self._evaluate(0.0, x, 0)
            self.h = 0.0 if self.ahead else self._initial_step(x)
        t, states, self.end = 0.0, [], stops[-1]
        for stop in stops:
            x = self._adaptive(t, x, stop) if tableau.adaptive else self._fixed(t, x, stop)
            states.append(x)
            t = stop
        return states

    def _fixed(self, start: float, x: Tensor, stop: float) -> Tensor:
        size = self.method.step_size
        # At least one step to a later stop, however near: every stop is the end of a step.
        count = max(math.ceil((stop - start) / size - 1e-9), int(stop > start))
        needed = len(self.times) - 1 + count
        if needed > self.method.max_steps:
            raise too_many_steps(needed, self.method, stop)
        for i in range(count):
            t = start + i * size
            end = stop if i == count - 1 else start + (i + 1) * size
            self._new_stages(x)
            x = self._finish(t, end - t, x, self._step(t, end - t, x, first=True), end)
        return x

    def _adaptive(self, t: float, x: Tensor, stop: float) -> Tensor:
        method, tableau = self.method, self.method.tableau
        while t < stop:
            if len(self.times) > method.max_steps:
                raise step_limit(t, method, stop)
            while self.ahead and self.ahead[-1] <= t * (1.0 + 1e-6):
                self.ahead.pop()
            wanted = self.ahead[-1] - t if self.ahead else self.h
            # A step that would leave a sliver is stretched to the end.
            last = wanted >= (stop - t) * (1.0 - 1e-6)
            h = stop - t if last else wanted
            if not (last or h >= 1e-12 * stop):  # NaN included
                raise underflow(t, h)
            end = stop if last else t + h
            new = self._step(t, h, x, first=False)
            last_pullback = self._evaluate(end, new, tableau.stages)
            ratio = self.stages.error(x, new, method, self.norm)
            if ratio <= 1.0:
                # Stretching to the end must not teach the controller a tiny step.
                self.h = max(self.h, self._next(h, ratio)) if last else self._next(h, ratio)
                self.errors.append(ratio)
                x = self._finish(t, h, x, new, end)
                t, last_value = end, self.stages.k[tableau.stages]
                if end < self.end:
                    fresh = self._new_stages(x)
                    self.stages.first = last_value if fresh else self.stages.k[0].copy_(last_value)
                    self.first = last_pullback
            else:
                self.stats.rejected += 1
                self.ahead.clear()
                self.h = self._next(h, ratio)
        return x

    def _new_stages(self, x: Tensor) -> bool:
        """Fresh memory for the values of the next step, where pullbacks hold on to those of the last."""
        fresh = self.held and self.split.keeps_value
        if fresh:
            self.stages, self.held = Stages(self.split, self.method.tableau, x, self.room), False
        return fresh

    def _step(self, t: float, h: float, x: Tensor, *, first: bool) -> Tensor:
        """The new state (fresh memory); without ``first`` the first stage has been evaluated."""
        self.stats.evaluations += self.method.tableau.stages - (not first)
        new, self.pullbacks = self.stages.run(t, h, x, keep=self.keep, first=first)
        self.held |= self.keep
        if self.first is not None and not first and self.keep:
            self.pullbacks.insert(0, self.first)
        return new

    def _evaluate(self, t: float, x: Tensor, i: int) -> Pullback | None:
        """Stage i by itself."""
        self.stats.evaluations += 1
        self.held |= self.keep
        return self.stages.evaluate(t, x, i, keep=self.keep)

    def _finish(self, t: float, h: float, x: Tensor, new: Tensor, end: float) -> Tensor:
        self.stats.accepted += 1
        self.times.append(end)
        if self.tape is not None:
            self.tape.add(Step(t, h), x, tuple(self.pullbacks))
            self.pullbacks = []
            self.keep = self.tape.keeps_pullbacks
        if self.callback is not None:
            self.callback(end, new)
        return new

    def _next(self, h: float, ratio: float) -> float:
        # h safety ratio^(-1/order), at least a fifth and at most ten times; an accepted step never shrinks.
        if not math.isfinite(ratio):
            return 0.2 * h
        if ratio == 0.0:
            return _MOST * h
        return h * min(_MOST, max(_SAFETY * ratio ** (-1.0 / self.method.tableau.order), 1.0 if ratio <= 1.0 else 0.2))

    def _initial_step(self, x: Tensor) -> float:
        # Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.4, times ten: the error of their first
        # step is so small that the step-size control makes the second ten times as long. Starting there often saves a
        # step.
        split, nothing, tolerance = self.split, self.stages.k[:0], (self.method.atol, self.method.rtol)
        parts = [x, self.stages.k[0]] if split.drive is None else [x, self.stages.k[0], split.drive]
        f0 = (-split.decay, split.gain, 1.0)[: len(parts)]  # f(0, x), as the weights of its parts
        sizes = Sums(parts, nothing, [(1.0,), f0])
        d0, d1 = (sizes.relative_rms(i, x, x, *tolerance) for i in range(2))
        if not (math.isfinite(d0) and math.isfinite(d1)):
            return 0.0  # refused as an underflow
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        self.stats.evaluations += 1
        further = Sums(parts, nothing, [(1.0 + h0 * f0[0], *(h0 * weight for weight in f0[1:]))])(0, self.room)
        f1 = self.field(h0, further)
        difference = Sums([f1, *parts], nothing, [(1.0, *(-weight for weight in f0))])
        d2 = difference.relative_rms(0, x, x, *tolerance) / h0
        top = max(d1, d2)
        h1 = max(1e-6, 1e-3 * h0) if top <= 1e-15 else (0.01 / top) ** (1.0 / self.method.tableau.order)
        return _MOST * min(100.0 * h0, h1)


def counted(field: Field, t: float, x: Tensor, stats: Stats, *, backward: bool = False) -> Tensor:
    """``f(t, x)``, differentiable by autograd; the evaluation, and later its derivative, are counted."""
    if backward:
        stats.backward_evaluations += 1
    else:
        stats.evaluations += 1
    value = evaluate(field, t, x)
    if value.requires_grad:
        # A field by hand is evaluated again for its pullback.
        value.register_hook(partial(_count_backward, stats, 1 if isinstance(field, AutogradField) else 2))
    return value


def _count_backward(stats: Stats, count: int, grad: Tensor) -> None:
    stats.backward_evaluations += count


def advance(field: Field, tableau: Tableau, stats: Stats, steps: Sequence[Step], x: Tensor) -> Tensor:
    """The state after ``steps`` from the state x, bit for bit as it was when they were taken."""
    split = split_for(field, x)
    stages = Stages(split, tableau, x, empty_like(x))
    for step in steps:
        stats.backward_evaluations += tableau.stages
        x, _ = stages.run(step.t, step.h, x, keep=False)
    return x


def step_vjp(
    field: Field,
    tableau: Tableau,
    stats: Stats,
    step: Step,
    x: Tensor,
    pullbacks: Sequence[Pullback],
    cotangent: Tensor,
    grads: Sequence[Tensor],
) -> Tensor:
    """The cotangent of a step's start x from that of its end; the gradients of the parameters are added to ``grads``.

    Without ``pullbacks`` the stages are evaluated again.

    With ``x_i = s_i x + d_i B + sum_j w_ij g(x_j)`` for the stages, and for the new state as the last of them, it is,
    from the last stage to the first, ``g_i' = w_ni new' + sum_{m>i} w_mi x_m'`` and ``x_i' = pullback_i(g_i')``, then
    ``x' = s_n new' + sum_i s_i x_i'`` and ``B' = d_n new' + sum_i d_i x_i'``.
    """
    split = split_for(field, x)
    pullbacks = pullbacks or _stage_pullbacks(split, tableau, stats, step, x)
    *rows, new = Weights.of(tableau, step.h, split.gain, split.decay).stages
    stats.backward_evaluations += len(rows)
    count = len(rows)
    # The cotangent of the new state, then those of the stages from the last on.
    stack = empty_like(x, count)
    rows.reverse()
    terms = [(new.values[i], *(row.values[i] for row in rows[: count - 1 - i])) for i in reversed(range(count))]
    sums, room = Sums([cotangent], stack, terms), empty_like(x)
    for j, pullback in enumerate(reversed(pullbacks)):
        g = Sum(sums, j, room)
        pullback(g if split.takes_sums else g.tensor(), grads, stack[j])
    by_drive = None
    if split.index is not None and grads:
        by_drive = (new.drive, *(row.drive for row in rows)), grads[split.index]
    return sums.last((new.state, *(row.state for row in rows)), empty_like(x), by_drive)


def _stage_pullbacks(split: Split, tableau: Tableau, stats: Stats, step: Step, x: Tensor) -> list[Pullback]:
    stats.backward_evaluations += tableau.stages
    return Stages(split, tableau, x).run(step.t, step.h, x, keep=True, last=False)[1]
