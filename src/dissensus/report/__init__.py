"""Tables, figures and one self-contained page from plain numbers; no torch, no network.

A :class:`Table` or :class:`Curves` holds data once and is shown in every form: on a terminal, as Markdown, CSV, files
for print, and on a :class:`Page`.
"""

from dissensus.report._bifurcation import Diagram, Panel, draw_bifurcation, draw_simulation
from dissensus.report._curves import Curves, Series
from dissensus.report._page import Page
from dissensus.report._provenance import provenance
from dissensus.report._stats import Comparison, compare, interval, mean, std
from dissensus.report._table import Table, Value, paired_table

__all__ = [
    "Comparison",
    "Curves",
    "Diagram",
    "Page",
    "Panel",
    "Series",
    "Table",
    "Value",
    "compare",
    "draw_bifurcation",
    "draw_simulation",
    "interval",
    "mean",
    "paired_table",
    "provenance",
    "std",
]
