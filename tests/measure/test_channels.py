import math

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.utils import from_networkx, to_undirected

import measure_literal as literal
from dissensus import measure
from dissensus.errors import InputError

STATE_ONLY = {
    "effective_rank": measure.effective_rank,
    "numerical_rank": measure.numerical_rank,
    "rank_one_distance": measure.rank_one_distance,
    "channel_correlation": measure.channel_correlation,
}
quick = settings(max_examples=60, deadline=None, derandomize=True)


def every_measure(x: Tensor, edge_index: Tensor) -> dict[str, Tensor]:
    return {
        "dirichlet_energy": measure.dirichlet_energy(x, edge_index),
        "relative_dirichlet_energy": measure.dirichlet_energy(x, edge_index, relative=True),
        "mad": measure.mad(x, edge_index),
        **{name: function(x) for name, function in STATE_ONLY.items()},
    }


def random_state(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


RING = to_undirected(torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9]))


@quick
@given(literal.graphs())
def test_energy_is_the_double_sum(graph):
    x, edge_index = graph
    pairs = [tuple(pair) for pair in edge_index.t().tolist()]
    expected = literal.energy(x.numpy(), pairs)
    assert measure.dirichlet_energy(x, edge_index).item() == pytest.approx(expected, rel=1e-12, abs=1e-15)
    norm = float((x**2).sum())
    relative = measure.dirichlet_energy(x, edge_index, relative=True).item()
    assert relative == pytest.approx(expected / norm if norm else 0.0, rel=1e-12, abs=1e-15)


@quick
@given(literal.graphs())
def test_mad_is_the_mean_of_mean_cosine_distances(graph):
    x, edge_index = graph
    pairs = [tuple(pair) for pair in edge_index.t().tolist()]
    assert measure.mad(x, edge_index).item() == pytest.approx(literal.mad(x.numpy(), pairs), abs=1e-12)


@quick
@given(literal.graphs())
@pytest.mark.parametrize(("name", "tolerance"), [(name, 1e-5 if "rank" in name else 1e-9) for name in STATE_ONLY])
@pytest.mark.slow
def test_state_measures_equal_their_definition(name, tolerance, graph):
    x, _ = graph
    assert STATE_ONLY[name](x).item() == pytest.approx(getattr(literal, name)(x.numpy()), abs=tolerance)


@quick
@given(literal.graphs(torch.float32), st.sampled_from([1e-30, 1e-3, 7.0, 1e30]))
def test_scale_invariance_beyond_the_range_of_squares(graph, factor):
    x, edge_index = graph
    before, after = every_measure(x, edge_index), every_measure(x * factor, edge_index)
    for name in before.keys() - {"dirichlet_energy"}:
        assert after[name].item() == pytest.approx(before[name].item(), abs=2e-5), name


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_scale_invariance_at_the_ends_of_double_precision(factor):
    x = random_state(9, 4)
    before, after = every_measure(x, RING), every_measure(x * factor, RING)
    for name in before.keys() - {"dirichlet_energy"}:
        assert after[name].item() == pytest.approx(before[name].item()), name


@quick
@given(literal.graphs())
def test_raw_energy_is_quadratic_in_the_state(graph):
    x, edge_index = graph
    once, thrice = measure.dirichlet_energy(x, edge_index), measure.dirichlet_energy(3 * x + 1, edge_index)
    assert thrice.item() == pytest.approx(9 * once.item(), rel=1e-9, abs=1e-12)


def test_energy_is_the_laplacian_quadratic_form_of_networkx():
    graph = nx.karate_club_graph()
    edge_index = from_networkx(graph).edge_index
    x = random_state(34, 5)
    laplacian = torch.from_numpy(nx.laplacian_matrix(graph, weight=None).toarray()).double()
    expected = 2 * torch.trace(x.T @ laplacian @ x) / 34
    torch.testing.assert_close(measure.dirichlet_energy(x, edge_index), expected)
    torch.testing.assert_close(measure.dirichlet_energy(x, edge_index, relative=True), expected / x.square().sum())


def test_energy_of_one_undirected_edge_counts_both_directions():
    x, edge_index = torch.tensor([[0.0], [2.0]]), torch.tensor([[0, 1], [1, 0]])
    assert measure.dirichlet_energy(x, edge_index).item() == 4.0
    assert measure.dirichlet_energy(x, edge_index[:, :1]).item() == 2.0
    assert measure.dirichlet_energy(x, edge_index, relative=True).item() == 1.0


