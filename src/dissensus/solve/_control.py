"""The step-size controller of adaptive methods, and the mesh of steps that it proposes for the next similar problem."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dissensus.errors import SolverError

# Maximum ratio of two consecutive step sizes.
LARGEST_GROWTH = 10.0
# Safety factor: a step has this fraction of the size that the error estimate allows.
_SAFETY = 0.9
# A mesh of n steps has an additional safety margin of _MARGIN / n, because errors of long steps are less predictable.
_MARGIN = 0.2


class StepSizeController:
    """The step sizes of an adaptive method.

    If there is a mesh, its steps are tried first. The error estimate controls the step size after the end of the mesh,
    or after the first step of the mesh whose error is too large.

    Args:
        order: order of the method.
        size: size of the first step if there is no mesh.
        mesh: times at which steps end.
    """

    def __init__(self, order: int, size: float, mesh: Sequence[float] = ()) -> None:
        self.order, self.size = order, size
        self.remaining = sorted(mesh, reverse=True)  # the next time of the mesh is the last entry

    def propose(self, t: float, stop: float) -> tuple[float, bool]:
        """The size of the next step from t, and whether it ends at ``stop``."""
        while self.remaining and self.remaining[-1] <= t * (1.0 + 1e-6):
            self.remaining.pop()
        wanted = self.remaining[-1] - t if self.remaining else self.size
        # Instead of a step that would end just before the stop, take one that ends there.
        if wanted >= (stop - t) * (1.0 - 1e-6):
            return stop - t, True
        if not wanted >= 1e-12 * stop:  # NaN included
            raise underflow(t, wanted)
        return wanted, False

    def accepted(self, h: float, ratio: float, last: bool) -> None:
        """Record that a step of size h was accepted; ``ratio`` is its error divided by the tolerance, at most 1."""
        # The last step may be shortened to end at the stop, which says nothing about the next step size.
        self.size = max(self.size, self._next_size(h, ratio)) if last else self._next_size(h, ratio)

    def rejected(self, h: float, ratio: float) -> None:
        """Record that a step of size h was rejected; ``ratio`` is its error divided by the tolerance, above 1."""
        self.remaining.clear()
        self.size = self._next_size(h, ratio)

    def _next_size(self, h: float, ratio: float) -> float:
        # h safety ratio^(-1/order); the factor of h is between 1/5 and 10, and at least 1 after an accepted step.
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
    """The ends of as few steps as possible to the same final time, with about equal errors within the tolerance.

    A step of size h whose error is r times the tolerance could have had the size ``h r^(-1/order)``, so the density of
    steps needed there is ``r^(1/order) / h``. Every step of a mesh of n steps covers an equal share of the integral of
    this density, at most 0.9 - 0.2/n.

    Args:
        times: 0 and the ends of the steps taken.
        errors: error of each step, divided by the tolerance.
        order: order of the method.
    """
    needed = np.cumsum([0.0, *(max(r ** (1.0 / order), _SAFETY / LARGEST_GROWTH) for r in errors)])
    total = float(needed[-1])
    count = math.ceil((total + _MARGIN) / _SAFETY)
    return *np.interp(total * np.arange(1, count) / count, needed, times).tolist(), times[-1]


def too_many_steps(count: int, step_size: float, max_steps: int, stop: float) -> SolverError:
    """The error for a fixed-step method that cannot reach time ``stop`` with ``max_steps`` steps."""
    return SolverError(
        f"reaching t = {stop:g} takes {count} steps of size {step_size:g}, more than max_steps = {max_steps}: increase "
        "step_size or max_steps"
    )


def underflow(t: float, h: float) -> SolverError:
    """The error for a step size that became too small at time t."""
    return SolverError(
        f"step size underflow at t = {t:g} (step {h:.1e}), because the dynamics are too stiff or diverge: shorten the "
        "time, increase rtol and atol, use float64, or use a fixed-step method such as 'euler' or 'rk4'"
    )


def step_limit(t: float, max_steps: int, stop: float) -> SolverError:
    """The error for an adaptive method that has taken ``max_steps`` steps by time t."""
    return SolverError(
        f"{max_steps} steps only reached t = {t:g} of {stop:g}: increase rtol and atol, shorten the time, or increase "
        "max_steps"
    )
