"""Tables, charts and texts of a page as HTML. :func:`text` or :func:`prose` escapes every text of the caller."""

import re
from html import escape
from math import isfinite, isnan

from dissensus.report._curves import Curves
from dissensus.report._number import format_number, magnitude, pretty
from dissensus.report._table import Cell, Parts, Table, Value, sort_key
from dissensus.report._web import embedded


def text(raw: str) -> str:
    """``raw`` with all special characters of HTML escaped."""
    return escape(raw, quote=True)


def prose(raw: str) -> str:
    """Escaped text in which `` `code` `` is set as code and a blank line starts a paragraph."""
    paragraphs = [part for part in re.split(r"\n\s*\n", raw.strip()) if part]
    return "".join(f"<p>{_code(part)}</p>" for part in paragraphs)


def table_html(table: Table, name: str) -> str:
    """A table in a scrollable box, with the sort keys for the page's script; ``name`` is its id."""
    winners = table.winners()
    columns = range(len(table.columns))
    cells = [[table.parts(index, row[index]) for index in columns] for row in table.rows]
    tails = [max((_width(row[index].tail) for row in cells), default=0.0) for index in columns]
    rests = [max((_width(row[index].rest) for row in cells), default=0.0) for index in columns]
    head = "".join(_head(table, index) for index in columns)
    body = "".join(
        "<tr>"
        + "".join(
            _cell(
                table, index, table.rows[place][index], parts, (tails[index], rests[index]), (place, index) in winners
            )
            for index, parts in enumerate(row)
        )
        + "</tr>"
        for place, row in enumerate(cells)
    )
    # Many columns with standard deviations only fit on a screen in a smaller font.
    spread = sum(any(isinstance(row[index], Value) for row in table.rows) for index in columns)
    kind = "table dense" if spread > 7 else "table"
    label = text(table.caption or "Table")
    caption = f"<figcaption>{_code(table.caption)}</figcaption>" if table.caption else ""
    note = f'<p class="note">{_code(table.note)}</p>' if table.note else ""
    return (
        f'<figure class="{kind}" id="{name}">{caption}<div class="box" role="region" tabindex="0" aria-label="{label}">'
        f'<table aria-label="{label}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}</figure>'
    )


def curves_html(curves: Curves, name: str) -> str:
    """A chart, drawn by the page's script, and its data table; ``name`` is its id."""
    title = f"<h3>{_code(curves.title)}</h3>" if curves.title else ""
    caption = f"<figcaption>{_code(curves.caption)}</figcaption>" if curves.caption else ""
    numbers = table_html(data_table(curves), f"{name}-data")
    return (
        f'<figure class="chart" id="{name}">{title}<div class="plot" data-chart="{name}-chart"></div>'
        f"{embedded(f'{name}-chart', curves.chart())}<details><summary>Data as a table</summary>{numbers}</details>"
        f"{caption}</figure>"
    )


def data_table(curves: Curves, max_rows: int = 25) -> Table:
    """The chart's data, one row for each x; evenly spaced rows if there are more than ``max_rows``."""
    points: dict[str, dict[float, list[float]]] = {name: {} for name in curves.names}
    for line in curves.series:
        for x, value in zip(line.x, line.y, strict=True):
            known = points[line.name].setdefault(x, [])
            if value not in known:
                known.append(value)
    drawn = [line.y[i] for line in curves.series for segment in curves.segments(line) for i in segment]
    value_range = max(drawn) - min(drawn) or abs(drawn[0]) or 1.0
    digits = 3 if curves.y_log else max(0, 3 - magnitude(value_range))
    xs = sorted({x for line in points.values() for x in line if isfinite(x)})
    step = max(1, -(-len(xs) // max_rows))
    x_name = curves.x_label or "x"
    while x_name in curves.names:
        x_name += " "
    rows: list[list[Cell]] = [
        [int(x) if x.is_integer() else x, *(_branches(points[name].get(x, []), digits) for name in curves.names)]
        for x in xs[::step]
    ]
    note = f"{len(rows)} of {len(xs)} points." if step > 1 else ""
    decimals = dict.fromkeys(curves.names, digits) | {x_name: 4}
    title = f"{curves.title or 'Chart'}: {curves.y_label or 'values'}"
    return Table([x_name, *curves.names], rows, title, note, digits=decimals)


def _branches(values: list[float], digits: int) -> Cell:
    """A single value as a number; several values at one x, where a curve has branches, as a text."""
    if len(values) > 1:
        return " / ".join(pretty(format_number(value, digits)) for value in values)
    return values[0] if values else None


def _head(table: Table, index: int) -> str:
    kind = ' class="num"' if table.numeric(index) else ""
    first = ' data-first="descending"' if table.best.get(table.columns[index]) == "max" else ""
    return f'<th scope="col"{kind}{first}>{_code(table.columns[index])}</th>'


def _cell(table: Table, index: int, cell: Cell, parts: Parts, widths: tuple[float, float], best: bool) -> str:
    numeric = table.numeric(index)
    key = sort_key(cell)
    shown = _code(parts.head) if isinstance(cell, str) else text(pretty(parts.head))
    if not isnan(key):
        shown += _pad(pretty(parts.tail), "tail", widths[0]) + _pad(pretty(parts.rest), "rest", widths[1])
    if best:
        shown = f"<strong>{shown}</strong>"
    if parts.paper:
        shown += f'<span class="paper">{text(pretty(parts.paper))}</span>'
    value = "" if isnan(key) else f' data-value="{key!r}"'
    if isinstance(cell, Value) and not isnan(cell.interval[0]):
        low, high = (pretty(format_number(end, table.decimals(index))) for end in cell.interval)
        value += f' title="95% interval {low} to {high}"'
    kind = " ".join(["num"] * numeric + ["best"] * best)
    kind = f' class="{kind}"' if kind else ""
    return f'<th scope="row"{kind}{value}>{shown}</th>' if index == 0 else f"<td{kind}{value}>{shown}</td>"


def _pad(part: str, kind: str, width: float) -> str:
    """A part of a number in a box as wide as the widest one of its column, so that decimal points align."""
    return f'<span class="{kind}" style="min-width:{width:.1f}ch">{text(part)}</span>' if width else ""


def _width(part: str) -> float:
    """Approximate width of a part of a number, in digits; other characters are narrower, exponents smaller."""
    mantissa, _, exponent = part.partition("e")
    power = 3 + 0.7 * len(exponent) if exponent else 0.0
    return power + sum(1.0 if letter.isdigit() or letter in "±+-" else 0.6 for letter in mantissa)


def _code(raw: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(raw))
