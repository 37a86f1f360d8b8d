"""Statistics over repeated runs, as pure functions on plain numbers."""

import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import TypeVar

from dissensus.errors import InputError

Key = TypeVar("Key", bound=Hashable)


def mean(samples: Iterable[float]) -> float:
    """``sum(x) / n``; refuses an empty or a non-finite sample."""
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

    reach = float(stdtrit(n - 1, (1 + level) / 2)) * std / sqrt(n)
    return mean - reach, mean + reach


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

    Keys that only one of them has are left out; fewer than two common ones are refused. Where every difference is
    zero both p-values are 1.
    """
    common = [key for key in a if key in b]
    if len(common) < 2:
        raise InputError(
            f"a paired test needs at least 2 common splits, got {len(common)}; run both on the same splits"
        )
    # Rounding removes the last-bit noise of a subtraction, which would break ties between equal differences.
    differences = [
        round(x - y, 12) for x, y in zip(_finite(map(a.get, common)), _finite(map(b.get, common)), strict=True)
    ]
    centre, spread, n = mean(differences), std(differences), len(differences)
    low, high = interval(centre, spread, n)
    return Comparison(n, centre, spread, low, high, _t_test(centre, spread, n), _wilcoxon(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction for many tests: ``max over j <= i of min(1, (m - j) p_(j))``, in the order given."""
    found, largest = [1.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        found[index] = largest
    return found


def _t_test(centre: float, spread: float, n: int) -> float:
    # scipy.stats.ttest_rel warns and answers NaN where all differences are equal; the limits are 1 and 0.
    if spread == 0:
        return 1.0 if centre == 0 else 0.0
    from scipy.special import stdtr

    return 2 * float(stdtr(n - 1, -abs(centre) / (spread / sqrt(n))))


def _wilcoxon(differences: list[float]) -> float:
    """Exact two-sided p-value, ties included: each difference has either sign with probability 1/2.

    scipy.stats.wilcoxon is exact without ties only, or by going through all signs; adding one rank after the other to
    the distribution of the rank sum is exact for both, and quick.
    """
    import numpy as np

    sizes = np.abs([value for value in differences if value != 0])
    # Twice the mid-rank, a whole number: values below, plus values up to and including, plus one.
    ranks = [int((sizes < size).sum() + (sizes <= size).sum()) + 1 for size in sizes]
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[: len(chances) - rank]
        chances = (chances + shifted) / 2
    positive = sum(rank for rank, value in zip(ranks, filter(None, differences), strict=True) if value > 0)
    return min(1.0, 2 * float(min(chances[: positive + 1].sum(), chances[positive:].sum())))


def _finite(samples: Iterable[float | None]) -> list[float]:
    values = [nan if value is None else float(value) for value in samples]
    if not values or not all(map(isfinite, values)):
        raise InputError("statistics need at least one value, all of them finite; leave out the runs that failed")
    return values
