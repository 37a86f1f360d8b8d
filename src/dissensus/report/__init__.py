"""Tables, figures and one self-contained page from plain numbers; no torch, no network.

A :class:`Table` or :class:`Curves` holds data once and is shown in every form: on a terminal, as Markdown, CSV, files
for print, and on a :class:`Page`.
"""

from dissensus.report._curves import Curves, Series
from dissensus.report._page import Page
from dissensus.report._provenance import provenance
from dissensus.report._stats import Comparison, compare, interval, mean, std
from dissensus.report._table import Table, Value, paired_table

__all__ = [
    "Comparison",
    "Curves",
    "Page",
    "Series",
    "Table",
    "Value",
    "compare",
    "interval",
    "mean",
    "paired_table",
    "provenance",
    "std",
]
