import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import brentq

from dissensus import dynamics
from dissensus.cli import main
from dissensus.errors import InputError
from dissensus.report import Panel, draw_opinions

GRID = nx.to_numpy_array(nx.grid_2d_graph(4, 4))
KARATE = nx.karate_club_graph()
CYCLE = nx.cycle_graph(8)
ZERO = np.zeros((1, 1))


def residual(found: dynamics.Bifurcation, graph: object, **parameters: object) -> float:
    """The largest |f| over all points of all branches."""
    flow = dynamics.System(graph, **{"attention": 1.0, **parameters}).flow()
    return max(
        np.abs(flow.evaluate(x, u).f).max()
        for branch in found.branches
        for u, x in zip(branch.parameter, branch.states, strict=True)
    )


@pytest.mark.parametrize("graph", [nx.grid_2d_graph(4, 4), KARATE, nx.star_graph(6)])
@pytest.mark.slow
def test_pitchfork_is_where_critical_attention_says(graph: nx.Graph) -> None:
    found = dynamics.bifurcation(graph, damping=0.8, self_reinforcement=0.5)
    matrix = dynamics.as_matrix(graph)
    expected = dynamics.critical_attention(matrix, ZERO, 0.8, 0.5)
    point = found.points[0]
    assert (point.kind, point.criticality) == ("pitchfork", "supercritical")
    assert point.parameter == pytest.approx(expected, rel=1e-8)
    assert [branch.name for branch in found.branches][:3] == ["neutral", "upper", "lower"]
    assert residual(found, graph, damping=0.8, self_reinforcement=0.5) < 1e-8


@pytest.mark.slow
def test_stability_flips_at_the_pitchfork() -> None:
    found = dynamics.bifurcation(GRID)
    neutral = found["neutral"]
    assert not neutral.states.any()
    assert np.array_equal(neutral.stable, neutral.parameter <= found.critical * (1 + 1e-6))
    assert found["upper"].stable.all()
    assert found["lower"].stable.all()
    assert neutral.parameter[[0, -1]].tolist() == [0.0, 2 * found.critical]


def test_prongs_mirror_each_other_and_leave_along_the_critical_direction() -> None:
    found = dynamics.bifurcation(KARATE)
    upper, lower = found["upper"], found["lower"]
    assert np.allclose(upper.parameter, lower.parameter, atol=1e-9)
    assert np.allclose(upper.states, -lower.states, atol=1e-8)
    first = upper.states[1]
    assert np.allclose(first / upper.z[1], found.direction, atol=0.02)
    assert upper.z[0] == 0.0
    assert bool((np.diff(upper.z) > 0).all())
    # z is the average weighted by the left eigenvector.
    values, vectors = np.linalg.eig(nx.to_numpy_array(KARATE).T)
    left = vectors[:, values.real.argmax()].real
    assert np.allclose(found.weights[:, 0], left / left.sum(), atol=1e-9)
    assert float((found.weights * found.direction).sum()) == pytest.approx(1.0)


@pytest.mark.slow
def test_reported_eigenvalues_are_those_of_the_jacobian() -> None:
    found = dynamics.bifurcation(GRID, input=0.05)
    for branch in found.branches:
        for u, x, value in list(zip(branch.parameter, branch.states, branch.eigenvalues, strict=True))[::15]:
            exact = dynamics.stability(GRID, x, attention=float(u), input=0.05).eigenvalues[0]
            assert value == pytest.approx(exact, abs=1e-7)


# --- The reduced equation: y' = -d y + tanh(u m y) + b, so u = artanh(d y - b)/(m y) on every branch ---


def fold(d: float, m: float, b: float) -> tuple[float, float]:
    """The fold of the unfolded branch for b > 0, from du/dy = 0."""

    def slope(y: float) -> float:
        t = d * y - b
        return d * m * y / (1.0 - t * t) - m * np.arctanh(t)

    y = brentq(slope, (-1.0 + b) / d + 1e-12, -1e-9)
    return np.arctanh(d * y - b) / (m * y), y


