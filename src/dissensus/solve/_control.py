"""Step-size control: how long the next step is, and which steps to try in the next problem of the kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dissensus.errors import SolverError

# A step is at most this many times as long as the one before it.
LARGEST_GROWTH = 10.0
# A step aims at this share of the longest that the tolerance seems to allow.
_SAFETY = 0.9
# How much of a step a mesh has to spare: the fewer and longer its steps, the less sure are their errors.
_SPARE = 0.2


class StepSizeController:
    """The sizes of the steps of an adaptive method.

    Steps that end at the points of a mesh are tried first; the control by the error estimate goes on after them, or
    after the first of them whose error is too large.

    Args:
        order: of the method.
        size: of the first step, where there is no mesh.
        mesh: times at which steps end.
    """

    def __init__(self, order: int, size: float, mesh: Sequence[float] = ()) -> None:
        self.order, self.size = order, size
        self.ahead = sorted(mesh, reverse=True)

    def propose(self, t: float, stop: float) -> tuple[float, bool]:
        """The size of the next step from t, and whether it ends at ``stop``."""
        while self.ahead and self.ahead[-1] <= t * (1.0 + 1e-6):
            self.ahead.pop()
        wanted = self.ahead[-1] - t if self.ahead else self.size
        # A step that would leave a sliver is stretched to the end.
        if wanted >= (stop - t) * (1.0 - 1e-6):
            return stop - t, True
        if not wanted >= 1e-12 * stop:  # NaN included
            raise underflow(t, wanted)
        return wanted, False

    def accepted(self, h: float, ratio: float, last: bool) -> None:
        """A step of size h had ``ratio`` times the error that it may have, at most one."""
        # Stretching to the end must not teach the controller a tiny step.
        self.size = max(self.size, self._next(h, ratio)) if last else self._next(h, ratio)

    def rejected(self, h: float, ratio: float) -> None:
        """A step of size h had ``ratio`` times the error that it may have, more than one."""
        self.ahead.clear()
        self.size = self._next(h, ratio)

    def _next(self, h: float, ratio: float) -> float:
        # h safety ratio^(-1/order), at least a fifth and at most ten times; an accepted step never shrinks.
        if not math.isfinite(ratio):
            return 0.2 * h
        if ratio == 0.0:
            return LARGEST_GROWTH * h
        least = 1.0 if ratio <= 1.0 else 0.2
        return h * min(LARGEST_GROWTH, max(_SAFETY * ratio ** (-1.0 / self.order), least))


def scaled_error_norm(error: Tensor, x: Tensor, new: Tensor, atol: float, rtol: float) -> float:
    """The root mean square of ``error / (atol + rtol max(|x|, |new|))``; zero for empty tensors. Changes ``error``."""
    scale = torch.maximum(x.abs(), new.abs()).mul_(rtol).add_(atol)
    return float(torch.linalg.vector_norm(error.div_(scale))) / math.sqrt(max(error.numel(), 1))


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
    needed = np.cumsum([0.0, *(max(r ** (1.0 / order), _SAFETY / LARGEST_GROWTH) for r in errors)])
    total = float(needed[-1])
    count = math.ceil((total + _SPARE) / _SAFETY)
    return *np.interp(total * np.arange(1, count) / count, needed, times).tolist(), times[-1]


def too_many_steps(count: int, step_size: float, max_steps: int, stop: float) -> SolverError:
    """The error for a fixed-step method that cannot reach the time ``stop``."""
    return SolverError(
        f"{count} steps of {step_size:g} are needed to reach t = {stop:g}, more than max_steps = {max_steps}: raise "
        "step_size or max_steps"
    )


def underflow(t: float, h: float) -> SolverError:
    """The error for a step-size control that has given up at time t."""
    return SolverError(
        f"step size underflow at t = {t:g} (step {h:.1e}): the dynamics is too stiff or diverges there; shorten the "
        "time, loosen rtol and atol, use float64, or a fixed-step method such as 'euler' or 'rk4'"
    )


def step_limit(t: float, max_steps: int, stop: float) -> SolverError:
    """The error for a step-size control that has used up its steps at time t."""
    return SolverError(
        f"{max_steps} steps reached only t = {t:g} of {stop:g}: loosen rtol and atol, shorten the time, or raise "
        "max_steps"
    )
