import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx

from dissensus import measure
from dissensus.errors import InputError


class Filter(nn.Module):
    """``p(L) x`` with the symmetric normalised Laplacian of networkx and a polynomial ``p``."""

    def __init__(self, graph: nx.Graph, *coefficients: float) -> None:
        super().__init__()
        self.laplacian = torch.from_numpy(nx.normalized_laplacian_matrix(graph).toarray())
        self.coefficients = coefficients

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out, power = torch.zeros_like(x), x
        for coefficient in self.coefficients:
            out, power = out + coefficient * power, self.laplacian @ power
        return out


def data_of(graph: nx.Graph, channels: int = 6) -> Data:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(graph.number_of_nodes(), channels, generator=generator, dtype=torch.float64)
    if not graph.number_of_edges():
        return Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.int64))
    return Data(x=x, edge_index=from_networkx(graph).edge_index)


def eigenvalues_of(graph: nx.Graph) -> np.ndarray:
    return np.linalg.eigvalsh(nx.normalized_laplacian_matrix(graph).toarray())


KARATE = nx.Graph(nx.karate_club_graph().edges)
MODELS = {"identity": (1.0,), "low-pass": (1.0, -0.5), "high-pass": (0.0, 1.0), "band-pass": (0.0, 2.0, -1.0)}


@pytest.mark.parametrize("coefficients", MODELS.values(), ids=MODELS.keys())
def test_gain_and_shares_of_a_known_filter(coefficients):
    response = measure.filter_response(Filter(KARATE, *coefficients), data_of(KARATE), probes=300, bands=10)
    eigenvalues = eigenvalues_of(KARATE)
    squared = np.polyval(coefficients[::-1], eigenvalues) ** 2
    assert response.sharpening == pytest.approx((squared * eigenvalues).sum() / 2 / squared.sum(), rel=0.03)
    assert response.smoothing == pytest.approx(1 - response.sharpening)
    band = np.clip((eigenvalues * 5).astype(int), 0, 9)
    for b in range(10):
        inside = squared[band == b]
        expected = np.sqrt(inside.mean()) if len(inside) else np.nan
        assert response.gain[b].item() == pytest.approx(expected, rel=0.1, abs=1e-7, nan_ok=True)
    assert response.frequency.tolist() == pytest.approx([0.1 + 0.2 * b for b in range(10)])


def test_a_filter_that_prefers_nothing_is_at_one_half_and_scale_does_not_matter():
    neutral = measure.filter_response(Filter(KARATE, 1.0), data_of(KARATE), probes=300)
    assert neutral.sharpening == pytest.approx(0.5, abs=0.01)
    plain = measure.filter_response(Filter(KARATE, 1.0, -0.5), data_of(KARATE))
    small = measure.filter_response(Filter(KARATE, 1e-200, -0.5e-200), data_of(KARATE))
    assert small.sharpening == pytest.approx(plain.sharpening)


def test_nonlinear_models_are_measured_around_their_input():
    data = data_of(KARATE)
    linear = Filter(KARATE, 1.0, -0.5)
    around_zero = Data(x=data.x * 1e-6, edge_index=data.edge_index)
    response = measure.filter_response(linear, around_zero, forward=lambda m, d: torch.tanh(m(d.x, d.edge_index)))
    assert response.sharpening == pytest.approx(measure.filter_response(linear, data).sharpening, rel=1e-6)
    saturated = Data(x=torch.full_like(data.x, 1e6), edge_index=data.edge_index)
    dead = measure.filter_response(linear, saturated, forward=lambda m, d: torch.tanh(d.x))
    assert (dead.sharpening, dead.smoothing) == (0.5, 0.5)
    assert dead.gain.nan_to_num().abs().max() == 0


@pytest.mark.parametrize("limit", [0, 10_000])
def test_polynomial_bands_agree_with_exact_ones(monkeypatch, limit):
    graph = nx.gnp_random_graph(700, 0.008, seed=1)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    graph = nx.convert_node_labels_to_integers(graph)
    monkeypatch.setattr("dissensus.measure._response._EXACT_NODES", limit)
    response = measure.filter_response(Filter(graph, 1.0, -0.5), data_of(graph), probes=16, bands=8)
    eigenvalues = eigenvalues_of(graph)
    squared = (1 - eigenvalues / 2) ** 2
    assert response.sharpening == pytest.approx((squared * eigenvalues).sum() / 2 / squared.sum(), rel=0.02)
    band = np.clip((eigenvalues * 4).astype(int), 0, 7)
    counts = np.bincount(band, minlength=8)
    for b in np.flatnonzero(counts >= 30):
        assert response.gain[b].item() == pytest.approx(np.sqrt(squared[band == b].mean()), rel=0.07)