@pytest.mark.parametrize(("d", "alpha", "b"), [(1.0, 1.0, 0.05), (0.5, 0.3, 0.02), (2.0, 2.0, 0.1)])
@pytest.mark.slow
def test_unfolded_fold_of_one_agent_matches_the_formula(d: float, alpha: float, b: float) -> None:
    found = dynamics.bifurcation(ZERO, damping=d, self_reinforcement=alpha, input=b)
    (point,) = found.folds
    u, y = fold(d, alpha, b)
    assert point.parameter == pytest.approx(u, abs=1e-8)
    assert point.z == pytest.approx(y, abs=1e-5)
    for branch in found.branches:
        moved = branch.parameter > 0
        y = branch.z[moved]
        assert np.allclose(branch.parameter[moved], np.arctanh(d * y - b) / (alpha * y), atol=1e-8)
    assert [branch.name for branch in found.branches] == ["connected", "disconnected"]
    assert found["connected"].stable.all()
    broken = found["disconnected"]
    turn = int(broken.parameter.argmin())
    assert broken.stable[: turn + 1].all()
    assert not broken.stable[turn + 1 :].any()


@pytest.mark.parametrize("b", [0.0, 0.04])
def test_regular_graphs_reduce_exactly(b: float) -> None:
    # Right-stochastic matrices and equal inputs: consensus is invariant, and m = alpha + 3.
    options = np.full((2, 2), 0.5)
    parameters = {"options": options, "normalize": True, "self_loops": True, "damping": 0.7, "input": b}
    found = dynamics.bifurcation(CYCLE, max_branches=2 if b else 3, **parameters)
    assert found.critical == pytest.approx(0.7 / 4.0)
    assert found.reduced is not None
    assert found.reduced.critical == pytest.approx(found.critical)
    assert np.allclose(found.direction, 1.0)
    for full, one in zip(found.branches, found.reduced.branches, strict=True):
        assert full.name == one.name
        if full.name == "disconnected":
            full_part, one_part = (branch.stable & (np.arange(len(branch.z)) < 15) for branch in (full, one))
        else:
            full_part, one_part = (np.ones(len(branch.z), dtype=bool) for branch in (full, one))
        assert np.ptp(full.states[full_part].reshape(full_part.sum(), -1), axis=1).max() < 1e-7
        ascending = np.argsort(one.parameter[one_part])
        between = np.interp(full.parameter[full_part], one.parameter[one_part][ascending], one.z[one_part][ascending])
        assert np.abs(between - full.z[full_part]).max() < 2e-3
        # On the formula itself, without interpolation.
        y, u = full.z[full_part], full.parameter[full_part]
        assert np.allclose(0.7 * y, np.tanh(u * 4.0 * y) + b, atol=1e-9)


def test_reduction_has_the_same_first_fold_and_pitchfork_on_a_regular_graph() -> None:
    complete = nx.complete_graph(6)
    found = dynamics.bifurcation(complete, normalize=True, input=0.05, u_max=0.8)
    u, y = fold(1.0, 2.0, 0.05)
    assert found.folds[0].parameter == pytest.approx(u, abs=1e-8)
    assert found.folds[0].z == pytest.approx(y, abs=1e-5)


# --- Unfolding, other inputs, other systems ---


@pytest.mark.slow
def test_unfolding_of_a_network() -> None:
    rng = np.random.default_rng(0)
    b = 0.05 + 0.05 * rng.normal(size=34)
    found = dynamics.bifurcation(KARATE, input=b)
    assert residual(found, KARATE, input=b) < 1e-8
    assert found["connected"].stable.all()
    assert bool((found["connected"].z > 0).all())
    assert np.allclose(found["connected"].states[0][:, 0], b)
    assert bool((found["disconnected"].z < 0).all())
    point = found.folds[0]
    assert found.critical < point.parameter < 2 * found.critical
    assert np.abs(np.linalg.eigvals(_jacobian(KARATE, b, point)).real).min() < 1e-6
    mirrored = dynamics.bifurcation(KARATE, input=-b)
    assert mirrored.folds[0].parameter == pytest.approx(point.parameter, abs=1e-7)
    assert mirrored.folds[0].z == pytest.approx(-point.z, abs=1e-5)


