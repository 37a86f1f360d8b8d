import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.utils import from_networkx

import measure_literal as literal
from dissensus import measure
from dissensus.errors import InputError
from measured_states import RING, every_measure, quick, random_state


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
