"""Tables and their output formats."""

import csv
import io
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple, TextIO

from dissensus.errors import InputError, one_of
from dissensus.report._number import MISSING, format_number, needs_exponent
from dissensus.report._stats import compare, holm, interval, mean, std

if TYPE_CHECKING:
    from rich.table import Table as RichTable


@dataclass(frozen=True)
class Value:
    """A mean over ``n`` runs with their sample standard deviation, and optionally the value printed in the paper."""

    mean: float
    std: float = nan
    n: int | None = None
    paper: float | None = None

    @classmethod
    def of(cls, samples: Iterable[float], paper: float | None = None) -> "Value":
        """Mean, sample standard deviation and count of ``samples``."""
        values = list(samples)
        return cls(mean(values), std(values), len(values), paper)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% t interval of the mean; NaN where fewer than two runs are known."""
        return interval(self.mean, self.std, self.n or 0)

    @property
    def difference(self) -> float:
        """``mean - paper``; NaN where the paper has no value."""
        return nan if self.paper is None else self.mean - self.paper

    def parts(self, digits: int, fixed: bool = False) -> tuple[str, str, str]:
        """The mean, `` ± std (n)`` and ``paper value (difference)``, each empty where it is not known."""
        style = f".{digits}{'e' if needs_exponent(self.mean, digits) and not fixed else 'f'}"
        spread = "" if isnan(self.std) else f" ± {self.std:{style}}"
        count = "" if self.n is None else f" ({self.n})"
        paper = "" if self.paper is None else f"paper {self.paper:{style}} ({self.difference:+{style}})"
        return format_number(float(self.mean), digits, fixed), spread + count, paper


Cell = str | float | Value | None


class Parts(NamedTuple):
    """The text of a cell, split at the decimal point so that a column can be aligned there."""

    head: str  # everything before the decimal point, or a whole text
    tail: str = ""  # the decimal point and the decimals
    rest: str = ""  # standard deviation and number of runs
    paper: str = ""  # the paper's value


@dataclass
class Table:
    """A table whose cells are texts, numbers, :class:`Value` or ``None``. The first column names the row.

    Args:
        columns: the names of the columns.
        rows: one cell for each column.
        caption: shown above the table.
        note: shown below the table.
        best: for some columns, whether the ``"max"`` or ``"min"`` is the best cell, which is highlighted. Numbers that
            look equal with the digits shown are equally good.
        digits: number of decimals, for all columns or for each column by name.
        fixed: columns whose numbers have no exponent, so that numbers near zero may be shown as zero.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    note: str = ""
    best: Mapping[str, str] = field(default_factory=dict)
    digits: int | Mapping[str, int] = 2
    fixed: Collection[str] = ()

    def __post_init__(self) -> None:
        self.columns = [str(name) for name in self.columns]
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InputError(f"columns are {self.columns}; give at least one, each with its own name")
        self.rows = [[_plain(cell) for cell in row] for row in self.rows]
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {index} has {len(row)} cells for {len(self.columns)} columns; give one for each column"
                )
        for name, direction in self.best.items():
            one_of("column in best", name, self.columns)
            one_of("direction in best", direction, ("max", "min"))
        for name in self.digits if isinstance(self.digits, Mapping) else ():
            one_of("column in digits", name, self.columns)
        for name in self.fixed:
            one_of("column in fixed", name, self.columns)

    @classmethod
    def paired(
        cls, reference: str, results: Mapping[str, Mapping[object, float]], caption: str = "", digits: int = 2
    ) -> "Table":
        """Paired tests of the model ``reference`` against every other one of ``results`` (model to split to score).

        Models with fewer than two splits in common with the reference are listed without a test. The last column
        corrects the p-values of Wilcoxon's test for their number, by Holm's method.
        """
        one_of("model", reference, results)
        rows: list[list[Cell]] = []
        for name in results:
            if name == reference:
                continue
            common = results[reference].keys() & results[name].keys()
            if len(common) < 2:
                rows.append([name, len(common), *[None] * 6])
                continue
            test = compare(results[reference], results[name])
            rows.append([name, test.n, test.difference, test.low, test.high, test.p_t, test.p_wilcoxon, None])
        tested = [row for row in rows if row[2] is not None]
        for row, p in zip(tested, holm([float(str(row[6])) for row in tested]), strict=True):
            row[7] = p
        columns = [f"{reference} against", "splits", "difference", "95% from", "to"]
        columns += ["p (paired t)", "p (Wilcoxon)", "p (Holm)"]
        decimals = dict.fromkeys(columns[2:5], digits) | dict.fromkeys(columns[5:], 3)
        note = (
            "Two-sided tests on the splits that both models have; the difference is positive where the first is ahead. "
            "The last column corrects Wilcoxon's p-values for the number of tests in the table."
        )
        return cls(columns, rows, caption, note, digits=decimals, fixed=columns[2:5])

    def text(self) -> str:
        """Plain text with aligned decimal points, one line per row, for pipes and log files."""
        body = [[f"{cell} {parts.paper}" if parts.paper else cell for cell, parts in row] for row in self._aligned()]
        widths = [max(map(len, column)) for column in zip(self.columns, *body, strict=True)]
        lines = [self.caption, ""] if self.caption else []
        for row in (self.columns, ["-" * width for width in widths], *body):
            cells = [
                text.rjust(width) if self.numeric(index) else text.ljust(width)
                for index, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines) + "\n"

    def rich(self) -> "RichTable":
        """A :class:`rich.table.Table`. Texts are not interpreted as markup."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=box.SIMPLE_HEAD,
            title=Text(self.caption, style="bold") if self.caption else None,
            title_justify="left",
            caption=Text(self.note, style="dim") if self.note else None,
            caption_justify="left",
        )
        for index, name in enumerate(self.columns):
            table.add_column(Text(name), justify="right" if self.numeric(index) else "left")
        winners = self.winners()
        for row_index, row in enumerate(self._aligned()):
            cells = []
            for index, (text, parts) in enumerate(row):
                cell = Text(text, style="bold green" if (row_index, index) in winners else "")
                cells.append(cell.append(f"\n{parts.paper}", style="dim not bold default") if parts.paper else cell)
            table.add_row(*cells)
        return table

    def show(self, file: TextIO | None = None) -> None:
        """Print to ``file`` (by default standard output): a rich table on a terminal, otherwise plain text."""
        out = file or sys.stdout
        if not out.isatty():
            out.write(self.text())
            return
        from rich.console import Console

        Console(file=out).print(self.rich())

    def markdown(self) -> str:
        """A GitHub-flavoured Markdown table, the best cells in bold."""
        marks = ["---:" if self.numeric(index) else ":---" for index in range(len(self.columns))]
        lines = [_markdown_row(map(_markdown, self.columns)), _markdown_row(marks)]
        winners = self.winners()
        for row_index, row in enumerate(self.rows):
            cells = []
            for index, cell in enumerate(row):
                parts = self.parts(index, cell)
                text = _markdown(parts.head + parts.tail + parts.rest)
                text = f"**{text}**" if (row_index, index) in winners else text
                cells.append(f"{text}<br>{parts.paper}" if parts.paper else text)
            lines.append(_markdown_row(cells))
        before = [_markdown(self.caption), ""] if self.caption else []
        after = ["", _markdown(self.note)] if self.note else []
        return "\n".join(before + lines + after) + "\n"

    def csv(self) -> str:
        """Comma-separated values at full precision.

        A column ``name`` with a :class:`Value` has further columns ``name std``, ``name n``, ``name low`` and ``name
        high`` (the 95% interval), and ``name paper`` if a value of the paper is known.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        columns = [[row[index] for row in self.rows] for index in range(len(self.columns))]
        has_values = [any(isinstance(cell, Value) for cell in column) for column in columns]
        has_paper = [any(isinstance(cell, Value) and cell.paper is not None for cell in column) for column in columns]
        header: list[str] = []
        for name, value, paper in zip(self.columns, has_values, has_paper, strict=True):
            extra = ["std", "n", "low", "high"] * value + ["paper"] * paper
            header += [name, *(f"{name} {part}" for part in extra)]
        writer.writerow(header)
        for row in self.rows:
            line: list[Cell] = []
            for cell, value, paper in zip(row, has_values, has_paper, strict=True):
                if isinstance(cell, Value):
                    line += [cell.mean, cell.std, cell.n, *cell.interval] + [cell.paper] * paper
                else:
                    line += [cell] + [None] * (4 * value + paper)
            writer.writerow("" if item is None or item != item else item for item in line)
        return out.getvalue()

    def numeric(self, index: int) -> bool:
        """Whether a column has a number (and perhaps texts such as "out of memory"), or only missing cells."""
        cells = [row[index] for row in self.rows]
        numbers = any(not isnan(sort_key(cell)) for cell in cells)
        return bool(cells) and (numbers or not any(isinstance(cell, str) for cell in cells))

    def decimals(self, index: int) -> int:
        """The decimals that column ``index`` is shown with."""
        return self.digits if isinstance(self.digits, int) else self.digits.get(self.columns[index], 2)

    def parts(self, index: int, cell: Cell) -> Parts:
        """A cell of column ``index`` as text."""
        digits = self.decimals(index)
        if cell is None:
            return Parts(MISSING)
        if isinstance(cell, str):
            return Parts(cell)
        fixed = self.columns[index] in self.fixed
        value, rest, paper = (
            cell.parts(digits, fixed) if isinstance(cell, Value) else (format_number(cell, digits, fixed), "", "")
        )
        head, point, tail = value.partition(".")
        return Parts(head, point + tail, rest, paper)

    def winners(self) -> set[tuple[int, int]]:
        """Row and column of every best cell; a column with fewer than two numbers has none."""
        found = set()
        for name, direction in self.best.items():
            index = list(self.columns).index(name)
            shown = {}
            for place, row in enumerate(self.rows):
                if not isnan(sort_key(row[index])):
                    parts = self.parts(index, row[index])
                    shown[place] = float(parts.head + parts.tail)
            if len(shown) > 1:
                top = max(shown.values()) if direction == "max" else min(shown.values())
                found |= {(place, index) for place, value in shown.items() if value == top}
        return found

    def _aligned(self) -> list[list[tuple[str, Parts]]]:
        """Every cell, padded on the right so that decimal points align in a right-justified column."""
        cells = [[self.parts(index, cell) for index, cell in enumerate(row)] for row in self.rows]
        columns = list(zip(*cells, strict=True))
        tails = [max(len(parts.tail) for parts in column) for column in columns]
        rests = [max(len(parts.rest) for parts in column) for column in columns]
        return [
            [
                (p.head + p.tail.ljust(tails[i]) + p.rest.ljust(rests[i]) if p.tail or p.rest else p.head, p)
                for i, p in enumerate(row)
            ]
            for row in cells
        ]


def sort_key(cell: Cell) -> float:
    """The number that a cell is sorted by; NaN for text and missing cells."""
    if cell is None or isinstance(cell, str):
        return nan
    return float(cell.mean if isinstance(cell, Value) else cell)


def _plain(cell: object) -> Cell:
    # NumPy scalars and booleans become plain types that every output format supports.
    if cell is None or isinstance(cell, str | Value):
        return cell
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, Integral):
        return int(cell)
    if isinstance(cell, Real):
        return float(cell)
    raise InputError(f"a cell is a {type(cell).__name__}; give text, a number, a report.Value or None")


def _markdown(text: str) -> str:
    for mark in "\\|*<":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
