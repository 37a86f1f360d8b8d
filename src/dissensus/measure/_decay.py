"""The decay rate of an energy."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from torch import Tensor

from dissensus.errors import InputError


class DecayRate(NamedTuple):
    """A fitted rate, its confidence interval from ``lower`` to ``upper``, and the number of ``points`` in the fit."""

    rate: float
    lower: float
    upper: float
    points: int


def decay_rate(
    energies: Tensor | ArrayLike, times: Tensor | ArrayLike, *, confidence: float = 0.95, floor: ArrayLike | None = None
) -> DecayRate:
    r"""Fit :math:`E(t) \approx E_0 e^{-rt}`. A positive rate r means decay, a negative one growth.

    This is a least-squares fit of log E over t. The confidence interval is Student's, from the residuals. It assumes
    independent points, so for a single trajectory it tells how well an exponential fits, not how much the rate varies
    between runs.

    In floating point, a decay ends at a plateau of rounding errors or at exactly 0. Therefore only the points before
    the first value that is not finite, or not above ``floor``, are used. With

    - three or more points, the result is the fit and its interval;
    - two points, it is the rate through both, with an unbounded interval;
    - one point, the energy vanishes within a step: the rate is infinite, and ``lower`` is the smallest rate that
      reaches the floor within that step;
    - no point, or a single time, all values are NaN.

    Args:
        energies: non-negative values ``[steps]``.
        times: strictly increasing times (or layer numbers) ``[steps]``.
        confidence: confidence level of the interval.
        floor: values at or below the floor count as rounding errors; one number, or one for each time. The default is
            ``eps**2 * max(E)``, where eps is the machine epsilon of the energies' dtype; it is squared because energies
            are squared differences. If the state is large compared to its differences, or its norm changes, give
            ``eps**2`` times its squared norm at each time, with the eps of the state.

    Returns:
        ``rate``, the ends ``lower`` and ``upper`` of its confidence interval, and the number of ``points`` in the fit.
    """
    values, eps = _vector("energies", energies)
    t, _ = _vector("times", times)
    if len(values) != len(t):
        raise InputError(f"{len(values)} energies but {len(t)} times: give one time for each energy")
    if (values < 0).any():
        raise InputError("energies must not be negative: pass dirichlet_energy(...), not its logarithm")
    if not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise InputError("times must be finite and strictly increasing: sort them, with one energy for each time")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, not {confidence}")

    if floor is None:
        floor = eps**2 * np.max(values, where=np.isfinite(values), initial=0.0)
    try:
        floors = np.broadcast_to(np.asarray(floor, dtype=np.float64), values.shape)
    except ValueError:
        raise InputError(f"floor must be one number, or one for each of the {len(values)} times") from None
    usable = np.isfinite(values) & (values > floors)
    points = len(values) if usable.all() else int(np.argmin(usable))
    if points == 0 or len(values) == 1:
        return DecayRate(nan, nan, nan, points)
    if points == 1:
        return _one_point(values, t, float(floors[1]))
    # Logarithms of ratios to the first value, so that a large constant does not cost digits of the slope.
    return _fit(np.log(values[:points] / values[0]), t[:points], confidence)


def _one_point(values: NDArray[np.float64], t: NDArray[np.float64], floor: float) -> DecayRate:
    if not np.isfinite(values[1]):
        return DecayRate(-inf, -inf, inf, 1)
    lower = np.log(values[0] / floor) / (t[1] - t[0]) if floor > 0 else inf
    return DecayRate(inf, float(lower), inf, 1)


def _fit(logs: NDArray[np.float64], t: NDArray[np.float64], confidence: float) -> DecayRate:
    centred = t - t.mean()
    spread = float(centred @ centred)
    slope = float(centred @ logs) / spread
    degrees_of_freedom = len(t) - 2
    if degrees_of_freedom == 0:
        return DecayRate(-slope, -inf, inf, len(t))
    residual = logs - logs.mean() - slope * centred
    error = float(np.sqrt(residual @ residual / degrees_of_freedom / spread))
    half = float(stats.t.ppf((1 + confidence) / 2, degrees_of_freedom)) * error
    return DecayRate(-slope, -slope - half, -slope + half, len(t))


def _vector(name: str, values: Tensor | ArrayLike | Sequence[float]) -> tuple[NDArray[np.float64], float]:
    if isinstance(values, Tensor):
        eps = torch.finfo(values.dtype).eps if values.is_floating_point() else torch.finfo(torch.float64).eps
        array = values.detach().double().cpu().numpy()
    else:
        given = np.asarray(values)
        eps = float(np.finfo(given.dtype if given.dtype.kind == "f" else np.float64).eps)
        array = given.astype(np.float64)
    if array.ndim != 1 or not len(array):
        raise InputError(f"{name} must be a vector [steps] with at least one value, but has shape {list(array.shape)}")
    return array, eps