def test_sketching_many_channels_keeps_the_response(monkeypatch):
    data = data_of(KARATE, channels=400)
    full = measure.filter_response(Filter(KARATE, 1.0, -0.5), data, probes=4)
    monkeypatch.setattr("dissensus.measure._response._SKETCH_ENTRIES", 34 * 4 * 100)
    sketched = measure.filter_response(Filter(KARATE, 1.0, -0.5), data, probes=4)
    assert sketched.sharpening != full.sharpening
    assert sketched.sharpening == pytest.approx(full.sharpening, rel=0.05)
    occupied = ~full.gain.isnan()
    torch.testing.assert_close(sketched.gain[occupied], full.gain[occupied], rtol=0.25, atol=0.01)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 9), st.floats(0, 1), st.integers(0, 99))
def test_any_small_graph_has_shares_that_add_up(nodes, density, seed):
    graph = nx.gnp_random_graph(nodes, density, seed=seed, directed=True)
    response = measure.filter_response(nn.Identity(), data_of(graph), forward=lambda m, d: d.x)
    assert 0 <= response.sharpening <= 1
    assert response.sharpening + response.smoothing == pytest.approx(1)
    if not graph.number_of_edges():
        assert response.sharpening == 0.5
        assert response.gain.isnan().all()
    else:
        occupied = ~response.gain.isnan()
        np.testing.assert_array_less(0, response.gain[occupied])


def test_isolated_nodes_loops_directions_and_repeated_edges_do_not_count():
    data = data_of(KARATE)
    plain = measure.filter_response(Filter(KARATE, 1.0, -0.5), data)
    loops = torch.arange(34).repeat(2, 1)
    messy = Data(x=data.x, edge_index=torch.cat([data.edge_index, loops, data.edge_index[:, :9]], 1))
    assert measure.filter_response(Filter(KARATE, 1.0, -0.5), messy).sharpening == plain.sharpening
    wider = Data(x=torch.cat([data.x, data.x[:5]]), edge_index=data.edge_index)
    identity = measure.filter_response(nn.Identity(), wider, forward=lambda m, d: d.x, probes=300)
    assert identity.sharpening == pytest.approx(0.5, abs=0.01)
    torch.testing.assert_close(
        identity.gain[~identity.gain.isnan()], torch.ones_like(identity.gain[~identity.gain.isnan()]), rtol=0.1, atol=0
    )


def test_isolated_nodes_first_do_not_shift_the_others():
    graph = nx.Graph()
    graph.add_nodes_from(range(-20, 34))
    graph.add_edges_from(KARATE.edges)
    shifted = nx.convert_node_labels_to_integers(graph)
    response = measure.filter_response(Filter(shifted, 0.0, 1.0), data_of(shifted), probes=200)
    alone = measure.filter_response(Filter(KARATE, 0.0, 1.0), data_of(KARATE), probes=200)
    assert response.sharpening == pytest.approx(alone.sharpening, rel=0.02)


def test_a_diverged_model_is_undefined():
    response = measure.filter_response(nn.Identity(), data_of(KARATE), forward=lambda m, d: d.x * torch.inf)
    assert np.isnan([response.sharpening, response.smoothing, *response.gain]).all()


def test_the_seed_decides_everything():
    data, model = data_of(KARATE), Filter(KARATE, 1.0, -0.5)
    assert measure.filter_response(model, data).sharpening == measure.filter_response(model, data).sharpening
    assert measure.filter_response(model, data).sharpening != measure.filter_response(model, data, seed=1).sharpening


def test_without_bands_the_shares_are_the_same():
    data, model = data_of(KARATE), Filter(KARATE, 1.0, -0.5)
    alone = measure.filter_response(model, data, bands=0)
    assert alone.sharpening == measure.filter_response(model, data).sharpening
    assert len(alone.gain) == len(alone.frequency) == 0


def test_wrong_input_is_refused_with_a_cure():
    data = data_of(KARATE)
    with pytest.raises(InputError, match="at least 1"):
        measure.filter_response(Filter(KARATE, 1.0), data, probes=0)
    with pytest.raises(InputError, match="forward="):
        measure.filter_response(nn.Identity(), data, forward=lambda m, d: (d.x, d.x))
    for cut in (lambda m, d: d.x.detach(), lambda m, d: torch.ones(3, requires_grad=True) * 2):
        with pytest.raises(InputError, match="no gradient reaches"):
            measure.filter_response(nn.Identity(), data, forward=cut)
