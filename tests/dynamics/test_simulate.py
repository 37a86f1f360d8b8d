import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch
from torch_geometric.data import Data

from dissensus import dynamics
from dissensus.cli import main
from dissensus.errors import InputError
from dissensus.report._opinions import _edges_of, _layout

KARATE = nx.to_numpy_array(nx.karate_club_graph())


def literal(x, a, o, d, u, alpha, b, saturate=np.tanh):
    """The right-hand side, sum by sum, as the equation is written."""
    agents, options = x.shape
    f = np.empty_like(x)
    for i in range(agents):
        for j in range(options):
            drive = alpha[i, j] * x[i, j]
            for k in range(agents):
                if k != i:
                    drive += a[i, k] * x[k, j]
            for m in range(options):
                if m != j:
                    drive += o[j, m] * x[i, m]
            for k in range(agents):
                for m in range(options):
                    if k != i and m != j:
                        drive += a[i, k] * o[j, m] * x[k, m]
            f[i, j] = -d[i, j] * x[i, j] + saturate(u[i] * drive) + b[i, j]
    return f


@pytest.mark.parametrize(("saturation", "function"), [("tanh", np.tanh), ("arctan", np.arctan)])
def test_field_is_the_equation_with_parameters_of_every_agent_and_option(saturation, function) -> None:
    rng = np.random.default_rng(0)
    a, o = rng.normal(size=(6, 6)), rng.normal(size=(3, 3))  # signed, not symmetric, with diagonals to be left out
    d, alpha = rng.uniform(0.5, 2.0, (6, 3)), rng.uniform(0.0, 2.0, (6, 3))
    u, b, x = rng.uniform(0.1, 1.0, 6), rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    expected = literal(x, a, o, d, u, alpha, b, function)
    system = dynamics.System(
        a, o, damping=d, attention=u, self_reinforcement=alpha, input=b, saturation=saturation, self_loops=False
    )
    assert np.allclose(system.field()(0.0, torch.from_numpy(x)).numpy(), expected, atol=1e-13)
    assert np.allclose(system.flow().evaluate(x, 1.0).f, expected, atol=1e-13)


def test_simulation_follows_the_literal_equation() -> None:
    rng = np.random.default_rng(1)
    a, o, x = rng.normal(size=(5, 5)), rng.normal(size=(2, 2)), rng.normal(size=(5, 2))
    b = rng.normal(size=(5, 2))
    found = dynamics.simulate(
        a, x, options=o, attention=0.4, input=b, damping=0.8, times=[0.0, 1.0, 2.0], self_loops=False
    )
    ones = np.ones((5, 2))
    for step in range(2):  # classical Runge-Kutta with fine steps on the literal sums
        for _ in range(200):
            h, k = 1.0 / 200, []
            for share in (0.0, 0.5, 0.5, 1.0):
                y = x + share * h * (k[-1] if k else 0.0)
                k.append(literal(y, a, o, 0.8 * ones, 0.4 * np.ones(5), ones, b))
            x = x + h * (k[0] + 2 * k[1] + 2 * k[2] + k[3]) / 6
        assert np.allclose(found.states[step + 1].numpy(), x, atol=1e-5)


def test_jacobian_is_the_derivative_of_the_literal_equation() -> None:
    rng = np.random.default_rng(2)
    a, o, x = rng.normal(size=(4, 4)), rng.normal(size=(2, 2)), rng.normal(size=(4, 2))
    d, alpha, u = rng.uniform(0.5, 2.0, (4, 2)), rng.uniform(0.0, 2.0, (4, 2)), rng.uniform(0.1, 1.0, 4)
    flow = dynamics.System(a, o, damping=d, attention=u, self_reinforcement=alpha, self_loops=False).flow()
    numeric = np.empty((8, 8))
    for column in range(8):
        e = np.zeros(8)
        e[column] = 1e-6
        e = e.reshape(4, 2)
        ahead, behind = (literal(x + s * e, a, o, d, u, alpha, 0 * x) for s in (1, -1))
        numeric[:, column] = ((ahead - behind) / 2e-6).ravel()
    value = flow.evaluate(x, 1.0)
    assert np.allclose(flow.jacobian(value), numeric, atol=1e-8)
    assert np.allclose(flow.sparse_jacobian(value).toarray(), numeric, atol=1e-8)
    v = rng.normal(size=(4, 2))
    assert np.allclose(flow.jacobian_product(value, v).ravel(), numeric @ v.ravel(), atol=1e-8)


