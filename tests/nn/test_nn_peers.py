"""What is particular to each baseline: its equation as the paper writes it, and its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub
from torch_geometric.transforms import GDC
from torch_geometric.utils import barabasi_albert_graph

from dissensus import nn
from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import InputError, SolverError
from dissensus.graph import build
from dissensus.solve import solve

IN, HIDDEN, OUT = 5, 4, 3


@pytest.fixture(scope="module")
def data() -> Any:
    data = KarateClub()[0]
    data.x = 0.3 * torch.randn(34, IN, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return data


def make(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.create(
        name, in_channels=IN, hidden_channels=HIDDEN, out_channels=OUT, **{"attention_channels": 4, **options}
    )
    return model.double().eval()


def slope(model: Any, data: Any) -> tuple[Tensor, Tensor, Tensor]:
    """A_a, the start and the field's value there, by a single tiny Euler step of the whole model."""
    with torch.no_grad():
        start = model.trajectory(data.x, data.edge_index, [0.0])[0]
        end = model.trajectory(data.x, data.edge_index, [1e-3])[0]
    return model.graphs(data.x, data.edge_index)[0].to_dense(), start, (end - start) / 1e-3


EULER = {"method": "euler", "step_size": 1e-3}


@pytest.mark.parametrize("adaptive", ["l", "aa"])
def test_grand(data: Any, adaptive: str) -> None:
    a, x, velocity = slope(make(f"grand-{adaptive}", **EULER), data)
    torch.testing.assert_close(velocity, a @ x - x)
    model = make(f"grand-{adaptive}", source=True, learn_time_scale=True, **EULER)
    with torch.no_grad():
        model.source.fill_(0.7)
        model.time_scale.logit.fill_(-1.0)
    a, x, velocity = slope(model, data)
    scale = torch.sigmoid(torch.tensor(-1.0, dtype=torch.float64))
    torch.testing.assert_close(velocity, scale * (a @ x - x) + 0.7 * x)


@pytest.mark.parametrize("name", ["grand-l", "grand-aa", "grand++-l", "grand++-aa", "kuramoto"])
def test_a_detached_source_passes_no_gradient(name: str, data: Any) -> None:
    """One Euler step to T of an undamped source: X(T) = ... + T B, so the source's share of the gradient shows."""
    gradients = []
    for detach in (False, True):
        options = {"source": True} if name.startswith("grand-") else {}
        model = make(name, method="euler", time=1.0, detach_source=detach, **options)
        if options:
            with torch.no_grad():
                model.source.fill_(1.0)
        out = model(data.x, data.edge_index)
        out.square().sum().backward()
        gradients.append((out.detach(), model.encoder.linear.weight.grad.clone()))
    torch.testing.assert_close(gradients[0][0], gradients[1][0])
    assert not torch.allclose(gradients[0][1], gradients[1][1], rtol=1e-3)


def test_grandpp_draws_from_its_sources_alone(data: Any) -> None:
    model = make("grand++-l", source_scale=2.0, **EULER)
    mask = torch.zeros(34, dtype=torch.bool)
    mask[[1, 5, 20]] = True
    model.set_sources(mask)
    a, x, velocity = slope(model, data)
    source = velocity - (a @ x - x)
    torch.testing.assert_close(source[~mask], torch.zeros(31, HIDDEN, dtype=torch.float64), atol=1e-9, rtol=0.0)
    torch.testing.assert_close(source[mask], 2.0 * (x[mask] - x[mask].mean(0)))
    model.set_sources(None)
    a, x, velocity = slope(model, data)
    torch.testing.assert_close(velocity - (a @ x - x), 2.0 * (x - x.mean(0)))


def test_grandpp_sources_are_saved_checked_and_the_callers_mask_is_not_kept(data: Any, tmp_path: Path) -> None:
    model = make("grand++-l")
    everywhere = model(data.x, data.edge_index)
    mask = torch.arange(34) < 4
    model.set_sources(mask)
    some = model(data.x, data.edge_index)
    assert not torch.allclose(some, everywhere)
    mask[:] = True
    assert torch.equal(model(data.x, data.edge_index), some)
    model.save(tmp_path / "m")
    loaded = nn.load(tmp_path / "m")
    assert torch.equal(loaded(data.x, data.edge_index), some)
    other = make("grand++-l")
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(data.x, data.edge_index), some)
    other.load_state_dict(make("grand++-l").state_dict())
    assert torch.equal(other(data.x, data.edge_index), everywhere)
    with pytest.raises(InputError, match="set for 34 nodes, but the graph has 3"):
        loaded(data.x[:3], torch.tensor([[0, 1], [1, 2]]))
    for wrong in (mask.float(), mask.view(2, 17), torch.zeros(34, dtype=torch.bool)):
        with pytest.raises(InputError, match="train_mask"):
            model.set_sources(wrong)