def _jacobian(graph: nx.Graph, b: np.ndarray, point: Any) -> np.ndarray:
    flow = dynamics.System(graph, attention=1.0, input=b).flow()
    return flow.jacobian(flow.evaluate(point.state, point.parameter))


def test_strong_input_leaves_one_branch() -> None:
    assert [branch.name for branch in dynamics.bifurcation(GRID, input=0.9).branches] == ["connected"]


@pytest.mark.slow
def test_antagonism_gives_a_pitchfork_of_camps() -> None:
    camp = np.array([1.0] * 4 + [-1.0] * 4)
    found = dynamics.bifurcation(np.outer(camp, camp))
    end = found["upper"].states[-1][:, 0]
    assert np.array_equal(np.abs(np.sign(end) @ camp), 8.0)
    assert np.array_equal(np.sign(found.weights[:, 0]) * camp[0], np.sign(found.weights[0, 0]) * camp)


@pytest.mark.slow
def test_competing_options_split() -> None:
    found = dynamics.bifurcation(CYCLE, options=np.array([[0.0, -1.0], [-1.0, 0.0]]), normalize=True)
    end = found["upper"].states[-1]
    assert np.allclose(end[:, 0], -end[:, 1], atol=1e-9)
    assert abs(end[0, 0]) > 0.5


@pytest.mark.slow
def test_relative_attention_and_parameters_of_every_agent() -> None:
    rng = np.random.default_rng(1)
    parameters = {
        "damping": rng.uniform(0.5, 1.5, 34),
        "self_reinforcement": rng.uniform(0.0, 1.0, 34),
        "attention": rng.uniform(0.5, 1.5, 34),
    }
    found = dynamics.bifurcation(KARATE, **parameters)
    assert residual(found, KARATE, **parameters) < 1e-8
    at = dynamics.stability(KARATE, **{**parameters, "attention": found.critical * parameters["attention"]})
    assert at.eigenvalues[0].real == pytest.approx(0.0, abs=1e-9)
    assert found.points[0].parameter == pytest.approx(found.critical, rel=1e-8)


@pytest.mark.slow
def test_oscillation_is_reported() -> None:
    ring = -nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))
    found = dynamics.bifurcation(ring, u_max=1.0)
    assert [point.kind for point in found.points] == ["hopf"]
    assert found.points[0].parameter == pytest.approx(1.0 / 1.5)
    assert found.reduced is None


@pytest.mark.slow
def test_krylov_and_direct_solution_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    direct = dynamics.bifurcation(KARATE, input=0.04)
    monkeypatch.setattr("dissensus.dynamics._continuation.DENSE_UP_TO", 0)
    monkeypatch.setattr("dissensus.dynamics._flow.ALL_UP_TO", 0)
    krylov = dynamics.bifurcation(KARATE, input=0.04)
    assert krylov.folds[0].parameter == pytest.approx(direct.folds[0].parameter, abs=1e-8)
    assert residual(krylov, KARATE, input=0.04) < 1e-8
    assert krylov["connected"].z[-1] == pytest.approx(direct["connected"].z[-1], abs=1e-9)