def test_self_loops_give_the_matrix_form() -> None:
    rng = np.random.default_rng(3)
    a, o, x = rng.random((5, 5)), rng.random((2, 2)), rng.normal(size=(5, 2))
    system = dynamics.System(a, o, attention=0.3, self_reinforcement=2.0, self_loops=True)
    expected = -x + np.tanh(0.3 * (x + (a + np.eye(5)) @ x @ (o + np.eye(2)).T))
    assert np.allclose(system.field()(0.0, torch.from_numpy(x)).numpy(), expected, atol=1e-14)


# --- Graphs of every kind ---


def kinds() -> dict[str, object]:
    graph = nx.karate_club_graph()
    row, col = KARATE.nonzero()
    edge_index, weight = torch.from_numpy(np.stack([col, row])), torch.from_numpy(KARATE[row, col])
    return {
        "networkx": graph,
        "pyg": Data(edge_index=edge_index, edge_weight=weight, num_nodes=34),
        "numpy": KARATE,
        "scipy": scipy.sparse.coo_matrix(KARATE),
        "scipy array": scipy.sparse.csr_array(KARATE),
        "torch": torch.from_numpy(KARATE),
        "torch sparse": torch.from_numpy(KARATE).to_sparse(),
        "torch csr": torch.from_numpy(KARATE).to_sparse_csr(),
    }


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_graph_is_the_same_matrix(kind: str) -> None:
    assert np.array_equal(dynamics.as_matrix(kinds()[kind]).toarray(), KARATE)


def test_edges_run_from_source_to_listener() -> None:
    edge_index = torch.tensor([[0, 0, 2], [1, 1, 1]])  # 0 -> 1 twice, 2 -> 1
    expected = np.zeros((4, 4))
    expected[1, 0] = expected[1, 2] = 1.0
    assert np.array_equal(dynamics.as_matrix(edge_index, num_nodes=4).toarray(), expected)
    assert dynamics.as_matrix(edge_index).shape == (3, 3)
    data = Data(edge_index=edge_index, edge_weight=torch.tensor([2.0, 3.0, -1.0]), num_nodes=3)
    assert dynamics.as_matrix(data).toarray()[1].tolist() == [5.0, 0.0, -1.0]
    arrow = nx.DiGraph()
    arrow.add_nodes_from(range(3))
    arrow.add_edge(0, 1)
    assert dynamics.as_matrix(arrow).toarray()[1].tolist() == [1.0, 0.0, 0.0]


