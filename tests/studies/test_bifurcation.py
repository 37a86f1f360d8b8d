import numpy as np
import pytest

from dissensus.runs import Record
from dissensus.studies import STUDIES, run_bifurcation
from dissensus.studies._bifurcation import lattice
from dissensus.studies._show import write_files
from dissensus.studies._study import Request


@pytest.mark.slow
def test_the_bifurcation_figure_comes_from_its_rows(tmp_path):
    study = STUDIES["bifurcation"]
    (config,) = study.plan(Request(quick=True)).configs
    result = run_bifurcation(config)
    critical = result["critical"]
    assert critical == pytest.approx(1.0 / (1.0 + 4.0 * np.cos(np.pi / 5)))
    rows = study.rows(Record("", "", "done", config, result, None, None, 1.0, "", "", {}))
    neutral = [row for row in rows if (row["diagram"], row["curve"]) == ("pitchfork", "neutral")]
    assert {row["unstable"] for row in neutral if row["attention"] < 0.98 * critical} == {False}
    assert {row["unstable"] for row in neutral if row["attention"] > 1.02 * critical} == {True}
    last = {
        panel: np.array([row["opinion"] for row in rows if row["panel"] == panel and row["time"] == 1000.0])
        for panel in "abcde"
    }
    variance = {panel: opinions.var() for panel, opinions in last.items()}
    # As the caption says: neutral consensus, dissensus of low variance, a fading one, dissensus of high variance.
    assert abs(last["a"]).max() < 1e-6
    assert 1e-3 < variance["b"] < variance["d"]
    assert variance["c"] < 0.05 * variance["b"]
    assert 0.01 < last["c"].mean() < 0.05
    assert last["b"].min() > 0.1
    assert last["d"].mean() > 0.1
    assert last["e"] == pytest.approx(-last["b"], rel=1e-6)
    written, _ = write_files(study, rows, tmp_path)
    assert {path.name for path in written} >= {"bifurcation.png", "bifurcation.svg", "diagram-pitchfork.svg"}
    assert all(path.stat().st_size > 1000 for path in written)
    assert lattice(2).tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