def test_grandpp_grows_along_the_ones_vector(data: Any) -> None:
    model = make("grand++-l", method="euler")
    model.set_sources(torch.arange(34) < 5)
    with torch.no_grad():
        early, late = model.trajectory(data.x, data.edge_index, [200.0, 400.0])
    # Beyond the transient every node moves by the same amount: X grows, differences between nodes do not.
    torch.testing.assert_close(late - early, (late - early).mean(0).expand(34, HIDDEN), atol=1e-8, rtol=0.0)
    assert float((late - early).abs().max()) > 1.0


def test_gread(data: Any) -> None:
    alpha, beta = torch.sigmoid(torch.tensor([-0.5, 0.8], dtype=torch.float64))

    def chosen(name: str, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
        model = make(name, **options, **EULER)
        with torch.no_grad():
            model.time_scale.logit.fill_(-0.5)
            model.strength.logit.fill_(0.8)
        return slope(model, data)

    a, x, velocity = chosen("gread-f")
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + beta * x * (1 - x))
    a, x, velocity = chosen("gread-fb")
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + beta * ((x - a @ x) + x))
    a, x, velocity = chosen("gread-fb", equation="code")
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + beta * ((x + a @ x) + x))
    a, x, velocity = slope(make("gread-f", learn_time_scale=False, **EULER), data)
    torch.testing.assert_close(velocity, a @ x - x + 0.5 * x * (1 - x))


def ring(n: int = 12) -> tuple[Any, Tensor]:
    nodes = torch.arange(n)
    pattern = build(torch.stack([nodes, (nodes + 1) % n]), n).pattern
    return pattern, pattern.row_normalize(torch.ones(pattern.entries, dtype=torch.float64))


def test_fishers_reaction_diverges_below_a_threshold() -> None:
    pattern, values = ring()
    field = ReactionDiffusion(pattern, values, linear=0.0, quadratic=-1.0)  # (A - I)X + X(1 - X)
    torch.manual_seed(0)
    low = -3.0 - torch.rand(12, 2, dtype=torch.float64)
    assert bool((field(0.0, low) < 0).all())
    with pytest.raises(SolverError):
        solve(field, low, 2.0)
    inside = torch.rand(12, 2, dtype=torch.float64)
    torch.testing.assert_close(solve(field, inside, 40.0).state, torch.ones_like(inside), atol=1e-2, rtol=0.0)


def test_the_filter_bank_is_dominated_by_the_ones_vector() -> None:
    pattern, values = ring(6)
    alpha, beta = 1.0, 0.4
    field = ReactionDiffusion(pattern, (alpha - beta) * values, linear=2 * beta - alpha)
    x = solve(field, torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), 60.0).state
    spread = (x - x.mean(0)).norm() / x.norm()
    assert float(spread) < 1e-3
    assert float(x.norm()) > 1e6


def test_acmp(data: Any) -> None:
    alpha, delta = torch.sigmoid(torch.tensor([-0.5, 0.8], dtype=torch.float64))

    def chosen(**options: Any) -> tuple[Tensor, Tensor, Tensor]:
        model = make("acmp", **options, **EULER)
        with torch.no_grad():
            model.time_scale.logit.fill_(-0.5)
            model.well.logit.fill_(0.8)
        return slope(model, data)

    a, x, velocity = chosen(repulsion=0.3)
    signed = torch.where(a > 0, a - 0.3, 0.0)
    differences = x.unsqueeze(0) - x.unsqueeze(1)  # [i, j]: x_j - x_i
    attraction = torch.einsum("ij,ijc->ic", signed, differences)
    torch.testing.assert_close(velocity, alpha * attraction + delta * x * (1 - x * x))
    a, x, velocity = chosen(repulsion=0.3, equation="code")
    torch.testing.assert_close(velocity, alpha * (signed @ x - x) + delta * x * (1 - x * x))
    a, x, velocity = chosen()
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + delta * x * (1 - x * x))
    with pytest.raises(InputError, match="repulsion"):
        make("acmp", repulsion=-0.1)


def test_kuramoto(data: Any) -> None:
    a, x, velocity = slope(make("kuramoto", coupling=2.5, **EULER), data)
    assert float(x.min()) >= 0.0
    pairs = torch.sin(x.unsqueeze(0) - x.unsqueeze(1))
    torch.testing.assert_close(velocity, x + 2.5 * torch.einsum("ij,ijc->ic", a, pairs))
    a, x, velocity = slope(make("kuramoto", equation="code", **EULER), data)
    radius = torch.sqrt((a @ x.cos()) ** 2 + (a @ x.sin()) ** 2)
    torch.testing.assert_close(velocity, x + 3.0 * radius * torch.sin(a @ x - x))
    with pytest.raises(InputError, match="coupling"):
        make("kuramoto", coupling=0.0)
    with pytest.raises(InputError, match="equation"):
        make("kuramoto", equation="papre")


