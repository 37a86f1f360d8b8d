"""Agents below, at and above the critical attention, with and without input."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from dissensus import dynamics
from dissensus.errors import InputError

pytestmark = pytest.mark.slow

PATH = nx.path_graph(3)


@pytest.fixture(scope="module")
def found() -> Any:
    return dynamics.regimes(PATH, time=60.0)


def test_what_each_run_comes_to(found: Any) -> None:
    panels = {panel["panel"]: panel for panel in found.summary()["panels"]}
    assert list(panels) == list("abcde")
    assert [panels[k]["neutral"] for k in "abcde"] == [True, False, True, False, False]
    assert [panels[k]["attention"] / found.plain.critical for k in "abcde"] == pytest.approx([0.6, 1.75, 1, 1, 1.75])
    assert found.plain.critical == pytest.approx(float(dynamics.critical_attention(PATH)))
    assert panels["e"]["z"] == pytest.approx(-panels["b"]["z"], abs=1e-6)
    # What is shown as the end of a run is a state of rest, zero where opinions fade without an end.
    assert all(panel["residual"] < 1e-3 for panel in panels.values())
    assert [panels[k]["z"] for k in "ac"] == [0.0, 0.0]


def test_the_start_has_the_average_asked_for_and_the_input_is_its_share(found: Any) -> None:
    start, weights = found.runs["a"].states[0].numpy(), found.plain.weights
    assert (weights * start).sum() == pytest.approx(0.3)
    assert np.allclose(found.runs["e"].states[0].numpy(), -start)
    given = dynamics.regimes(PATH, [0.3, -0.2, 0.5], input=0.5, time=2.0)
    assert given.runs["d"].states[0, :, 0].tolist() == [0.3, -0.2, 0.5]
    same = dynamics.simulate(
        PATH, [0.3, -0.2, 0.5], attention=given.plain.critical, input=[0.15, -0.1, 0.25], times=[2.0]
    )
    assert np.allclose(given.runs["d"].final.numpy(), same.final.numpy(), atol=1e-5)


def test_input_unfolds_the_pitchfork(found: Any) -> None:
    assert [point.kind for point in found.plain.points][:1] == ["pitchfork"]
    assert "pitchfork" not in {point.kind for point in found.unfolded.points}
    lines = str(found).splitlines()
    assert lines[0].startswith("critical attention u* = 0.414")
    assert [line[:3] for line in lines[3:]] == ["(a)", "(b)", "(c)", "(d)", "(e)"]


def test_camps_of_equal_weight_are_moved_along_the_critical_direction() -> None:
    camps = np.array([[0.0, -1.0], [-1.0, 0.0]])
    found = dynamics.regimes(camps, time=2.0)
    assert float((found.plain.weights * found.runs["a"].states[0].numpy()).sum()) == pytest.approx(0.3)


def test_tables(found: Any, tmp_path: Path) -> None:
    found.save(tmp_path / "panels.csv")
    header, *rows = (tmp_path / "panels.csv").read_text().splitlines()
    assert header == "panel,time,agent,option,opinion"
    assert len(rows) == sum(run.states.numel() for run in found.runs.values())
    found.save(tmp_path / "all.csv")
    header, *rows = (tmp_path / "all.csv").read_text().splitlines()
    assert header.startswith("diagram,system,branch,name,attention,z,stable")
    assert {tuple(row.split(",")[:2]) for row in rows} >= {("b=0", "full"), ("b>0", "full")}


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"low": 1.0}, "0 < low < 1 < high <= range <= 50"),
        ({"range": 51.0}, "0 < low < 1 < high <= range <= 50"),
        ({"time": 1.0}, "time must be above 1"),
        ({"average": 0.0}, "average above 0"),
        ({"input": 0.0}, "give another"),
        ({"atention": 0.1}, "did you mean 'attention'"),
        ({"input": [1.0, np.nan, 0.0]}, "not finite"),
    ],
)
def test_bad_input_is_refused(wrong: dict[str, object], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        dynamics.regimes(PATH, **wrong)
