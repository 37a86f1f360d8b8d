"""Figures for print, by matplotlib: one style, and equal files from equal data."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError, optional
from dissensus.report._theme import LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE: Any = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.linewidth": 0.6,
    "axes.edgecolor": LIGHT["faint"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.titleweight": "bold",
    "text.parse_math": False,  # a "$" in a name is a "$"
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "svg.hashsalt": "dissensus",  # without it every file has new identifiers, and committed figures change each time
}
# What matplotlib would write into a file of each format that differs from one time to the next.
_UNCHANGING: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


@contextmanager
def drawing(files: Sequence[Path], size: tuple[float, float], *, dpi: int = 200, **options: Any) -> Iterator["Figure"]:
    """A figure to draw on, written to ``files`` at the end; their suffixes are the formats.

    Args:
        files: PNG, SVG or PDF files; their folders are made if needed.
        size: width and height in inches.
        dpi: dots per inch of a PNG file.
        options: for matplotlib's ``Figure``.
    """
    for file in files:
        if file.suffix not in _UNCHANGING:
            known = ", ".join(_UNCHANGING)
            raise InputError(f"{file}: no format {file.suffix or 'without a suffix'}; use one of {known}")
    mpl = optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, **options)
        yield figure
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, dpi=dpi, metadata=_UNCHANGING[file.suffix])