def test_rows_are_normalised_by_absolute_sums_without_touching_the_input() -> None:
    given = scipy.sparse.csr_array(np.array([[1.0, -3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 5.0, 5.0]]))
    before = given.toarray()
    found = dynamics.as_matrix(given, normalize=True).toarray()
    assert np.allclose(found, [[0.25, -0.75, 0.0], [0.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    assert np.allclose(dynamics.as_matrix(given, self_loops=False, normalize=True).toarray()[0], [0.0, -1.0, 0.0])
    assert np.array_equal(given.toarray(), before)


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ("karate", "networkx graph"),
        ([[0, 1], [1]], "square"),
        ([["a", "b"], ["c", "d"]], "not numbers"),
        (nx.Graph([(0, 1, {"weight": "strong"})]), "not a number"),
        (np.zeros((2, 3)), "square"),
        (np.array([[0.0, np.nan], [1.0, 0.0]]), "NaN"),
        (nx.Graph(), "no nodes"),
        (torch.tensor([[0, -1], [1, 0]]), "node -1"),
        (Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.ones(3), num_nodes=2), "edge_weight"),
    ],
)
def test_bad_graphs_are_refused(wrong: object, cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        dynamics.as_matrix(wrong)


# --- Linear models ---


def test_degroot_reaches_the_average_weighted_by_the_stationary_distribution() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((8, 8))
    matrix /= matrix.sum(1, keepdims=True)
    x = rng.normal(size=(8, 3))
    values, vectors = np.linalg.eig(matrix.T)
    stationary = vectors[:, values.real.argmax()].real
    stationary /= stationary.sum()
    found = dynamics.simulate(matrix, x, model="degroot", time=100)
    assert found.states.shape == (101, 8, 3)
    assert np.allclose(found.final.numpy(), stationary @ x, atol=1e-12)
    assert np.allclose(found.states[1].numpy(), matrix @ x, atol=1e-14)
    assert found.summary().verdict == "consensus"


@pytest.mark.slow
def test_consensus_on_an_undirected_graph_is_the_plain_average() -> None:
    x = np.random.default_rng(1).normal(size=34)
    found = dynamics.simulate(nx.karate_club_graph(), x, model="consensus", time=60.0)
    assert np.allclose(found.final.numpy(), x.mean(), atol=1e-5)
    laplacian = np.diag(KARATE.sum(1)) - KARATE
    short = dynamics.simulate(KARATE, x, model="consensus", times=[0.1], rtol=1e-9, atol=1e-12)
    assert np.allclose(short.final.numpy()[:, 0], scipy.linalg.expm(-0.1 * laplacian) @ x, atol=1e-7)


def test_an_agent_that_listens_to_nobody_leads() -> None:
    matrix = np.array([[0.0, 0.0], [1.0, 0.0]])
    for model in ("degroot", "consensus"):
        found = dynamics.simulate(matrix, np.array([1.0, -1.0]), model=model, time=30)
        assert found.final.flatten().tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_influence_that_changes_in_time() -> None:
    first = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    second = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    x = np.array([1.0, 0.0, -4.0])
    found = dynamics.simulate([first, second], x, model="degroot", time=3)
    assert np.allclose(found.final.flatten().numpy(), first @ second @ first @ x)
    same = dynamics.simulate(lambda t: [first, second][round(t) % 2], x, model="degroot", time=3)
    assert torch.equal(found.states, same.states)
    # Neither graph is connected, both together are.
    assert dynamics.simulate([first, second], x, model="degroot", time=200).summary().verdict == "consensus"
    pieces = dynamics.simulate([first, second], x, model="consensus", times=[0.5, 1.5, 2.0], rtol=1e-10, atol=1e-12)
    generators = [m - np.diag(np.abs(m).sum(1)) for m in (first, second)]
    middle = scipy.linalg.expm(generators[0]) @ x
    assert np.allclose(pieces.states[0, :, 0], scipy.linalg.expm(0.5 * generators[0]) @ x, atol=1e-8)
    assert np.allclose(pieces.states[1, :, 0], scipy.linalg.expm(0.5 * generators[1]) @ middle, atol=1e-8)
    assert np.allclose(pieces.states[2, :, 0], scipy.linalg.expm(generators[1]) @ middle, atol=1e-8)


def test_smoothly_changing_influence() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = dynamics.simulate(
        lambda t: swap * (1.0 + np.sin(t)), [1.0, -1.0], model="consensus", times=[2.0], rtol=1e-9, atol=1e-12
    )
    # The difference decays by exp(-2 int (1 + sin t) dt).
    expected = np.exp(-2.0 * (2.0 + 1.0 - np.cos(2.0)))
    assert float(found.final[0, 0]) == pytest.approx(expected, abs=1e-8)
    nonlinear = dynamics.simulate(lambda t: swap, [1.0, -0.5], attention=0.3, times=[3.0])
    constant = dynamics.simulate(swap, [1.0, -0.5], attention=0.3, times=[3.0])
    assert nonlinear.final.allclose(constant.final, atol=1e-7)


@pytest.mark.parametrize("model", ["degroot", "consensus", "nonlinear"])
def test_balanced_antagonism_polarises(model: str) -> None:
    # Two camps of five: friends within, foes between.
    camp = np.array([1.0] * 5 + [-1.0] * 5)
    matrix = np.outer(camp, camp) * (np.random.default_rng(0).random((10, 10)) + 0.2)
    options = {"normalize": True} | ({"attention": 2.0} if model == "nonlinear" else {})
    x = np.random.default_rng(1).uniform(-0.5, 1.0, 10)
    found = dynamics.simulate(matrix, x, model=model, time=60, **options)
    assert found.summary().verdict == "polarised"
    side = np.sign(found.final.flatten().numpy())
    assert abs(side @ camp) == 10


# --- The nonlinear model's regimes ---


def test_regimes_of_attention_and_input() -> None:
    grid = nx.grid_2d_graph(4, 4)
    x = np.random.default_rng(0).uniform(-1, 1, 16) + 0.3
    u = float(dynamics.System(grid).attention)
    below = dynamics.simulate(grid, x, attention=0.6 * u, time=80).summary()
    above = dynamics.simulate(grid, x, attention=1.5 * u, time=80).summary()
    driven = dynamics.simulate(grid, x, attention=u, input=0.3 * x, time=80).summary()
    assert (below.verdict, below.neutral) == ("consensus", True)
    assert (above.verdict, above.neutral) == ("dissensus", False)
    assert above.mean[0] > 0.5
    assert driven.verdict == "dissensus"
    assert driven.variance[0] > 2 * above.variance[0]


CAMPS = np.outer([1.0] * 4 + [-1.0] * 4, [1.0] * 4 + [-1.0] * 4) * (np.arange(64).reshape(8, 8) % 3 + 1.0)
FADING = {
    "grid": (nx.grid_2d_graph(4, 4), {}),
    "karate, three options": (nx.karate_club_graph(), {"options": 3}),
    "opposed options": (nx.cycle_graph(6), {"options": np.array([[0.0, -0.5], [-0.5, 0.0]])}),
    "directed": (nx.gnp_random_graph(20, 0.2, seed=2, directed=True), {"saturation": "arctan"}),
    "separate": (nx.disjoint_union(nx.path_graph(4), nx.complete_graph(4)), {"saturation": "softsign"}),
    "one agent": (np.zeros((1, 1)), {}),
    "signed": (CAMPS + CAMPS.T, {"damping": 0.7}),
    "signed, normalised": (CAMPS + CAMPS.T, {"normalize": True}),
    "every agent its own": (nx.path_graph(9), {"damping": np.linspace(0.5, 1.5, 9)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FADING)
def test_at_the_critical_attention_opinions_fade_as_below_it(name: str) -> None:
    graph, parameters = FADING[name]
    u = float(dynamics.System(graph, **parameters).attention)
    for ratio in (0.0, 0.5, 0.99, 1.0, 1.0 + 1e-12, 1.1, 2.0):
        # Short: the limit, not the state, tells them apart.
        found = dynamics.simulate(graph, attention=ratio * u, time=20.0, seed=3, **parameters)
        summary = found.summary()
        assert summary.neutral == (ratio <= 1.0 + 1e-12)
        assert not summary.neutral or summary.verdict == "consensus"
        assert summary.spread == pytest.approx(np.ptp(found.final.numpy(), axis=0).tolist())
    # From the critical direction, in which they fade most slowly.
    start = dynamics.System(graph, **parameters).flow().critical().direction
    start = start / np.abs(start).max()
    sizes = dynamics.simulate(graph, start, attention=u, times=[50.0, 500.0], **parameters).states.abs().amax((1, 2))
    assert sizes[1] < 0.4 * sizes[0]


@pytest.mark.slow
def test_chains_at_the_critical_attention_fade_more_slowly_than_any_simulation_shows() -> None:
    # Of two agents the second tends to the cube root of the first: t^(-1/6).
    chain = nx.path_graph(2, create_using=nx.DiGraph)
    sizes = dynamics.simulate(chain, np.ones(2), times=[1e3, 1e4, 1e5]).states[:, :, 0].log10().diff(dim=0)
    assert sizes[-1].tolist() == pytest.approx([-1 / 2, -1 / 6], abs=0.01)
    found = dynamics.simulate(nx.path_graph(6, create_using=nx.DiGraph), np.ones(6), time=1e4).summary()
    assert found.spread[0] > 0.9
    assert (found.verdict, found.neutral) == ("consensus", True)


@pytest.mark.slow
def test_what_need_not_fade_is_judged_by_its_last_state() -> None:
    path, signed = nx.path_graph(5), np.random.default_rng(0).standard_normal((6, 6))
    assert dynamics.System(path).fades()
    for graph, parameters in ((path, {"input": 0.1}), (path, {"saturation": "linear"}), (signed, {})):
        assert not dynamics.System(graph, **parameters).fades()
    # Linear opinions at u* keep to the critical direction, which is no consensus on a path.
    assert dynamics.simulate(path, np.ones(5), saturation="linear").summary().verdict == "dissensus"
    large = nx.barabasi_albert_graph(600, 2, seed=0)
    assert dynamics.System(large).fades()
    assert dynamics.System(large, attention=0.0).fades()
    assert not dynamics.System(large, attention=1.000001 * float(dynamics.System(large).attention)).fades()


def test_attention_defaults_to_the_critical_one() -> None:
    expected = dynamics.critical_attention(KARATE, np.zeros((1, 1)), 0.8, 0.5)
    system = dynamics.System(KARATE, damping=0.8, self_reinforcement=0.5)
    assert system.attention == pytest.approx(expected, rel=1e-10)


def test_simulation_is_differentiable() -> None:
    x = torch.full((34,), 0.1, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(34, dtype=torch.float64, requires_grad=True)
    matrix = torch.from_numpy(KARATE).requires_grad_()
    found = dynamics.simulate(matrix, x, attention=0.05, input=b, times=[2.0])
    by_x, by_b, by_matrix = torch.autograd.grad(found.final.square().sum(), (x, b, matrix))
    assert bool((by_x > 0).all() and (by_b > 0).all())
    assert by_matrix.count_nonzero() == np.count_nonzero(KARATE)


def test_random_start_is_repeatable_and_seeded() -> None:
    one, same, other = (dynamics.simulate(KARATE, seed=seed, attention=0.01, times=[0.0]) for seed in (0, 0, 1))
    assert torch.equal(one.states, same.states)
    assert not torch.equal(one.states, other.states)
    assert float(one.states.abs().max()) <= 1.0


def test_statistics_over_time() -> None:
    found = dynamics.simulate(KARATE, options=2, attention=0.01, times=[0.0, 1.0, 5.0])
    assert found.states.shape == (3, 34, 2)
    assert found.mean.allclose(found.states.mean(1))
    assert np.allclose(found.variance.numpy(), found.states.numpy().var(axis=1))
    assert found.summary().spread == pytest.approx(np.ptp(found.final.numpy(), axis=0).tolist())


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"model": "voter"}, "unknown model"),
        ({"atention": 1.0}, "did you mean 'attention'"),
        ({"damping": "high"}, "give numbers"),
        ({"susceptibility": 0.5}, "friedkin-johnsen"),
        ({"damping": lambda t: 1.0}, "cannot be a function"),
        ({"damping": 0.0}, "damping is 0: it must be positive"),
        ({"damping": np.linspace(0, 1, 34)}, "damping is 0 somewhere"),
        ({"self_reinforcement": -1.0}, "not be negative"),
        ({"damping": np.ones(5)}, "one value per agent"),
        ({"input": np.nan}, "NaN"),
        ({"x0": np.ones(5)}, "agents, options"),
        ({"x0": np.full(34, np.inf)}, "infinite"),
        ({"options": 0}, "at least one option"),
        ({"saturation": "step"}, "unknown saturation"),
        ({"times": [1.0, 0.5]}, "ascending"),
        ({"times": []}, "not empty"),
        ({"time": 0.0}, "positive"),
        ({"model": "degroot"}, "normalize=True"),
        ({"model": "degroot", "normalize": True, "times": [0.5]}, "whole numbers"),
        ({"model": "degroot", "normalize": True, "time": 0.5}, "at least 1"),
        ({"model": "consensus", "attention": 1.0, "normalize": True}, "leave out attention$"),
        ({"model": "consensus", "options": np.eye(2)}, "option graph"),
        ({"graph": []}, "empty"),
        ({"graph": [KARATE, KARATE]}, "attention="),
        ({"graph": [KARATE, np.eye(3)], "model": "consensus"}, "different numbers"),
        ({"graph": dynamics.System(KARATE), "damping": 2.0}, "finished System"),
        ({"graph": dynamics.System(KARATE), "model": "consensus"}, "nonlinear"),
    ],
)
def test_bad_input_is_refused(wrong: dict[str, object], cure: str) -> None:
    arguments = {"graph": KARATE, **wrong}
    with pytest.raises(InputError, match=cure):
        dynamics.simulate(arguments.pop("graph"), **arguments)