@pytest.mark.parametrize("symplectic", [True, False])
def test_graphcon_tran_steps_as_the_paper_does(data: Any, symplectic: bool) -> None:
    model = make("graphcon-tran", method="euler", step_size=0.5, stiffness=0.9, damping=0.4, symplectic=symplectic)
    a = model.graphs(data.x, data.edge_index)[0].to_dense()
    with torch.no_grad():
        y = v = model.encoder(data.x)
        for _ in range(3):
            moved = v + 0.5 * (a @ y - 0.9 * y - 0.4 * v)
            y, v = y + 0.5 * (moved if symplectic else v), moved
        torch.testing.assert_close(model.trajectory(data.x, data.edge_index, [1.5])[0], y)


def test_graphcon_gcn_steps_as_the_paper_does(data: Any) -> None:
    torch.manual_seed(0)
    model = nn.GraphCONGCN(IN, HIDDEN, OUT, method="euler", residual=True).double().eval()
    adjacency = torch.eye(34, dtype=torch.float64)
    adjacency[data.edge_index[1], data.edge_index[0]] = 1.0
    degree = adjacency.sum(1)
    normalised = adjacency / (degree.unsqueeze(0) * degree.unsqueeze(1)).sqrt()
    with torch.no_grad():
        y = v = model.encoder(data.x)
        for _ in range(4):
            coupling = torch.relu(model.convolution(normalised @ y) + model.residual(y))
            v = v + coupling - y - v
            y = y + v
        torch.testing.assert_close(model.trajectory(data.x, data.edge_index, [4.0])[0], y)
    # With unit stiffness, damping and step the symplectic step is a convolution: Y <- relu(A Y W' + Y R' + b).
    torch.testing.assert_close(y, coupling)
    with pytest.raises(InputError, match="stiffness"):
        nn.GraphCONGCN(IN, HIDDEN, OUT, stiffness=-1.0)


def test_graphcon_under_an_adaptive_solver_is_the_limit_of_small_steps(data: Any) -> None:
    exact = make("graphcon-tran", rtol=1e-8, atol=1e-10, time=2.0)
    steps = make("graphcon-tran", method="euler", step_size=1e-3, time=2.0)
    with torch.no_grad():
        torch.testing.assert_close(steps(data.x, data.edge_index), exact(data.x, data.edge_index), atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("name", ["bimp-aa-rw", "grand-aa-rw", "grand++-aa-rw"])
def test_rewired_models_run_on_the_diffusion_of_pyg(name: str, data: Any) -> None:
    options: dict[str, Any] = {"rewire_restart": 0.2, "rewire_neighbors": 1000, "heads": 1}
    model = make(name, **options)
    with torch.no_grad():
        for layer in (model.communication.key, model.communication.query):
            layer.weight.zero_()
            layer.bias.zero_()
    found = model.graphs(data.x, data.edge_index)[0].to_dense()
    gdc = GDC(
        diffusion_kwargs={"method": "ppr", "alpha": 0.2}, sparsification_kwargs={"method": "topk", "k": 34, "dim": 0}
    )(Data(edge_index=data.edge_index, num_nodes=34))
    expected = torch.zeros(34, 34).index_put((gdc.edge_index[1], gdc.edge_index[0]), gdc.edge_attr)
    # With uniform scores the attention is the diffusion itself.
    torch.testing.assert_close(found.float(), expected, atol=1e-4, rtol=0.0)
    with pytest.raises(InputError, match="neighbors"):
        make(name, rewire_neighbors=0)
    with pytest.raises(InputError, match="restart"):
        make(name, rewire_restart=1.5)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure memory")
@pytest.mark.slow
def test_adaptive_graphs_respect_the_solvers_memory() -> None:
    """Each of 50 evaluations on this graph leaves about 2 MB for the derivative; 8 MB of that may be kept."""
    torch.manual_seed(0)
    edges = barabasi_albert_graph(400, 20)
    x = 0.1 * torch.rand(400, IN)
    model = nn.create("grand-aa", in_channels=IN, hidden_channels=8, out_channels=OUT, heads=8, method="euler")
    Path("/proc/self/clear_refs").write_text("5")
    before = _high_water()
    model.integrate(x, edges, time=50.0, memory=2**23).state.sum().backward()
    assert _high_water() - before < 60_000


def _high_water() -> int:
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])  # type: ignore[index]
