"""Tables, charts and self-contained pages from plain numbers. Neither torch nor a network is needed.

A :class:`Table` is shown on a terminal, as Markdown or CSV, or on a :class:`Page`. A :class:`Curves` chart is shown on
a page or saved as PNG and SVG, which needs matplotlib (the extra ``plot``). :func:`lab` writes the laboratory, which
simulates opinions in the browser.
"""

from dissensus.report._curves import Curves, Series
from dissensus.report._drawing import drawing as drawing
from dissensus.report._lab import lab as lab
from dissensus.report._opinions import Diagram as Diagram
from dissensus.report._opinions import Panel as Panel
from dissensus.report._opinions import draw_opinions
from dissensus.report._page import Page
from dissensus.report._table import Table, Value
from dissensus.report._theme import LIGHT as LIGHT

__all__ = ["Curves", "Page", "Series", "Table", "Value", "draw_opinions"]
