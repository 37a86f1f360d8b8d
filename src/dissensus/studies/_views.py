"""How the rows of a study are to be shown, as plain data; :mod:`dissensus.report` draws it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any


@dataclass(frozen=True, kw_only=True)
class View:
    """What all views have.

    Attributes:
        name: of the files that it is written to.
        title: above the table or chart.
        value: the column that is averaged.
        facet: one or several columns; one table or chart for each of their values. Empty: one for all.
        shown: whether the command prints it; the page has all.
        readme: whether it belongs in the README.
    """

    name: str
    title: str
    value: str = "test"
    facet: str | tuple[str, ...] = ()
    shown: bool = False
    readme: bool = False


@dataclass(frozen=True, kw_only=True)
class Grid(View):
    """A table of means over two columns, beside the printed values.

    Attributes:
        rows, columns: the two columns.
        best: ``max`` or ``min`` sets off the best of each column; empty sets off nothing.
        loss: a last column with the best mean of a row minus the last one.
        relative_to: a value of ``rows``; means are divided by that row's, and so are printed values.
    """

    rows: str = "model"
    columns: str = "dataset"
    best: str = "max"
    loss: bool = False
    relative_to: str = ""


@dataclass(frozen=True, kw_only=True)
class Means(View):
    """A table of several means side by side.

    Attributes:
        rows: one row for each value of this column.
        values: columns to average, and their headings.
        last: only the rows with the largest value of this column count.
    """

    rows: str = "model"
    values: Mapping[str, str]
    last: str


@dataclass(frozen=True, kw_only=True)
class Details(View):
    """A table with one row for each cell of the study: mean, 95% interval, counts, printed value, difference."""

    name: str = "details"
    title: str = "Each mean with its 95% interval"


@dataclass(frozen=True, kw_only=True)
class Paired(View):
    """Paired tests over common splits of one value of the column ``of`` against all others.

    Attributes:
        of: the column that is compared.
        reference: its value that is tested against the others.
        last: a column; only the rows with its largest value count.
    """

    name: str = "paired"
    title: str = "Paired tests"
    of: str = "model"
    reference: str = "bimp"
    facet: str | tuple[str, ...] = "dataset"
    last: str = ""


@dataclass(frozen=True, kw_only=True)
class Differences(View):
    """A table of paired differences over common splits to one row of a :class:`Grid`.

    Attributes:
        rows, columns: the two columns.
        reference: the value of ``rows`` whose samples are subtracted.
    """

    rows: str = "model"
    columns: str = "dataset"
    reference: str


@dataclass(frozen=True, kw_only=True)
class Ranks(View):
    """Models ranked on every dataset by their mean, as a table and as a critical-difference figure."""


@dataclass(frozen=True, kw_only=True)
class Lines(View):
    """Curves of ``value`` over ``x``, one for each value of ``series``.

    Attributes:
        x: the column along the axis; rows without a value are left out.
        mean_over: a column; a curve has one point for each of its values, at the mean of ``x``. Empty: for each ``x``.
        series: the column that tells curves apart.
        only: the curves to draw; empty: all.
        without: the curves to leave out, where there would be too many on one chart.
        piece: a column that cuts a curve into pieces; empty: one piece.
        dashed: a column; pieces in which it is true are drawn broken.
        x_label, y_label, x_log, y_log: of the axes.
        within: values outside this range are not drawn, so that one curve that diverges does not flatten all others.
        floor: on a logarithmic axis smaller values have one place, and zero another one.
        quantiles: median and the band from the 10% to the 90% quantile, in place of the mean and its 95% interval.
    """

    x: str
    mean_over: str = ""
    series: str = "model"
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    piece: str = ""
    dashed: str = ""
    x_label: str = ""
    y_label: str = ""
    x_log: bool = False
    y_log: bool = False
    within: tuple[float, float] = (-inf, inf)
    floor: float | None = None
    quantiles: bool = False


@dataclass(frozen=True, kw_only=True)
class Pitchfork(View):
    """The figure of bifurcation diagrams beside opinions on a square lattice, from the rows of that study."""


def over(
    axis: str,
    title: str,
    table: str,
    *,
    name: str = "accuracy",
    x_label: str = "layers, or Euler steps of size 1",
    y_label: str = "test accuracy (%)",
    of: str = "model",
    facet: str = "dataset",
    best: str = "max",
    loss: bool = False,
    readme: tuple[bool, bool] = (False, True),
) -> tuple[Lines, Grid, Paired, Details]:
    """The views of a value over a numeric axis: curves, a table, paired tests at the greatest value, and details.

    Args:
        axis: the column of the axis, such as ``depth``.
        title: of the curves.
        table: title of the table.
        name: of the files.
        x_label, y_label: of the curves.
        of: the column of the curves, which are the rows of the table.
        facet: see :class:`View`.
        best, loss: see :class:`Grid`.
        readme: whether the curves, and whether the table, belong in the README.
    """
    common: dict[str, Any] = {"name": name, "facet": facet}
    labels: dict[str, Any] = {"x_log": True, "x_label": x_label, "y_label": y_label}
    shown: dict[str, Any] = {"best": best, "loss": loss, "shown": True}
    return (
        Lines(title=title, x=axis, series=of, readme=readme[0], **common, **labels),
        Grid(title=table, rows=of, columns=axis, readme=readme[1], **common, **shown),
        Paired(title=f"Paired tests at the greatest {axis}", of=of, last=axis, shown=True),
        Details(),
    )