# --- The command ---


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["simulate", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_command_writes_pictures_and_every_opinion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "karate", "--options", "2", "--option-weight", "-0.5", "--time", "5", "-o", str(tmp_path))
    assert found["agents"] == 34
    assert found["attention"] == pytest.approx(found["critical_attention"])
    assert sorted(Path(file).name for file in found["files"]) == ["opinions.csv", "opinions.png", "opinions.svg"]
    assert (tmp_path / "opinions.png").read_bytes().startswith(b"\x89PNG")
    table = np.loadtxt(tmp_path / "opinions.csv", delimiter=",", skiprows=1)
    assert len(table) == 201 * 34 * 2
    last = table[table[:, 0] == 5.0]
    assert [last[last[:, 2] == o, 3].mean() for o in (0, 1)] == pytest.approx(found["mean"])


def test_command_reads_a_signed_edge_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = tmp_path / "friends.csv"
    edges.write_text("source,target,weight\nann,bob,1\nbob,cat,-1\ncat,dan,1\ndan,ann,-1\n")
    found = answer(capsys, str(edges), "--relative-attention", "2", "--time", "60")
    assert (found["agents"], found["verdict"]) == (4, "polarised")
    assert answer(capsys, str(edges), "--directed", "--relative-attention", "1.5")["neutral"] is False
    one_way = answer(capsys, str(edges), "--directed", "--attention", "0.4", "--time", "60")
    assert one_way["verdict"] == "consensus"


