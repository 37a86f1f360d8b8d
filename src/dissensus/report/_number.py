"""Numbers as text, in the same way for tables, axes and all output formats."""

import re
from math import floor, isfinite, isnan, log10

MISSING = "–"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def needs_exponent(value: float, digits: int) -> bool:
    """Whether a value is written with an exponent: below ``10^-digits``, or from ``10^6`` on."""
    return isfinite(value) and value != 0 and not 10.0**-digits <= abs(value) < 1e6


def format_number(value: float, digits: int, fixed: bool = False) -> str:
    """A number with ``digits`` decimals, and with an exponent if :func:`needs_exponent`; NaN is a dash.

    Integers have no decimals. With ``fixed`` there is never an exponent, so values near zero may be shown as zero.
    """
    if isinstance(value, int):
        return str(value)
    if isnan(value):
        return MISSING
    if fixed:
        return f"{round(value, digits) + 0.0:.{digits}f}"  # the sum makes a negative zero positive
    return f"{value:.{digits}{'e' if needs_exponent(value, digits) else 'f'}}"


def pretty(text: str) -> str:
    """The text with typographic minus signs and powers of ten: ``-1.20e-12`` becomes ``−1.20×10⁻¹²``."""
    powers = re.sub(r"(?<=\d)e([+-]?\d+)", lambda found: "×" + power(int(found[1])), text)
    return re.sub(r"-(?=[\d.])", "−", powers)


def power(exponent: int) -> str:
    """``10`` with a superscript exponent."""
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def magnitude(value: float) -> int:
    """The decimal exponent ``floor(log10 |value|)``, with a tolerance that makes it exact at powers of ten."""
    return floor(log10(abs(value)) + 1e-12)