def test_weights_count_edges_more_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 3, generator=generator)
    edge_index = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 4, 0, 3]])
    weight = torch.tensor([0.5, 2.0, 0.0, -1.0, 7.0])
    gaps = (x[:, edge_index[0]] - x[:, edge_index[1]]).square().sum(-1)
    torch.testing.assert_close(measure.dirichlet_energy(x, edge_index, weight), (gaps * weight).sum(-1) / 5)
    monkeypatch.setattr("dissensus.measure._node_similarity._CHUNK", 12)  # two edges at a time
    torch.testing.assert_close(measure.dirichlet_energy(x, edge_index, weight), (gaps * weight).sum(-1) / 5)
    thrice = measure.dirichlet_energy(x, edge_index, torch.full((5,), 3.0), relative=True)
    torch.testing.assert_close(thrice, 3 * measure.dirichlet_energy(x, edge_index, relative=True))
    with pytest.raises(InputError, match="one weight for each of the 5 edges"):
        measure.dirichlet_energy(x, edge_index, weight[:4])


def test_energy_is_accurate_next_to_consensus():
    x = torch.full((9, 3), 0.1, dtype=torch.float64)
    x[4, 1] += 1e-12
    step = float(x[4, 1] - x[3, 1])
    assert measure.dirichlet_energy(x, RING).item() == pytest.approx(4 * step**2 / 9, rel=1e-12)


def test_energy_is_differentiable():
    x = random_state(9, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: measure.dirichlet_energy(x, RING), x)
    assert torch.autograd.gradcheck(lambda x: measure.dirichlet_energy(x, RING, relative=True), x)


def test_edges_are_read_in_pieces_without_a_seam(monkeypatch):
    x = random_state(4, 9, 3)
    whole = every_measure(x, RING)
    monkeypatch.setattr("dissensus.measure._node_similarity._CHUNK", 50)
    for name, value in every_measure(x, RING).items():
        torch.testing.assert_close(value, whole[name])


