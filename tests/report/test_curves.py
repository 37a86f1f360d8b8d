import builtins
from itertools import combinations
from math import nan
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from dissensus.errors import InputError, MissingExtraError
from dissensus.report import Curves, Series
from dissensus.report._figure import _look, draw
from dissensus.report._theme import DARK, LIGHT, series_colours

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


def test_gaps_split_a_series_and_bands_need_both_ends():
    line = Series("a", [0, 1, 2, 3, 4], [1, nan, 2, 0, 3], [0.5, 0.5, nan, 1, 2], [2, 2, 2, 2, 4])
    assert Curves([line]).runs(line) == [[0], [2, 3, 4]]
    assert Curves([line]).bands(line) == [[0], [3, 4]]
    assert Curves([line], y_log=True).runs(line) == [[0], [2], [4]]
    assert Curves([line], x_log=True).runs(line) == [[2, 3, 4]]


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


def test_series_of_one_name_share_a_look():
    curves = Curves([Series("a", [0, 1], [0, 1]), Series("b", [0], [2]), Series("a", [2, 3], [1, 0])])
    assert curves.names == ["a", "b"]
    assert len({(look["color"], look["marker"]) for look in (_look(i, False) for i in range(64))}) == 64


def rgb(colour):
    raw = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(raw <= 0.04045, raw / 12.92, ((raw + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(rgb(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(linear):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / np.array([0.9505, 1, 1.089]))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_contrast(theme):
    for ground in ("paper", "wash"):
        assert all(contrast(theme[name], theme[ground]) >= 4.5 for name in ("ink", "muted", "accent"))
    assert contrast(theme["muted"], theme["best"]) >= 4.5
    assert all(contrast(colour, theme["paper"]) >= 3 for colour in series_colours(theme))


# Full dichromacy in linear RGB, after Machado, Oliveira and Fernandes (2009).
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stay_apart_for_every_reader(theme, vision):
    seen = [lab(np.clip(np.array(VISION[vision]) @ rgb(colour), 0, 1)) for colour in series_colours(theme)]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


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


def test_save_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
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
