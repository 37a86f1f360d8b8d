import math

import pytest
import torch
from hypothesis import given
from torch_geometric.utils import to_undirected

import measure_literal as literal
from dissensus import measure
from dissensus.errors import InputError
from measured_states import RING, STATE_ONLY, every_measure, quick, random_state


@quick
@given(literal.graphs())
@pytest.mark.parametrize(("name", "tolerance"), [(name, 1e-5 if "rank" in name else 1e-9) for name in STATE_ONLY])
@pytest.mark.slow
def test_state_measures_equal_their_definition(name, tolerance, graph):
    x, _ = graph
    assert STATE_ONLY[name](x).item() == pytest.approx(getattr(literal, name)(x.numpy()), abs=tolerance)


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
