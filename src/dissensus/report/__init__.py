"""Tables, charts and one self-contained page from plain numbers; no torch, no network.

A :class:`Table` or :class:`Curves` holds data once and is shown in every form: on a terminal, as Markdown, CSV, files
for print, and on a :class:`Page`. A page draws its charts itself; files for print need matplotlib, the extra ``plot``.
:func:`lab` writes the laboratory, which simulates opinions in the browser.
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
