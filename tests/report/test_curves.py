from math import nan

import numpy as np
import pytest

from dissensus.errors import InputError
from dissensus.report import Curves, Series


def test_gaps_split_a_series_and_bands_need_both_ends():
    line = Series("a", [0, 1, 2, 3, 4], [1, nan, 2, 0, 3], [0.5, 0.5, nan, 1, 2], [2, 2, 2, 2, 4])
    assert Curves([line]).segments(line) == [[0], [2, 3, 4]]
    assert Curves([line]).bands(line) == [[0], [3, 4]]
    assert Curves([line], y_log=True).segments(line) == [[0], [2], [4]]
    assert Curves([line], x_log=True).segments(line) == [[2, 3, 4]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Series("a", [1, 2], [1]), r"lengths \[2, 1\]"),
        (lambda: Series("a", [1], [1], low=[0]), "both low and high"),
        (lambda: Curves([]), "nothing to draw"),
        (lambda: Curves([Series("a", [1], [nan])]), "a finite point"),
        (lambda: Curves([Series("a", [1], [0])], y_log=True), "positive"),
    ],
)
def test_bad_curves_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_series_takes_arrays():
    line = Series("a", np.arange(3), np.float32([1, 2, 3]))
    assert line.x == [0, 1, 2]
    assert line.y == [1, 2, 3]


def test_curves_that_coincide_have_markers_at_different_points():
    curves = Curves([Series(name, range(80), [1.0] * 80) for name in "abc"])
    assert [curves.markers(line) for line in curves.series] == [(0, 10), (1, 10), (2, 10)]
    assert curves.chart()["lines"][2]["every"] == (2, 10)
    short = Curves([Series(name, range(8), [1.0] * 8) for name in "ab"])
    assert short.markers(short.series[1]) == (0, 1)
