"""Axes: a domain, readable ticks, and the way from a value to a place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2, log10

from dissensus.report._number import magnitude, power, pretty


@dataclass(frozen=True)
class Axis:
    """A domain ``[low, high]``, linear or logarithmic, with labelled ticks inside it."""

    low: float
    high: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Where ``value`` lies: 0 at ``low``, 1 at ``high``, clamped (also what a log axis cannot show)."""
        if self.log:
            # Differences of logarithms, not the logarithm of a ratio: energies span more than a float's range.
            start, end = log10(self.low), log10(self.high)
            return _clamp((log10(value) - start) / (end - start)) if value > 0 else 0.0
        return _clamp((value - self.low) / (self.high - self.low))


def linear_axis(values: Iterable[float], count: int, whole: bool) -> Axis:
    """About ``count`` ticks at multiples of 1, 2 or 5; ``whole`` widens the domain to the next tick at both ends."""
    data = list(values)
    low, high = min(data), max(data)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    step = nice_step((high - low) / count)
    if whole:
        low, high = floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return Axis(low, high, False, tuple((k * step, _label(k * step, step)) for k in range(first, last + 1)))


def log_axis(values: Iterable[float], count: int) -> Axis:
    """Ticks at the data's own values if they are powers of two, else at powers of ten, else at 1, 2, 5."""
    data = sorted(set(values))
    low, high = data[0], data[-1]
    if low == high:
        low, high = low / 2, high * 2
    ticks = _powers_of_two(data, count) or _powers_of_ten(low, high, count)
    if len(ticks) < 2:
        exponents = range(magnitude(low), magnitude(high) + 1)
        marks = [m * 10.0**e for e in exponents for m in (1, 2, 5) if low <= m * 10.0**e <= high]
        ticks = [(mark, _short(mark)) for mark in marks]
    if len(ticks) < 2:
        ticks = list(linear_axis((low, high), count, whole=False).ticks)
    return Axis(low, high, True, tuple(ticks))


def nice_step(rough: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least ``rough``."""
    unit = 10.0 ** magnitude(rough)
    return next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough * (1 - 1e-9))


def _powers_of_two(data: Sequence[float], count: int) -> list[tuple[float, str]]:
    if not 2 <= len(data) <= 16 or not all(log2(value).is_integer() for value in data):
        return []
    return [(value, _short(value)) for value in data[:: ceil(len(data) / (2 * count))]]


def _powers_of_ten(low: float, high: float, count: int) -> list[tuple[float, str]]:
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    step = round(nice_step(max(1.0, (last - first) / count)))
    exponents = [exponent for exponent in range(first, last + 1) if exponent % step == 0]
    short = all(-3 < exponent < 4 for exponent in exponents)
    return [(10.0**e, _short(10.0**e) if short else power(e)) for e in exponents]


def _label(value: float, step: float) -> str:
    if value and not 1e-4 <= step < 1e5:
        return pretty(f"{value:.{max(0, magnitude(value) - magnitude(step))}e}")
    return pretty(f"{value + 0.0:.{max(0, -magnitude(step))}f}")


def _short(value: float) -> str:
    return pretty(f"{value:.10g}")


def _clamp(place: float) -> float:
    return min(1.0, max(0.0, place))
