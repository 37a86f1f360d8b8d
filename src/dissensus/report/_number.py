"""Numbers as text: one rule for tables, axes and every output format."""

import re
from math import floor, isfinite, isnan, log10

MISSING = "–"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def scientific(value: float, digits: int) -> bool:
    """Whether ``digits`` decimals would hide the value (below ``10^-digits``) or drown it (from ``10^6``)."""
    return isfinite(value) and value != 0 and not 10.0**-digits <= abs(value) < 1e6


def number(value: float, digits: int, fixed: bool = False) -> str:
    """``digits`` decimals, with an exponent where :func:`scientific` asks for one; integers whole; NaN as a dash.

    ``fixed`` forbids exponents: what is nearly zero is then shown as zero.
    """
    if isinstance(value, int):
        return str(value)
    if isnan(value):
        return MISSING
    if fixed:
        return f"{round(value, digits) + 0.0:.{digits}f}"  # the sum makes a negative zero positive
    return f"{value:.{digits}{'e' if scientific(value, digits) else 'f'}}"


def pretty(text: str) -> str:
    """Numbers in a text with real minus and power signs: ``-1.20e-12`` becomes ``−1.20×10⁻¹²``."""
    powers = re.sub(r"(?<=\d)e([+-]?\d+)", lambda found: "×" + power(int(found[1])), text)
    return re.sub(r"-(?=[\d.])", "−", powers)


def power(exponent: int) -> str:
    """``10`` with a superscript exponent."""
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def magnitude(value: float) -> int:
    """The decimal exponent ``floor(log10 |value|)``, exact at the powers of ten themselves."""
    return floor(log10(abs(value)) + 1e-12)
