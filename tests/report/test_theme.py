from itertools import combinations

import numpy as np
import pytest

from dissensus.report._theme import DARK, LIGHT, series_colours


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
