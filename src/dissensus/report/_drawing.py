"""Matplotlib figures for print, in one style. The same data always gives the same file."""

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
    "svg.hashsalt": "dissensus",  # otherwise identifiers are random and the files change every time
}
# Metadata by which two files of the same figure would differ, left out of each format.
_NO_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


@contextmanager
def drawing(files: Sequence[Path], size: tuple[float, float], *, dpi: int = 200, **options: Any) -> Iterator["Figure"]:
    """Context manager with a figure to draw on, which is written to ``files`` at the end.

    Args:
        files: PNG, SVG or PDF files, by their suffixes; missing folders are created.
        size: width and height in inches.
        dpi: dots per inch of a PNG file.
        options: for matplotlib's ``Figure``.
    """
    for file in files:
        if file.suffix not in _NO_METADATA:
            known = ", ".join(_NO_METADATA)
            raise InputError(f"{file} is of no known format: use one of the suffixes {known}")
    mpl = optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, **options)
        yield figure
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(file, dpi=dpi, metadata=_NO_METADATA[file.suffix])
