from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from dissensus import dynamics
from dissensus.errors import InputError
from dissensus.report import Panel, draw_opinions
from dissensus.report._opinions import _edges_of, _layout


def test_drawn_edges_tell_friends_from_foes() -> None:
    matrix = dynamics.as_matrix(
        np.array([[0.0, 1.0, 2.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [-3.0, 0.0, 0.0, 0.5], [0.0] * 4])
    )
    assert _edges_of(matrix).tolist() == [[0, 0, 2], [1, 2, 3], [0.0, -1.0, 0.5]]


@pytest.mark.slow
def test_separate_parts_are_drawn_apart_but_near() -> None:
    parts = nx.disjoint_union_all([nx.complete_graph(4), nx.path_graph(3), nx.path_graph(2)])
    places = _layout(dynamics.as_matrix(parts))
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    joined = nx.to_numpy_array(parts) > 0
    assert distances.max() < 15 * distances[joined].mean()
    assert distances[~np.eye(9, dtype=bool)].min() > 0.02 * distances.max()
    large = _layout(dynamics.as_matrix(nx.path_graph(2600)))
    gaps = np.linalg.norm(large[:, None] - large[None], axis=-1) + 1e9 * np.eye(2600)
    assert gaps.min() > 0.5  # no two dots in one place


@pytest.mark.slow
def test_equal_data_give_equal_pictures(tmp_path: Path) -> None:
    times = np.linspace(0.0, 1.0, 5)
    panels = [Panel("one", times, np.outer(1.0 - times, [1.0, -1.0]), "note")]
    files = [tmp_path / name for name in ("one.png", "two.png", "one.svg", "two.svg")]
    for pair in (files[::2], files[1::2]):
        draw_opinions(pair, panels=panels, matrix=dynamics.as_matrix([[0, 1], [1, 0]]))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[2].read_bytes() == files[3].read_bytes()


def test_unknown_picture_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="png"):
        draw_opinions([tmp_path / "a.bmp"])


def test_negative_edges_are_dashed(tmp_path: Path) -> None:
    times = np.linspace(0.0, 1.0, 5)
    panels = [Panel("one", times, np.outer(1.0 - times, [1.0, -1.0, 1.0]))]
    pictures = []
    for weights in ([1.0, 1.0], [1.0, -1.0]):
        matrix = dynamics.as_matrix([(0, 1, weights[0]), (1, 2, weights[1])])
        draw_opinions([tmp_path / "a.svg"], panels=panels, matrix=matrix)
        pictures.append((tmp_path / "a.svg").read_text())
    assert [picture.count("stroke-dasharray") for picture in pictures] == [0, 1]


@pytest.mark.slow
def test_the_title_of_an_ensemble_is_inside_the_figure() -> None:
    starts = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 5, 1))
    figure = dynamics.simulate(nx.path_graph(5), starts, attention=0.6, time=20.0).plot()
    figure.canvas.draw()
    titles = [axes.title for axes in figure.axes] + [axes._left_title for axes in figure.axes]
    boxes = [title.get_window_extent() for title in titles if title.get_text()]
    assert boxes
    for box in boxes:
        assert 0.0 <= box.x0 < box.x1 <= figure.bbox.width
        assert 0.0 <= box.y0 < box.y1 <= figure.bbox.height


@pytest.mark.slow
def test_rounding_is_no_scale() -> None:
    ring = -2.0 * nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))  # the input is none along the critical pair
    axes = dynamics.bifurcation(ring, input=0.1).plot().axes[0]
    assert axes.get_ylim()[1] > 0.1
