import json
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from dissensus import dynamics
from dissensus.cli import main

GRID = nx.to_numpy_array(nx.grid_2d_graph(4, 4))
ZERO = np.zeros((1, 1))


@pytest.mark.slow
def test_command_draws_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bifurcation", "grid", "--agents", "16", "-o", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["critical_attention"] == pytest.approx(dynamics.critical_attention(GRID, ZERO))
    assert {Path(file).name for file in found["files"]} == {
        "bifurcation.png",
        "bifurcation.svg",
        "branches.csv",
        "panels.csv",
    }
    assert (tmp_path / "bifurcation.png").stat().st_size > 50_000
    picture = (tmp_path / "bifurcation.svg").read_text()
    assert picture.startswith("<?xml")
    panels = {panel["panel"]: panel for panel in found["panels"]}
    assert [panels[p]["verdict"] for p in "abcd"] == ["consensus", "dissensus", "consensus", "dissensus"]
    assert [panels[p]["neutral"] for p in "abcd"] == [True, False, True, False]
    assert panels["d"]["variance"] > 2 * panels["b"]["variance"]
    assert panels["b"]["z"] > 0.5
    assert panels["d"]["z"] > 0.3
    assert [panels[p]["z_start"] for p in "abcd"] == pytest.approx([0.3] * 4)
    assert found["diagrams"][0]["points"][0]["kind"] == "pitchfork"
    assert panels["e"]["z"] == pytest.approx(-panels["b"]["z"], abs=1e-6)
    assert 1e-4 < panels["b"]["variance"] < panels["d"]["variance"]
    assert panels["a"]["variance"] < 1e-12
    header, *rows = (tmp_path / "branches.csv").read_text().splitlines()
    assert header.startswith("diagram,system,branch,name,attention,z,stable,eigenvalue,x0_0,x1_0,")
    assert {row.split(",")[3] for row in rows} == {"neutral", "upper", "lower", "connected", "disconnected"}


@pytest.mark.slow
def test_command_writes_one_file_of_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("figure.svg", "branches.csv"):
        arguments = ["path", "--agents", "5", "--time", "20", "-o", str(tmp_path / name)]
        assert main(["bifurcation", *arguments]) == 0
        assert "pitchfork at u" in capsys.readouterr().out
        assert (tmp_path / name).stat().st_size > 500
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--low", "1.5"], "low < 1 < high"),
        (["--high", "3"], "high <= range"),
        (["--input", "0"], "input is zero"),
        (["--time", "0"], "above 1"),
        (["--time", "inf"], "time"),
        (["--range", "inf"], "range"),
        (["--input", "inf"], "not finite"),
        (["--saturation", "relu"], "tanh or arctan"),
    ],
)
def test_command_refuses_bad_input(arguments: list[str], cure: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bifurcation", "--agents", "4", *arguments]) == 1
    assert cure in capsys.readouterr().err


@pytest.mark.slow
def test_command_says_where_branches_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts.csv").write_text("a,b\nb,c\nc,a\nd,e\n")
    for graph, missing in ([str(tmp_path / "parts.csv")], True), (["path", "--agents", "3"], False):
        assert main(["bifurcation", *graph, "--range", "3", "--time", "20"]) == 0
        printed = capsys.readouterr()
        assert ("further branches" in printed.err) == missing


@pytest.mark.slow
def test_command_takes_the_component_that_it_asks_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts.csv").write_text("a,b\nb,c\nd,e\n")
    arguments = ["bifurcation", str(tmp_path / "parts.csv"), "--normalize", "--time", "20"]
    assert main(arguments) == 1
    assert "take the largest connected component" in capsys.readouterr().err
    assert main([*arguments, "--largest-component"]) == 0
    assert "pitchfork at u = 0.5" in capsys.readouterr().out


def test_missing_matplotlib_is_told_before_any_work(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'matplotlib' else find(name, *a)\n"
        "from dissensus.cli import main; code = main(['bifurcation', '-o', sys.argv[1]])\n"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.png")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "pip install 'dissensus[plot]'" in done.stderr