@pytest.mark.slow
def test_a_thousand_agents() -> None:
    graph = nx.barabasi_albert_graph(1000, 3, seed=1)
    found = dynamics.bifurcation(graph, u_max=0.12, step=0.1)
    assert found.points[0].parameter == pytest.approx(
        dynamics.critical_attention(dynamics.as_matrix(graph), ZERO), rel=1e-6
    )
    assert residual(found, graph) < 1e-8


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"options": 3}, "couple the options"),
        ({"graph": np.kron(np.eye(2), np.ones((3, 3)))}, "largest connected component"),
        ({"graph": nx.path_graph(4, create_using=nx.DiGraph)}, "strongly connected"),
        ({"graph": nx.disjoint_union(nx.star_graph(400), nx.star_graph(400))}, "connected component"),
        ({"saturation": "relu"}, "tanh or arctan"),
        ({"u_max": -1.0}, "u_max"),
        ({"step": 0.0}, "step"),
    ],
)
def test_bad_input_is_refused(wrong: dict[str, object], cure: str) -> None:
    arguments = {"graph": GRID, **wrong}
    with pytest.raises(InputError, match=cure):
        dynamics.bifurcation(arguments.pop("graph"), **arguments)


def test_missing_branch_names_those_there_are() -> None:
    with pytest.raises(KeyError, match="neutral, upper, lower"):
        dynamics.bifurcation(GRID)["left"]


# --- Hysteresis over the input ---


@pytest.mark.slow
def test_hysteresis_of_one_agent_matches_the_formula() -> None:
    # s = d y - tanh(u m y) turns where sech^2(u m y) = d/(u m).
    d, m, u = 1.0, 2.0, 0.8
    found = dynamics.hysteresis(ZERO, u=u, self_reinforcement=m, s_max=0.5)
    y = np.arccosh(np.sqrt(u * m / d)) / (u * m)
    jump = abs(d * y - np.tanh(u * m * y))
    assert [point.parameter for point in found.folds] == pytest.approx([jump, -jump], abs=1e-9)
    assert found.width == pytest.approx(2 * jump, abs=1e-9)
    # The sweeps jump at the first strength beyond the fold.
    assert np.array_equal(found.up > 0, found.strength > jump)
    assert np.array_equal(found.down < 0, found.strength < -jump)
    assert np.allclose(found.branch.parameter, d * found.branch.z - np.tanh(u * m * found.branch.z), atol=1e-9)


@pytest.mark.slow
def test_hysteresis_of_a_network_closes_below_the_critical_attention() -> None:
    above, below = (dynamics.hysteresis(KARATE, u=r * 0.0440770069, steps=21, s_max=0.3) for r in (1.5, 0.9))
    assert above.width > 0.05
    assert bool((above.down >= above.up - 1e-6).all())
    assert (above.down - above.up).max() > 0.3
    assert below.width == 0.0
    assert np.allclose(below.up, below.down, atol=1e-6)


@pytest.mark.parametrize("wrong", [{"u": -1.0}, {"steps": 1}, {"s_max": 0.0}])
def test_bad_sweeps_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        dynamics.hysteresis(GRID, **wrong)
    with pytest.raises(InputError, match="s_max"):
        dynamics.hysteresis(nx.path_graph(3), input=np.array([1.0, 0.0, -1.0]))


@pytest.mark.parametrize("study", [dynamics.bifurcation, dynamics.hysteresis])
def test_what_has_no_pitchfork_is_refused(study: Callable[..., object]) -> None:
    with pytest.raises(InputError, match="use tanh or arctan"):
        study(GRID, saturation="relu")
    with pytest.raises(InputError, match="connected component"):
        study(nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(4)))


# --- The command ---


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
        assert ("there are more" in printed.err) == missing


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


@pytest.mark.slow
def test_kernels_of_several_dimensions_are_switched() -> None:
    # Four agents that all disagree: one against three (8), two against two (6), one against another (12).
    found = dynamics.bifurcation(-nx.to_numpy_array(nx.complete_graph(4)), u_max=0.6)
    assert (found.points[0].dimension, found.points[0].criticality) == (3, "supercritical")
    ends = np.array([branch.states[1].ravel() / np.abs(branch.states[1]).max() for branch in found.branches[1:]])
    kinds = {tuple(np.sort(np.round(np.abs(end), 1))) for end in ends}
    assert {(1.0, 1.0, 1.0, 1.0), (0.3, 0.3, 0.3, 1.0)} <= kinds
    assert residual(found, -nx.to_numpy_array(nx.complete_graph(4))) < 1e-8


