import csv
import io
from math import nan

import numpy as np
import pytest
from rich.console import Console

from dissensus.errors import InputError
from dissensus.report import Table, Value
from dissensus.report._stats import interval

RESULTS = Table(
    ["model", "Cora", "energy"],
    [
        ["bimp", Value(83.194, 0.5, 10, paper=83.0), 0.31],
        ["gcn", Value(80.7, 1.25, 3), 2.2e-17],
        ["mlp", "out of memory", None],
    ],
    caption="Accuracy",
    note="Ten splits.",
    best={"Cora": "max", "energy": "min"},
)


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_value_of_samples():
    value = Value.of([1.0, 2.0, 6.0], paper=2.5)
    assert (value.mean, value.n) == (3, 3)
    assert value.difference == 0.5
    assert value.interval == interval(value.mean, value.std, 3)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (Value(83.194, 0.5, 10, 83.0), ("83.19", " ± 0.50 (10)", "paper 83.00 (+0.19)")),
        (Value(83.194, n=1), ("83.19", " (1)", "")),
        (Value(2e-5, 1e-6), ("2.00e-05", " ± 1.00e-06", "")),
        (Value(nan), ("–", "", "")),
    ],
)
def test_value_parts(value, parts):
    assert value.parts(2) == parts


def test_text_aligns_decimal_points_and_keeps_one_line_a_row():
    lines = RESULTS.text().splitlines()
    assert lines[0] == "Accuracy"
    assert lines[-1] == "Ten splits."
    rows = lines[4:7]
    assert "83.19 ± 0.50 (10) paper 83.00 (+0.19)" in rows[0]
    plain = Table(["n", "v"], [["a", 1.5], ["b", 123.25], ["c", 2e-9]]).text().splitlines()[2:]
    assert len({line.index(".") for line in plain}) == 1


def test_show_is_plain_in_a_pipe_and_rich_on_a_terminal():
    pipe, screen = io.StringIO(), Screen()
    RESULTS.show(pipe)
    RESULTS.show(screen)
    assert pipe.getvalue() == RESULTS.text()
    assert "─" in screen.getvalue()


def test_rich_takes_text_literally_and_shows_every_cell():
    out = io.StringIO()
    Console(file=out, width=100).print(Table(["[red]name[/red]", "v"], [["[bold]x", 1.0]], caption="[i]c").rich())
    assert all(piece in out.getvalue() for piece in ("[red]name[/red]", "[bold]x", "[i]c", "1.00"))


def test_markdown():
    lines = RESULTS.markdown().splitlines()
    assert lines[2:5] == [
        "| model | Cora | energy |",
        "| :--- | ---: | ---: |",
        "| bimp | **83.19 ± 0.50 (10)**<br>paper 83.00 (+0.19) | 0.31 |",
    ]
    assert lines[5] == "| gcn | 80.70 ± 1.25 (3) | **2.20e-17** |"
    assert lines[6] == "| mlp | out of memory | – |"
    assert r"| a\|b\*\<i> c |" in Table(["x"], [["a|b*<i>\nc"]]).markdown()


def test_csv_has_full_precision_and_the_interval():
    rows = list(csv.DictReader(io.StringIO(RESULTS.csv())))
    assert list(rows[0]) == ["model", "Cora", "Cora std", "Cora n", "Cora low", "Cora high", "Cora paper", "energy"]
    assert (rows[0]["Cora"], rows[0]["Cora n"], rows[0]["Cora paper"]) == ("83.194", "10", "83.0")
    assert (float(rows[0]["Cora low"]), float(rows[0]["Cora high"])) == interval(83.194, 0.5, 10)
    assert (rows[1]["Cora paper"], rows[1]["energy"]) == ("", "2.2e-17")
    assert (rows[2]["Cora"], rows[2]["Cora std"], rows[2]["energy"]) == ("out of memory", "", "")


def test_best_marks_ties_as_shown_and_needs_a_rival():
    table = Table(
        ["m", "a", "b"], [["x", 1.001, 5.0], ["y", 1.002, None], ["z", 0.5, "–"]], best={"a": "max", "b": "max"}
    )
    assert table.winners() == {(0, 1), (1, 1)}


def test_numbers_of_numpy_booleans_and_digits_by_column():
    table = Table(["m", "f", "i"], [[True, np.float32(0.5), np.int64(7)], ["x", nan, -1]], digits={"f": 1})
    assert table.rows == [["yes", 0.5, 7], pytest.approx(["x", nan, -1], nan_ok=True)]
    assert table.text().splitlines()[2].split() == ["yes", "0.5", "7"]
    assert "–" in table.text()


def test_a_column_without_exponents_rounds_to_zero():
    rows = [["a", 0.0082, 0.0082], ["b", -0.002, -0.002], ["c", -1.25, 2e7]]
    table = Table(["m", "d", "e"], rows, fixed=["d"])
    assert [line.split()[1] for line in table.text().splitlines()[2:]] == ["0.01", "0.00", "-1.25"]
    assert [line.split()[2] for line in table.text().splitlines()[2:]] == ["8.20e-03", "-2.00e-03", "2.00e+07"]
    assert table.csv().splitlines()[1] == "a,0.0082,0.0082"


def test_a_column_of_missing_numbers_stands_where_numbers_do():
    table = Table(["model", "low", "high", "word"], [["gcn", None, nan, "–"], ["gat", None, nan, "x"]])
    assert [table.numeric(index) for index in range(4)] == [False, True, True, False]


def test_a_table_may_be_empty():
    table = Table(["a", "b"], [])
    assert table.csv() == "a,b\n"
    assert table.text() == "a  b\n-  -\n"
    assert not any(map(table.numeric, range(2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": [], "rows": []}, "at least one"),
        ({"columns": ["a", "a"], "rows": []}, "its own name"),
        ({"columns": ["a"], "rows": [[1, 2]]}, "row 0 has 2 cells for 1 columns"),
        ({"columns": ["a"], "rows": [[[1]]]}, "a cell is a list"),
        ({"columns": ["acc"], "rows": [], "best": {"ac": "max"}}, "did you mean 'acc'"),
        ({"columns": ["acc"], "rows": [], "best": {"acc": "most"}}, "Known: max, min"),
        ({"columns": ["acc"], "rows": [], "digits": {"b": 1}}, "unknown column in digits"),
        ({"columns": ["acc"], "rows": [], "fixed": ["b"]}, "unknown column in fixed"),
    ],
)
def test_bad_tables_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Table(**arguments)
