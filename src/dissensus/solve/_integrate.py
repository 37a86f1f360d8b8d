"""The integrator: one loop for every Runge-Kutta table, with fixed steps or with step-size control."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from dissensus.errors import SolverError
from dissensus.solve._field import AutogradField, Field, Pullback, evaluate
from dissensus.solve._tableau import Tableau
from dissensus.solve._tape import Step, Tape

# Called after every accepted step with the time and the state there; the state's memory may be reused afterwards.
Callback = Callable[[float, Tensor], None]
# Size of an error, relative to the tolerance: accepted at or below one.
Norm = Callable[[Tensor], float]


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


def combine(x: Tensor, k: Tensor, weights: Sequence[float], h: float, out: Tensor, *, scale: float = 1.0) -> Tensor:
    """``scale x + h sum_i weights_i k_i`` with k [stages, *x.shape], in one pass over memory; ``out`` may be x."""
    count, parts = len(weights), torch.get_num_threads()
    if count == 1 and scale == 1.0:
        return torch.add(x, k[0], alpha=h * weights[0], out=out)
    scaled = torch.tensor([h * w for w in weights], dtype=x.dtype, device=x.device)
    if parts == 1 or x.numel() % parts or x.device.type != "cpu":
        torch.addmv(x.view(-1), k[:count].view(count, -1).t(), scaled, beta=scale, out=out.view(-1))
    else:
        # The product with a vector keeps to one thread; those of a batch are shared out.
        batch = k[:count].view(count, parts, -1).transpose(0, 1)
        shared = (parts, 1, -1)
        torch.baddbmm(x.view(shared), scaled.expand(parts, 1, count), batch, beta=scale, out=out.view(shared))
    return out


def rms(x: Tensor) -> float:
    """Root mean square of all entries; zero for an empty tensor."""
    return float(torch.linalg.vector_norm(x)) / math.sqrt(max(x.numel(), 1))


def too_many_steps(count: int, method: Method, stop: float) -> SolverError:
    """The error for a fixed-step method that cannot reach the time ``stop``."""
    return SolverError(
        f"{count} steps of {method.step_size:g} are needed to reach t = {stop:g}, more than max_steps = "
        f"{method.max_steps}: raise step_size or max_steps"
    )


def underflow(t: float, h: float) -> SolverError:
    """The error for a step-size control that has given up at time t."""
    return SolverError(
        f"step size underflow at t = {t:g} (step {h:.1e}): the dynamics is too stiff or diverges there; loosen rtol "
        "and atol, use float64, or a fixed-step method such as 'euler' or 'rk4'"
    )


def step_limit(t: float, method: Method, stop: float) -> SolverError:
    """The error for a step-size control that has used up its steps at time t."""
    return SolverError(
        f"{method.max_steps} steps reached only t = {t:g} of {stop:g}: loosen rtol and atol, shorten the time, or "
        "raise max_steps"
    )


class Integrator:
    """Integrates one field from time 0; ``norm`` measures the error estimate of adaptive methods.

    The steps are recorded on ``tape``, with the pullbacks of their stages while it keeps them.
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
    ) -> None:
        self.field, self.method, self.stats = field, method, stats
        self.tape, self.callback, self.norm = tape, callback, norm
        self.times = [0.0]

    def run(self, x: Tensor, stops: Sequence[float]) -> list[Tensor]:
        """The states at the ascending times ``stops``; a step ends at each of them."""
        tableau = self.method.tableau
        self.keep = self.tape is not None and self.tape.keeps_pullbacks
        self.k = x.new_empty((tableau.stages + tableau.adaptive, *x.shape))
        self.stage = torch.empty_like(x)
        self.scale = torch.empty_like(x) if tableau.adaptive else x
        self.first: Pullback | None = None  # pullback of k[0], where the last step's last stage is this one's first
        self.pullbacks: list[Pullback] = []
        if tableau.adaptive and stops and stops[-1] > 0.0:
            self._evaluate(0.0, x, 0)
            self.h = self._initial_step(x)
        t, states = 0.0, []
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
            self._evaluate(t, x, 0)
            x = self._finish(t, end - t, x, self._stages(t, end - t, x), end)
        return x

    def _adaptive(self, t: float, x: Tensor, stop: float) -> Tensor:
        method, tableau, k = self.method, self.method.tableau, self.k
        while t < stop:
            if len(self.times) > method.max_steps:
                raise step_limit(t, method, stop)
            # A step that would leave a sliver is stretched to the end.
            last = self.h >= (stop - t) * (1.0 - 1e-6)
            h = stop - t if last else self.h
            if not (last or h >= 1e-12 * stop):  # NaN included
                raise underflow(t, h)
            end = stop if last else t + h
            new = self._stages(t, h, x)
            last_pullback = self._evaluate(end, new, tableau.stages)
            ratio = self.norm(self._error(x, new, h))
            if ratio <= 1.0:
                # Stretching to the end must not teach the controller a tiny step.
                self.h = max(self.h, self._next(h, ratio)) if last else self._next(h, ratio)
                x = self._finish(t, h, x, new, end)
                t = end
                k[0].copy_(k[tableau.stages])
                self.first = last_pullback
            else:
                self.stats.rejected += 1
                self.pullbacks.clear()
                self.h = self._next(h, ratio)
        return x

    def _error(self, x: Tensor, new: Tensor, h: float) -> Tensor:
        """``h sum_i e_i k_i / (atol + rtol max(|x|, |new|))``, in memory that the next stage takes."""
        scale, stage = self.scale, self.stage
        torch.maximum(torch.abs(x, out=scale), torch.abs(new, out=stage), out=scale)
        scale.mul_(self.method.rtol).add_(self.method.atol)
        return combine(stage, self.k, self.method.tableau.e, h, stage, scale=0.0).div_(scale)

    def _stages(self, t: float, h: float, x: Tensor) -> Tensor:
        """Evaluates the stages after the first into k and returns the new state (fresh memory)."""
        tableau = self.method.tableau
        if self.keep and self.first is not None:
            self.pullbacks.append(self.first)
        for i in range(1, tableau.stages):
            # A stage's input outlives the step only where pullbacks are kept.
            buffer = torch.empty_like(x) if self.keep else self.stage
            pullback = self._evaluate(t + tableau.c[i] * h, combine(x, self.k, tableau.a[i], h, buffer), i)
            if pullback is not None:
                self.pullbacks.append(pullback)
        return combine(x, self.k, tableau.b, h, torch.empty_like(x))

    def _evaluate(self, t: float, x: Tensor, i: int) -> Pullback | None:
        self.stats.evaluations += 1
        if not self.keep:
            self.field(t, x, self.k[i])
            return None
        pullback = self.field.vjp(t, x, self.k[i])[1]
        if i == 0:
            self.first = pullback
        return pullback

    def _finish(self, t: float, h: float, x: Tensor, new: Tensor, end: float) -> Tensor:
        self.stats.accepted += 1
        self.times.append(end)
        if self.tape is not None:
            self.tape.add(Step(t, h), x, tuple(self.pullbacks))
            self.pullbacks.clear()
            self.keep = self.tape.keeps_pullbacks
        if self.callback is not None:
            self.callback(end, new)
        return new

    def _next(self, h: float, ratio: float) -> float:
        # h 0.9 ratio^(-1/order), at least a fifth and at most ten times; an accepted step never shrinks.
        if not math.isfinite(ratio):
            return 0.2 * h
        if ratio == 0.0:
            return 10.0 * h
        return h * min(10.0, max(0.9 * ratio ** (-1.0 / self.method.tableau.order), 1.0 if ratio <= 1.0 else 0.2))

    def _initial_step(self, x: Tensor) -> float:
        # Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.4.
        scale = x.abs().mul_(self.method.rtol).add_(self.method.atol)
        f0 = self.k[0]
        d0, d1 = rms(x / scale), rms(f0 / scale)
        if not (math.isfinite(d0) and math.isfinite(d1)):
            return 0.0  # refused as an underflow
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        self.stats.evaluations += 1
        f1 = self.field(h0, torch.add(x, f0, alpha=h0))
        d2 = rms((f1 - f0) / scale) / h0
        top = max(d1, d2)
        h1 = max(1e-6, 1e-3 * h0) if top <= 1e-15 else (0.01 / top) ** (1.0 / self.method.tableau.order)
        return min(100.0 * h0, h1)


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
    k, buffer = x.new_empty((tableau.stages, *x.shape)), torch.empty_like(x)
    for step in steps:
        stats.backward_evaluations += tableau.stages
        for i in range(tableau.stages):
            inputs = combine(x, k, tableau.a[i], step.h, buffer) if i else x
            field(step.t + tableau.c[i] * step.h, inputs, k[i])
        x = combine(x, k, tableau.b, step.h, torch.empty_like(x))
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

    With ``x_i = x + h sum_j a_ij k_j``, ``k_i = f(x_i)`` and ``new = x + h sum_i b_i k_i`` it is, from the last stage
    to the first, ``g_i = h (b_i new' + sum_{m>i} a_mi x_m')``, ``x_i' = pullback_i(g_i)``, and
    ``x' = new' + sum_i x_i'``.
    """
    pullbacks = pullbacks or _stage_pullbacks(field, tableau, stats, step, x)
    count = tableau.stages
    stats.backward_evaluations += count
    if count == 1:
        return pullbacks[0](cotangent * step.h, grads, None).add_(cotangent)
    by_stage = x.new_empty((count, *x.shape))
    g = torch.empty_like(cotangent)
    for i in reversed(range(count)):
        weight, column = step.h * tableau.b[i], [row[i] for row in tableau.a[i + 1 :]]
        if column:
            combine(cotangent, by_stage[i + 1 :], column, step.h, g, scale=weight)
        else:
            torch.mul(cotangent, weight, out=g)
        pullbacks[i](g, grads, by_stage[i])
    return combine(cotangent, by_stage, [1.0] * count, 1.0, torch.empty_like(cotangent))


def _stage_pullbacks(field: Field, tableau: Tableau, stats: Stats, step: Step, x: Tensor) -> list[Pullback]:
    k, pullbacks = x.new_empty((tableau.stages, *x.shape)), []
    stats.backward_evaluations += tableau.stages
    for i in range(tableau.stages):
        inputs = combine(x, k, tableau.a[i], step.h, torch.empty_like(x)) if i else x
        pullbacks.append(field.vjp(step.t + tableau.c[i] * step.h, inputs, k[i])[1])
    return pullbacks