def test_branches_are_as_fine_in_every_form() -> None:
    # Opinions under large damping are small in one form and not in the others.
    graph = nx.connected_watts_strogatz_graph(20, 6, 0.3, seed=2)
    degrees = np.array([degree for _, degree in graph.degree])
    for form in ("argument", "sum", "opinions"):
        found = dynamics.bifurcation(graph, damping=degrees, self_reinforcement=0.0, form=form, max_branches=3)
        assert 20 < len(found["upper"].z) < 200
        assert found.points[0].parameter == pytest.approx(found.critical, rel=1e-8)


@pytest.mark.slow
def test_the_width_over_many_folds_is_where_the_sweeps_differ() -> None:
    # The branch of this signed graph folds ten times; its first and last fold say nothing of the loop.
    matrix = np.triu(np.random.default_rng(5).choice([-1, 0, 1], size=(12, 12)), 1)
    found = dynamics.hysteresis(matrix + matrix.T, self_reinforcement=0.0, s_max=3.0, steps=61)
    assert len(found.folds) > 2
    apart = found.strength[np.abs(found.up - found.down) > 1e-6]
    assert found.width == pytest.approx(np.ptp(apart))
    assert found.width > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "signs"])
def test_hysteresis_of_random_signed_graphs(kind: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        matrix = np.triu(rng.normal(size=(12, 12)) if kind == "normal" else rng.choice([-1, 0, 1], size=(12, 12)), 1)
        matrix = matrix + matrix.T
        found = dynamics.hysteresis(matrix, self_reinforcement=0.0, steps=11)
        assert found.width >= 0.0
        # The upper sweep is where the flow goes.
        ones = found.strength[-1] * np.ones(12)
        given = {"attention": found.attention, "self_reinforcement": 0.0, "input": ones}
        assert dynamics.equilibrium(matrix, found.branch.states[-1], **given).stable


def test_a_loop_is_drawn(tmp_path: Path) -> None:
    found = dynamics.hysteresis(nx.path_graph(3), steps=11)
    axes = found.plot(tmp_path / "loop.png").axes[0]
    assert axes.get_xlabel() == "input strength s"
    assert axes.get_xlim()[0] == pytest.approx(-found.strength[-1])
    assert {text.get_text() for text in axes.get_legend().get_texts()} >= {"up", "down", "fold"}


@pytest.mark.parametrize(("agents", "first"), [(5, 20), (7, 28), (9, 36)])
def test_odd_rings_that_disagree_keep_all_branches(agents: int, first: int) -> None:
    # The rotations and the change of signs act on the kernel as the symmetry of a regular polygon of 2 n corners: with
    # 2 n branches through corners and 2 n through edges, which differ at order 2 n - 1 alone.
    ring = -nx.to_numpy_array(nx.cycle_graph(agents))
    found = dynamics.bifurcation(ring, u_max=1.2 * dynamics.critical_attention(ring))  # no warning: all are complete
    assert [(point.kind, point.dimension) for point in found.points] == [("pitchfork", 2)]
    assert len(found.branches) == 1 + first
    assert all(branch.parameter[-1] == found["neutral"].parameter[-1] for branch in found.branches)
    ends = np.array([branch.states[-1].ravel() for branch in found.branches[1:]])
    assert len(np.unique(ends.round(6), axis=0)) == first
    assert residual(found, ring) < 1e-10
    # Every one is fixed by a reflection, up to the change of signs.
    for end in ends:
        images = [sign * np.roll(end[::-1], shift) for shift in range(agents) for sign in (1.0, -1.0)]
        assert min(np.abs(end - image).max() for image in images) < 1e-9