@pytest.mark.parametrize("shape", [(), (6,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_leading_dimensions_are_states_one_by_one(shape, dtype):
    x = random_state(*shape, 9, 3, dtype=dtype)
    x[..., 0, :] = 0
    for name, value in every_measure(x, RING).items():
        assert value.shape == shape
        assert value.dtype == dtype
        for state, one in zip(x.reshape(-1, 9, 3), value.reshape(-1), strict=True):
            torch.testing.assert_close(every_measure(state, RING)[name], one)


def test_single_precision_agrees_with_double():
    x = random_state(9, 4)
    single = every_measure(x.float(), RING)
    for name, value in every_measure(x, RING).items():
        assert single[name].item() == pytest.approx(value.item(), rel=1e-5), name


def test_permuting_the_nodes_changes_nothing():
    x, order = random_state(9, 4), torch.randperm(9, generator=torch.Generator().manual_seed(1))
    permuted = torch.empty_like(x)
    permuted[order] = x
    after = every_measure(permuted, order[RING])
    for name, value in every_measure(x, RING).items():
        torch.testing.assert_close(after[name], value)


def test_orthonormal_channels_have_full_rank():
    x = torch.linalg.qr(random_state(40, 6)).Q
    assert measure.effective_rank(x).item() == pytest.approx(6)
    assert measure.numerical_rank(x).item() == pytest.approx(6)
    assert measure.rank_one_distance(x).item() == pytest.approx(math.sqrt(5 / 6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_consensus_and_rank_one(dtype):
    consensus = random_state(1, 5, dtype=dtype).expand(9, 5)
    values = every_measure(consensus, RING)
    assert values["dirichlet_energy"] == 0
    assert values["relative_dirichlet_energy"] == 0
    assert values["mad"] == 0
    assert values["channel_correlation"] == 0
    outer = random_state(9, 1, dtype=dtype) @ random_state(1, 5, seed=1, dtype=dtype)
    for state in (consensus, outer):
        eps = torch.finfo(dtype).eps
        assert measure.rank_one_distance(state) < 4 * eps
        assert measure.effective_rank(state).item() == pytest.approx(1, abs=400 * eps)
        assert measure.numerical_rank(state).item() == pytest.approx(1)
    assert measure.channel_correlation(outer).item() == pytest.approx(1, abs=1e-5)


def test_rank_one_distance_resolves_double_precision():
    x = torch.zeros(8, 3, dtype=torch.float64)
    x[0, 0], x[1, 1] = 1.0, 1e-13
    assert measure.rank_one_distance(x).item() == pytest.approx(1e-13, rel=1e-6)


def test_rounding_noise_around_a_constant_is_not_correlation():
    x = torch.full((50, 3), 0.7, dtype=torch.float32)
    x[::2, 0] = torch.nextafter(x[0, 0], torch.tensor(1.0))
    x[::2, 1] = torch.nextafter(x[0, 1], torch.tensor(0.0))
    assert measure.channel_correlation(x) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("edges", [RING, torch.empty(2, 0, dtype=torch.int64)])
def test_zero_states_have_the_documented_values(dtype, edges):
    values = every_measure(torch.zeros(9, 4, dtype=dtype), edges)
    assert set(map(float, values.values())) == {0.0}


def test_no_edges_one_node_and_isolated_nodes():
    no_edges = torch.empty(2, 0, dtype=torch.int64)
    x = random_state(9, 4)
    assert measure.dirichlet_energy(x, no_edges) == measure.mad(x, no_edges) == 0
    alone = every_measure(random_state(1, 4), torch.zeros(2, 1, dtype=torch.int64))
    assert alone["dirichlet_energy"] == alone["mad"] == alone["channel_correlation"] == 0
    assert alone["effective_rank"].item() == pytest.approx(1)
    with_isolated = torch.cat([x, random_state(3, 4, seed=1)])
    torch.testing.assert_close(measure.mad(with_isolated, RING), measure.mad(x, RING))
    torch.testing.assert_close(
        measure.dirichlet_energy(with_isolated, RING), measure.dirichlet_energy(x, RING) * 9 / 12
    )


@pytest.mark.parametrize("bad", [torch.inf, torch.nan])
def test_states_that_are_not_finite_are_undefined_and_spoil_no_other(bad):
    x = random_state(2, 9, 4)
    x[0, 3, 1] = bad
    for name, value in every_measure(x, RING).items():
        assert not value[0].isfinite(), name
        torch.testing.assert_close(value[1], every_measure(x[1], RING)[name])


def test_randomised_ranks_agree_with_all_singular_values(monkeypatch):
    low_rank = random_state(300, 20) @ random_state(20, 200, seed=1)
    decaying = random_state(300, 200) * torch.linspace(0, -3, 200, dtype=torch.float64).exp()
    exact = [[f(x).item() for f in STATE_ONLY.values()] for x in (low_rank, decaying)]
    monkeypatch.setattr("dissensus.measure._channels._EXACT", 100)
    sketched = [[f(x).item() for f in STATE_ONLY.values()] for x in (low_rank, decaying)]
    assert sketched[0] == pytest.approx(exact[0], rel=1e-6)
    assert sketched[1][1:] == pytest.approx(exact[1][1:], rel=2e-2)
    assert exact[1][0] < sketched[1][0] < 1.1 * exact[1][0]
    assert measure.effective_rank(decaying[None]).item() == sketched[1][0]


@pytest.mark.slow
def test_matrices_large_on_both_sides_are_sketched():
    tall, wide = random_state(2100, 3), random_state(3, 2060, seed=1)
    factors = [torch.linalg.qr(factor, mode="r").R for factor in (tall, wide.T)]
    core = (factors[0] @ factors[1].T).numpy()
    assert measure.effective_rank(tall @ wide).item() == pytest.approx(literal.effective_rank(core), rel=1e-4)
    assert measure.numerical_rank(tall @ wide).item() == pytest.approx(literal.numerical_rank(core), rel=1e-9)


def test_summary_holds_every_scalar_measure():
    x = random_state(9, 4, dtype=torch.float32)
    summary = measure.summary(x, RING)
    expected = every_measure(x.double(), RING)
    assert summary.keys() == expected.keys()
    for name, value in summary.items():
        assert type(value) is float
        assert value == pytest.approx(expected[name].item(), rel=1e-6), name


def test_summary_keeps_energies_that_single_precision_cannot_hold():
    assert measure.summary(random_state(9, 4, dtype=torch.float32) * 1e-25, RING)["dirichlet_energy"] > 1e-51


@pytest.mark.parametrize(
    ("x", "edge_index", "cure"),
    [
        (torch.ones(9), RING, r"x\[:, None\]"),
        (torch.ones(9, 2, dtype=torch.int64), RING, "float"),
        ([[1.0]], RING, "torch.as_tensor"),
        (torch.ones(9, 0), RING, "one channel"),
        (torch.ones(8, 2), RING, "node 8.*8 nodes.*row for every node"),
        (torch.ones(9, 2), RING - 1, "node -1"),
        (torch.ones(9, 2), RING.t(), "transpose"),
        (torch.ones(9, 2), RING.float(), r"edge_index\.long\(\)"),
        (torch.ones(9, 2), [[0], [1]], "torch tensor"),
    ],
)
@pytest.mark.parametrize("function", [measure.dirichlet_energy, measure.mad, measure.summary])
def test_wrong_input_is_refused_with_a_cure(function, x, edge_index, cure):
    with pytest.raises(InputError, match=cure):
        function(x, edge_index)


def test_summary_refuses_a_trajectory():
    with pytest.raises(InputError, match="each step"):
        measure.summary(torch.ones(2, 9, 3), RING)


@pytest.mark.slow
def test_a_hundred_thousand_nodes():
    nodes = 100_000
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    chords = torch.stack([torch.arange(nodes), torch.arange(nodes) * 7 % nodes])
    edge_index = to_undirected(torch.cat([ring, chords], 1))
    x = torch.linalg.qr(random_state(nodes, 16)).Q.float()
    summary = measure.summary(x, edge_index)
    source, target = edge_index
    assert summary["dirichlet_energy"] == pytest.approx(float((x[source] - x[target]).square().sum()) / nodes, rel=1e-3)
    assert summary["effective_rank"] == pytest.approx(16, rel=1e-5)
    assert summary["mad"] == pytest.approx(1, abs=0.05)
    assert summary["channel_correlation"] < 0.02
