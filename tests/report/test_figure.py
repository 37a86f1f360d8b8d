import sys
from math import nan
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from dissensus.errors import InputError, MissingExtraError
from dissensus.report import Curves, Series
from dissensus.report._figure import _line_style, draw

DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128]
DEPTH = Curves(
    [
        Series("bimp", DEPTHS, [80.0 + d / 50 for d in DEPTHS], [79.0] * 8, [84.0] * 8),
        Series("gcn", DEPTHS, [81.0, 80, 60, nan, 40, 30, 20, 14], dashed=True),
    ],
    x_label="steps",
    y_label="accuracy",
    title="Depth",
    x_log=True,
)


def test_series_of_one_name_share_a_look():
    curves = Curves([Series("a", [0, 1], [0, 1]), Series("b", [0], [2]), Series("a", [2, 3], [1, 0])])
    assert curves.names == ["a", "b"]
    assert len({(look["color"], look["marker"]) for look in (_line_style(i, False) for i in range(64))}) == 64


@pytest.mark.slow
def test_save_writes_equal_files_for_equal_data(tmp_path):
    first, second = DEPTH.save(tmp_path / "new" / "T=0.5"), DEPTH.save(tmp_path / "again")
    assert [path.name for path in first] == ["T=0.5.png", "T=0.5.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    header = first[0].read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert int.from_bytes(header[16:20], "big") == round(5.6 * 300)
    ElementTree.parse(first[1])


def test_save_draws_the_whole_range_of_floats(tmp_path):
    ys = [10.0**-k for k in range(0, 324, 18)]
    png, _ = Curves([Series("$a$_b", range(len(ys)), ys)], y_log=True, title="$\\bad{").save(tmp_path / "deep")
    assert png.stat().st_size > 0


def test_zero_and_what_is_below_the_floor_have_places_of_their_own():
    ys = [1.0, 1e-20, 1e-57, 0.0, float("nan"), -1.0]
    curves = Curves([Series("a", range(6), ys), Series("b", range(6), [1.0] * 6)], y_log=True, y_floor=1e-40)
    assert [curves.place(y) for y in ys[:4]] == [1.0, 1e-20, 1e-40, pytest.approx(1e-45)]
    assert curves.segments(curves.series[0]) == [[0, 1, 2, 3]]
    assert {"1", "< 10⁻⁴⁰", "0"} <= set(ticks(curves))
    # Where nothing is drawn there, there is no tick.
    assert "0" not in ticks(Curves([Series("a", [1, 2], [1.0, 1e-20])], y_log=True, y_floor=1e-40))
    with pytest.raises(InputError, match=r"y_floor is 1e-40: it must be at least 1e-200, with y_log=True"):
        Curves([Series("a", [1], [1.0])], y_floor=1e-40)


def ticks(curves):
    figure = Figure()
    draw(curves, figure)
    figure.draw_without_rendering()
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_save_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"dissensus\[plot\]"):
        DEPTH.save(tmp_path / "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (DEPTHS, {"1", "2", "4", "8", "16", "32", "64", "128"}),
        ((1e-12, 1), {"10⁻¹²", "1"}),
        ((3, 60), {"5", "10", "20", "50"}),
    ],
)
def test_log_ticks(values, expected):
    figure = Figure()
    draw(Curves([Series("a", values, range(len(values)))], x_log=True), figure)
    figure.draw_without_rendering()
    assert expected <= {label.get_text() for label in figure.axes[0].get_xticklabels()}
