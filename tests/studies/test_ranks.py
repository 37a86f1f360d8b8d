import pytest

from dissensus.errors import InputError
from dissensus.studies._ranks import draw_ranks, rank, undistinguished


def test_ranks_critical_difference_and_friedman():
    # Demsar (2006), table 6: C4.5 and three variants on 14 datasets, with CD 1.25 at the 10% level (q = 2.291).
    plain = [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.0, 0.94, 0.619, 0.972, 0.957]
    m = [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978]
    cf = [0.771, 0.59, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.0, 0.965, 0.614, 0.9751, 0.946]
    both = [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.0, 0.962, 0.669, 0.975, 0.97]
    models = {"C4.5": plain, "m": m, "cf": cf, "m+cf": both}
    found = rank({name: {f"{i}": x for i, x in enumerate(row)} for name, row in models.items()}, level=0.1)
    assert found.critical == pytest.approx(2.291 * (4 * 5 / (6 * 14)) ** 0.5, rel=1e-3)
    assert found.averages["C4.5"] == pytest.approx(3.143, abs=1e-3)
    assert found.averages["m"] == pytest.approx(2.0, abs=1e-3)
    assert next(iter(found.averages)) == "m+cf"
    assert 0.01 < found.p < 0.05


def test_ranks_use_common_datasets_and_need_enough_of_them():
    full = {"cora": 1.0, "photo": 2.0}
    found = rank({"a": full, "b": {**full, "texas": 3.0}, "c": {"photo": 2.0, "cora": 1.0}})
    assert found.datasets == ["cora", "photo"]
    assert found.p == 1.0
    assert set(found.averages.values()) == {2.0}
    with pytest.raises(InputError, match="3 models on 2"):
        rank({"a": full, "b": full})


def test_the_figure_of_ranks_groups_what_does_not_differ(tmp_path):
    assert undistinguished([1.0, 1.5, 3.0, 4.0], 1.2) == [(0, 1), (2, 3)]
    assert undistinguished([1.0, 3.0], 1.0) == []
    assert undistinguished([1.0, 2.0, 2.5], 5.0) == [(0, 2)]
    pytest.importorskip("matplotlib")
    path = tmp_path / "ranks.svg"
    draw_ranks([path], {"a": 1.2, "b": 2.0, "c": 2.8}, 0.9, "Ranks")
    assert path.stat().st_size > 1000
