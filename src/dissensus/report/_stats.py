"""Statistics over repeated runs, as pure functions on plain numbers."""

import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import TypeVar

from dissensus.errors import InputError

Key = TypeVar("Key", bound=Hashable)


def mean(samples: Iterable[float]) -> float:
    """``sum(x) / n``; an error if there are no values or one is not finite."""
    return statistics.fmean(_finite(samples))


def std(samples: Iterable[float]) -> float:
    """Sample standard deviation ``sqrt(sum((x - mean)^2) / (n - 1))``; NaN for a single value."""
    values = _finite(samples)
    return statistics.stdev(values) if len(values) > 1 else nan


def interval(mean: float, std: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Student's t interval of a mean, ``mean -+ t_{(1 + level)/2, n-1} std / sqrt(n)``; NaN for n < 2."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}; give a confidence level between 0 and 1, such as 0.95")
    if n < 2:
        return nan, nan
    from scipy.special import stdtrit

    half_width = float(stdtrit(n - 1, (1 + level) / 2)) * std / sqrt(n)
    return mean - half_width, mean + half_width


@dataclass(frozen=True)
class Comparison:
    """Paired differences ``a - b`` over the ``n`` keys that both have.

    ``difference`` and ``std`` are their mean and sample standard deviation, ``low`` and ``high`` the 95% t interval of
    the mean, ``p_t`` and ``p_wilcoxon`` the two-sided p-values of the paired t test and of Wilcoxon's signed-rank test.
    """

    n: int
    difference: float
    std: float
    low: float
    high: float
    p_t: float
    p_wilcoxon: float


def compare(a: Mapping[Key, float], b: Mapping[Key, float]) -> Comparison:
    """Test two models on their common splits: ``a`` and ``b`` map a split (or split and seed) to a score.

    Keys that only one of them has are left out; at least two must be common. If all differences are zero, both p-values
    are 1.
    """
    common = [key for key in a if key in b]
    if len(common) < 2:
        raise InputError(
            f"a paired test needs at least 2 common splits, got {len(common)}; run both on the same splits"
        )
    # Without rounding, rounding errors of the subtraction would break ties between equal differences.
    differences = [
        round(x - y, 12) for x, y in zip(_finite(map(a.get, common)), _finite(map(b.get, common)), strict=True)
    ]
    average, spread, n = mean(differences), std(differences), len(differences)
    low, high = interval(average, spread, n)
    return Comparison(n, average, spread, low, high, _t_test(average, spread, n), _wilcoxon(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction of m p-values for multiple tests: ``max_{j <= i} min(1, (m - j) p_(j))``, with j from 0.

    ``p_(j)`` are the p-values in ascending order; the result is in the given order.
    """
    corrected, largest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def _t_test(average: float, spread: float, n: int) -> float:
    # If all differences are equal, scipy.stats.ttest_rel warns and returns NaN; these are the limits.
    if spread == 0:
        return 1.0 if average == 0 else 0.0
    from scipy.special import stdtr

    return 2 * float(stdtr(n - 1, -abs(average) / (spread / sqrt(n))))


def _wilcoxon(differences: list[float]) -> float:
    """Exact two-sided p-value, also with ties.

    Under the null hypothesis every difference is positive with probability 1/2. The distribution of the sum of the
    positive ranks is built up by adding one rank after the other. (With ties, scipy.stats.wilcoxon is exact only if it
    enumerates all signs, which is slow.)
    """
    import numpy as np

    sizes = np.abs([value for value in differences if value != 0])
    # Twice the mid-rank, which is an integer: the numbers of smaller and of smaller or equal values, plus one.
    ranks = [int((sizes < size).sum() + (sizes <= size).sum()) + 1 for size in sizes]
    probabilities = np.zeros(sum(ranks) + 1)
    probabilities[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(probabilities)
        shifted[rank:] = probabilities[: len(probabilities) - rank]
        probabilities = (probabilities + shifted) / 2
    positive = sum(rank for rank, value in zip(ranks, filter(None, differences), strict=True) if value > 0)
    return min(1.0, 2 * float(min(probabilities[: positive + 1].sum(), probabilities[positive:].sum())))


def _finite(samples: Iterable[float | None]) -> list[float]:
    values = [nan if value is None else float(value) for value in samples]
    if not values or not all(map(isfinite, values)):
        raise InputError("statistics need at least one value, all of them finite; leave out the runs that failed")
    return values