@pytest.mark.slow
@pytest.mark.parametrize("given", ["edges.csv", ""])
@pytest.mark.parametrize("flags", [[], ["--directed"]])
def test_command_reads_an_edge_list_alike_with_and_without_a_table_of_nodes(
    given: str, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, alone = tmp_path / "graph", tmp_path / "friends.csv"
    folder.mkdir()
    text = "source,target,weight\nann,bob,2\nbob,ann,0.5\nbob,cat,-1\ncat,dan,1\ndan,ann,-0.5\n"
    alone.write_text(text)
    (folder / "edges.csv").write_text(text)
    (folder / "nodes.csv").write_text("id,age\nann,1\nbob,2\ncat,3\ndan,4\n")
    wanted = ("critical_attention", "mean", "verdict")
    arguments = (*flags, "--time", "20", "--relative-attention", "1.5")
    with_nodes, without = (answer(capsys, str(path), *arguments) for path in (folder / given, alone))
    assert [with_nodes[key] for key in wanted] == [without[key] for key in wanted]
    (folder / "nodes.csv").write_text("id,age\nann,1\nbob,2\ncat,3\ndan,4\neve,5\n")
    assert answer(capsys, str(folder / given), *arguments)["agents"] == 5


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("source,target,trust\na,b,3\n", 1.0),
        ("target,source,weight\nb,a,3\n", 3.0),
        ("since,weight,source,target\n1999,-3,a,b\n", -3.0),
        ("source,target,weight\na,b,\n", None),
        ("source,target,weight\na,b,inf\n", None),
    ],
)
def test_columns_of_edges_are_found_by_their_names(
    text: str, weight: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, alone = tmp_path / "graph", tmp_path / "friends.csv"
    folder.mkdir()
    for path in (alone, folder / "edges.csv"):
        path.write_text(text)
    (folder / "nodes.csv").write_text("id,age\na,1\nb,2\n")
    for path in (alone, folder):
        if weight is None:
            assert main(["simulate", str(path)]) == 1
            assert "column 'weight'" in capsys.readouterr().err
        else:
            assert dynamics.as_matrix(str(path), directed=True).toarray().tolist() == [[0.0, 0.0], [weight, 0.0]]


def test_command_draws_agents_without_edges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.csv").write_text("id,age\na,1\nb,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n")
    found = answer(capsys, str(tmp_path), "-o", str(tmp_path / "out"), "--time", "2")
    assert (found["agents"], len(found["files"])) == (2, 3)


def test_weights_of_either_sign_are_said_to_belong_in_an_edge_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "foes.npz"
    np.savez(path, x=np.ones((2, 1)), edge_index=np.array([[0, 1], [1, 0]]), edge_weight=np.array([1.0, -1.0]))
    assert main(["simulate", str(path)]) == 1
    assert "from an edge list, .csv" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "names"),
    [
        (["path", "--agents", "6"], ["neutral consensus", "neutral consensus", "dissensus"]),
        (["friends.csv", "--normalize"], ["neutral consensus", "neutral consensus", "polarised"]),
    ],
)
def test_both_commands_say_the_same_below_at_and_above_the_critical_attention(
    graph: list[str], names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "friends.csv").write_text("ann,bob,1\nbob,cat,-1\ncat,dan,2\ndan,ann,-3\n")
    graph = [str(tmp_path / part) if part.endswith(".csv") else part for part in graph]
    for ratio, name in zip(("0.6", "1", "1.75"), names, strict=True):
        assert main(["simulate", *graph, "--relative-attention", ratio, "--time", "20"]) == 0
        assert capsys.readouterr().out.splitlines()[2].removeprefix("fading to ") == name
    assert main(["simulate", *graph]) == 0
    assert capsys.readouterr().out.splitlines()[2].removeprefix("fading to ") == names[1]
    assert main(["bifurcation", *graph, "--time", "20"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("(a)", "(c)", "(b)"))]
    said = {line[1]: line.partition(": ")[2].partition(",")[0].removeprefix("fading to ") for line in lines}
    assert [said[panel] for panel in "acb"] == names


