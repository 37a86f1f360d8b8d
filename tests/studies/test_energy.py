from math import isfinite

import pytest

from dissensus.report import Curves, Table
from dissensus.report._figure import MARKERS
from dissensus.runs import Record
from dissensus.studies import STUDIES, run_energy
from dissensus.studies._show import items
from dissensus.studies._study import Request
from dissensus.studies._views import Lines


@pytest.mark.slow
def test_no_chart_of_energies_repeats_a_colour():
    study = STUDIES["energy"]
    for view in study.views:
        if isinstance(view, Lines):
            drawn = view.only or [model for model in study.models if model not in view.without]
            assert len(drawn) <= len(MARKERS)
            assert set(drawn) <= set(study.models)


def energy_rows(models, layers=200):
    study = STUDIES["energy"]
    plan = study.plan(Request(models=models, seeds=(1,)))
    rows = []
    for config in (config | {"layers": layers} for config in plan.configs):
        rows += study.rows(Record("", "", "done", config, run_energy(config), None, None, 1.0, "", "", {}))
    return rows


@pytest.mark.slow
def test_energy_tells_dissensus_from_consensus():
    rows = energy_rows(("bimp", "grand-l", "grand++-l", "gcn"))
    last = {row["model"]: row for row in rows if row["layer"] == 200}
    assert last["bimp"]["relative_dirichlet_energy"] > 1e-3
    assert last["bimp"]["effective_rank"] > 1.1
    assert last["grand-l"]["dirichlet_energy"] < 1e-20
    # Its raw energy settles while the state grows without end: only the relative one shows it.
    first = next(row for row in rows if row["model"] == "grand++-l" and row["layer"] == 100)
    assert last["grand++-l"]["dirichlet_energy"] == pytest.approx(first["dirichlet_energy"], rel=1e-3)
    assert last["grand++-l"]["relative_dirichlet_energy"] < 0.5 * first["relative_dirichlet_energy"]
    assert energy_rows(("bimp",)) == [row for row in rows if row["model"] == "bimp"]


@pytest.mark.slow
def test_dead_units_are_told_from_smoothing():
    """Discrete models with the identity for weights keep their units alive; with random ones they die to exact zero."""
    rows = energy_rows(("gcn", "gat", "sage", "gcn-group"))
    last = {row["model"]: row for row in rows if row["layer"] == 200}
    assert last["gcn, random weights"]["dirichlet_energy"] == last["sage, random weights"]["dirichlet_energy"] == 0.0
    # Mean aggregation smooths; GCN's symmetric one tends to the root of the degrees, whose energy is not zero.
    assert 0.0 < last["sage"]["dirichlet_energy"] < 1e-20
    assert last["gat"]["dirichlet_energy"] < 1e-20
    assert last["gcn"]["dirichlet_energy"] > 1e-3
    assert last["gcn"]["effective_rank"] == pytest.approx(1.0, abs=1e-3)
    # In evaluation mode, before any training, its running statistics would make it a plain GCN.
    assert last["gcn-group"]["dirichlet_energy"] != pytest.approx(last["gcn"]["dirichlet_energy"], rel=0.1)


@pytest.mark.slow
def test_energies_come_from_ten_seeds_and_zero_is_drawn():
    study = STUDIES["energy"]
    configs = study.plan(Request(models=("bimp", "gcn"))).configs
    assert [config["seed"] for config in configs] == 3 * list(range(1, 11))
    assert [config.get("weights") for config in configs] == 20 * [None] + 10 * ["random"]
    common = {"dataset": "random graph", "split": 1, "seed": 1, "status": "done", "settings": "s"}
    measures = ("dirichlet_energy", "relative_dirichlet_energy", "effective_rank", "numerical_rank")
    rows = [
        {**common, "model": model, "layer": layer, **dict.fromkeys(measures, value)}
        for model, values in {"bimp": (1.0, 0.9), "gcn": (0.5, 0.0)}.items()
        for layer, value in zip((1, 10), values, strict=True)
    ]
    found = {item.stem: item.content for item in items(study, rows)}
    energy = found["dirichlet-energy-discrete"]
    assert [list(line.y) for line in energy.series] == [[1.0, 0.9], [0.5, 0.0]]
    # Zero is drawn below all that is positive.
    assert energy.segments(energy.series[1]) == [[0, 1]]
    assert 0.0 < energy.place(0.0) < energy.place(1e-300) == 1e-40
    assert [list(line.y) for line in found["effective-rank-discrete"].series] == [[1.0, 0.9], [0.5, 0.0]]


@pytest.mark.slow
def test_a_curve_that_leaves_the_range_does_not_flatten_the_others():
    study = STUDIES["energy"]
    common = {"dataset": "random graph", "split": 1, "seed": 1, "status": "done", "settings": "s"}
    measures = ("dirichlet_energy", "relative_dirichlet_energy", "effective_rank", "numerical_rank")
    rows = [
        {**common, "model": model, "layer": layer, **dict.fromkeys(measures, value)}
        for model, values in {"bimp": (1.0, 0.9), "gread-fb": (2.0, float("inf")), "gcn": (0.5, 0.0)}.items()
        for layer, value in zip((1, 10), values, strict=True)
    ]
    found = {item.stem: item.content for item in items(study, rows)}
    curves = found["dirichlet-energy"]
    assert isinstance(curves, Curves)
    assert [(line.name, isfinite(line.y[-1])) for line in curves.series] == [("bimp", True), ("gread-fb", False)]
    assert [line.name for line in found["dirichlet-energy-discrete"].series] == ["bimp", "gcn"]
    table = found["last"]
    assert isinstance(table, Table)
    assert {row[0]: row[1] for row in table.rows if row[0] == "gread-fb"} == {"gread-fb": "not finite"}