def test_command_runs_without_a_critical_attention(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chain.csv").write_text("a,b\nb,c\n")
    chain = [str(tmp_path / "chain.csv"), "--directed", "--self-reinforcement", "0"]
    assert main(["simulate", *chain]) == 1
    assert "stable at every attention" in capsys.readouterr().err
    found = answer(capsys, *chain, "--attention", "2")
    assert (found["attention"], found["critical_attention"], found["neutral"]) == (2.0, None, True)


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


def test_command_keeps_the_largest_component(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts.csv").write_text("a,b\nc,d\nd,e\n")
    assert answer(capsys, str(tmp_path / "parts.csv"))["agents"] == 5
    assert answer(capsys, str(tmp_path / "parts.csv"), "--largest-component")["agents"] == 3


@pytest.mark.parametrize("shape", ["grid", "path", "cycle", "complete", "star", "barabasi-albert"])
def test_command_knows_shapes(shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, shape, "--agents", "7", "--model", "degroot", "--time", "300")
    assert (found["agents"], found["verdict"]) == (7, "consensus")


def test_command_takes_initial_opinions_and_inputs_from_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "values.csv"
    values.write_text("\n".join(map(str, [0.1, 0.2, 0.3, 0.4])))
    base = ("path", "--agents", "4", "--time", "200", "--relative-attention", "0.5")
    by_file = answer(capsys, *base, "--initial", str(values), "--input", str(values))
    by_word = answer(capsys, *base, "--initial", str(values), "--input", "initial")
    assert by_file["mean"] == pytest.approx(by_word["mean"])
    assert by_file["verdict"] == "dissensus"
    assert answer(capsys, *base, "--input", "initial*0")["neutral"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["grid", "--agents", "1"], "at least 2"),
        (["nowhere"], "unknown graph"),
        (["gird"], "did you mean 'grid'"),
        (["grid", "--options", "0"], "at least 1"),
        (["grid", "--attention", "1", "--relative-attention", "1"], "leave one out"),
        (["grid", "--model", "degroot", "--attention", "1"], "leave out attention"),
        (["grid", "--model", "consensus", "--damping", "7", "--saturation", "x"], "leave out damping, saturation"),
        (["grid", "--input", "much"], "give a number"),
        (["grid", "--initial", "nowhere.csv"], "cannot be read"),
        (["missing.csv"], "cannot be read"),
        (["grid", "-o", "/dev/null/pictures"], "cannot be made"),
        (["grid", "-o", "nowhere/picture.jpg"], "use one, or name a folder"),
        (["grid", "--time", "1e6"], "lower --time or --attention"),
    ],
)
def test_command_refuses_bad_input(arguments: list[str], cure: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments]) == 1
    assert cure in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("a,b,c,d\n", "not an edge"),
        ("a,b,x\n", "not an edge"),
        ("from,to,trust\na,b,1\n", "names these columns"),
        ("a,b,1\nc,d,x\n", "line 2, column 'weight': 'x'"),
        ("a,b,1\nc,,1\n", "line 2: 'c,,1' is not an edge"),
        ("a\n", "not an edge"),
        ("a,b\nb,c,2\n", "3 cells where the first line has 2"),
        ("", "no edges"),
        ("source,target,weight\n", "no edges"),
    ],
)
def test_command_refuses_bad_edge_lists(
    text: str, cure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.csv").write_text(text)
    assert main(["simulate", str(tmp_path / "e.csv")]) == 1
    assert cure in capsys.readouterr().err
