"""One battery for every model of the registry."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub
from torch_geometric.utils import barabasi_albert_graph

from dissensus import nn
from dissensus.errors import InputError
from dissensus.nn._decoupled import APPNP, GPRGNN
from dissensus.nn._propagation import FeaturePropagation
from dissensus.nn._recurrent import ADGN, G2
from dissensus.nn._residual import GCNII, JKNet, ResidualModel
from model_graphs import close

# Label propagation learns nothing and needs labels: it has tests of its own.
NAMES = [name for name in nn.names() if name != "label-propagation"]
IN, HIDDEN, OUT = 6, 16, 4
# One of each kind; the others take over a minute together.
FAST = ("bimp", "grand++-l", "graphcon-tran", "gcn-group", "gat", "gcnii")


def each(names: list[str]) -> pytest.MarkDecorator:
    """The test once for each model, most of them marked slow."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in names]
    )


every_model = each(NAMES)


@pytest.fixture(scope="module")
def karate() -> Any:
    data = KarateClub()[0]
    # Small features: under Fisher's reaction (gread-f) large negative ones run away within the default time.
    data.x = 0.3 * torch.randn(34, IN, generator=torch.Generator().manual_seed(0))
    return data


def make(name: str, seed: int = 0, **options: Any) -> nn.Model:
    torch.manual_seed(seed)
    return nn.create(name, in_channels=IN, hidden_channels=HIDDEN, out_channels=OUT, **options)


def steps(name: str) -> dict[str, Any]:
    """Options for steps that do not depend on what else is in the batch."""
    return {"method": "euler", "time": 2.0} if nn.info(name).continuous else {}


def forward(model: nn.Model, data: Any) -> Tensor:
    return model(data.x, data.edge_index)


def test_the_registry_has_every_model() -> None:
    design = (
        "bimp bimp-aa bimp-aa-rw grand-l grand-aa grand-aa-rw grand++-l grand++-aa grand++-aa-rw kuramoto "
        "graphcon-tran graphcon-gcn gread-f gread-fb acmp gcn gcn-pairnorm gcn-group gat sage sgc dgc mlp "
        "gcnii appnp gprgnn jknet adgn g2 gcn-res gat-res sage-res label-propagation feature-propagation"
    )
    assert set(design.split()) == set(nn.names())
    for info in map(nn.info, nn.names()):
        assert info.equation
        assert info.source


@every_model
def test_shapes_and_finite_gradients(name: str, karate: Any) -> None:
    model = make(name)
    scores = forward(model, karate)
    assert scores.shape == (34, OUT)
    F.cross_entropy(scores, karate.y).backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
    assert sum(float(p.grad.abs().sum()) for p in model.parameters() if p.grad is not None) > 0


@every_model
def test_a_seed_determines_everything(name: str, karate: Any) -> None:
    outputs = []
    for _ in range(2):
        model = make(name, seed=3)
        outputs.append(forward(model, karate).detach())
    assert torch.equal(*outputs)
    before = {key: value.clone() for key, value in model.named_parameters()}
    torch.manual_seed(3)
    nn.create(name, in_channels=IN, hidden_channels=HIDDEN, out_channels=OUT)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    model.reset_parameters()
    for key, parameter in model.named_parameters():
        assert not bool((parameter == 7.0).any()), f"{key} was not drawn anew"
        assert parameter.shape == before[key].shape


@every_model
def test_permutation_equivariance_in_double_precision(name: str, karate: Any) -> None:
    model = make(name).double().eval()
    order = torch.randperm(34, generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)  # where each node went
    with torch.no_grad():
        x = karate.x.double()
        scores = model(x, karate.edge_index)
        permuted = model(x[order], place[karate.edge_index])
    assert scores.dtype == torch.float64
    # The rewired graph's weights are single precision.
    torch.testing.assert_close(permuted, scores[order], atol=1e-4 if name.endswith("rw") else 1e-9, rtol=1e-6)


@every_model
def test_a_batch_is_its_graphs_one_by_one(name: str, karate: Any) -> None:
    model = make(name, **steps(name)).double().eval()
    generator = torch.Generator().manual_seed(2)
    ring = torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9])
    graphs = [
        (karate.x.double(), karate.edge_index),
        (0.3 * torch.randn(9, IN, generator=generator, dtype=torch.float64), torch.cat([ring, ring.flip(0)], 1)),
    ]
    with torch.no_grad():
        alone = torch.cat([model(x, edges) for x, edges in graphs])
        x = torch.cat([x for x, _ in graphs])
        edges = torch.cat([graphs[0][1], graphs[1][1] + 34], 1)
        batch = torch.tensor([0] * 34 + [1] * 9)
        together = model(x, edges, batch=batch)
    torch.testing.assert_close(together, alone, atol=1e-5 if name.endswith("rw") else 1e-10, rtol=1e-6)


@every_model
def test_saved_and_loaded(name: str, karate: Any, tmp_path: Path) -> None:
    model = make(name)
    if isinstance(model, nn.GRANDPlusPlus):
        model.set_sources(karate.train_mask)
    forward(model, karate)  # moves running statistics
    model.eval()
    model.save(tmp_path / "model.safetensors")
    loaded = nn.load(tmp_path / "model.safetensors")
    assert type(loaded) is type(model)
    assert loaded.config == model.config
    assert not loaded.training
    for option, value in nn.info(name).options.items():
        assert loaded.config[option] == value
    with torch.no_grad():
        assert torch.equal(forward(loaded, karate), forward(model, karate))
    assert torch.equal(forward(copy.deepcopy(model), karate), forward(model, karate))


@every_model
def test_loss_falls(name: str, karate: Any) -> None:
    known = nn.info(name).continuous or name not in ("sgc", "dgc")
    model = make(name, input_dropout=0.0, **({"dropout": 0.0} if known else {}), **steps(name))
    if name == "gat":
        model = make(name, input_dropout=0.0, dropout=0.0, attention_dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(model, karate), karate.y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.9 * losses[0], losses


def _high_water() -> int:
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


@every_model
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure memory")
def test_depth_64_in_bounded_memory(name: str) -> None:
    n = 500
    torch.manual_seed(0)
    edges = barabasi_albert_graph(n, 3)
    x = 0.1 * torch.rand(n, IN)
    options = {"time": 64.0, "method": "euler"} if nn.info(name).continuous else {"num_layers": 64}
    model = make(name, **options)
    Path("/proc/self/clear_refs").write_text("5")
    before = _high_water()
    scores = model(x, edges)
    scores.square().mean().backward()
    # The solver may keep 256 MB (a rewired graph fills half of that here).
    assert _high_water() - before < (300_000 if name.endswith("rw") else 120_000)
    if name != "gread-f":  # whose entries below zero run away to minus infinity
        assert torch.isfinite(scores).all()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@every_model
def test_trajectory(name: str, karate: Any) -> None:
    model = make(name, **steps(name)).eval()
    with torch.no_grad():
        if nn.info(name).continuous:
            states = model.trajectory(karate.x, karate.edge_index, [2.0, 0.0, 1.0, 3.0])
            assert states.shape == (4, 34, HIDDEN)
            assert torch.isfinite(states).all()
            torch.testing.assert_close(model.decoder(states[0]), forward(model, karate), atol=1e-5, rtol=1e-4)
            assert torch.equal(states[1], model.trajectory(karate.x, karate.edge_index, [0.0])[0])
            with pytest.raises(InputError, match="has node 34"):
                model.trajectory(karate.x, karate.edge_index + 1, [0.0])
            return
        depth = model.config["num_layers"]
        if name in ("sgc", "dgc"):
            states = model.trajectory(karate.x, karate.edge_index, [0, 1, depth])
            assert states.shape == (3, 34, IN)
            torch.testing.assert_close(states[0], karate.x)
            torch.testing.assert_close(model.linear(states[2]), forward(model, karate), atol=1e-5, rtol=1e-4)
            return
        deep = make(name, num_layers=4).eval()
        if deep.milestones:  # an encoder, layers and a decoder: tests/nn/test_rivals.py holds them against PyG's
            states = deep.trajectory(karate.x, karate.edge_index, [3, 1, 4])
            assert states.shape[:2] == (3, 34)
            assert torch.isfinite(states).all()
            return
        assert deep.trajectory(karate.x, karate.edge_index, [3, 1]).shape == (2, 34, HIDDEN)
        torch.testing.assert_close(deep.trajectory(karate.x, karate.edge_index, [0])[0], karate.x)
        assert torch.equal(deep.trajectory(karate.x, karate.edge_index, [4.0])[0], forward(deep, karate))
        with pytest.raises(InputError, match="different widths"):
            deep.trajectory(karate.x, karate.edge_index, [1, 4])
        for times in ([5], [-1], [1.5], []):
            with pytest.raises(InputError, match="from 0 to 4"):
                deep.trajectory(karate.x, karate.edge_index, times)


@every_model
def test_learned_graphs(name: str, karate: Any) -> None:
    graphs = make(name).eval().graphs(karate.x, karate.edge_index)
    learned = ("bimp", "grand", "kuramoto", "graphcon-tran", "gread", "acmp", "gat")
    if not name.startswith(learned) or name == "gat-res":
        assert graphs is None
        return
    communication, options = graphs
    assert communication.layout == torch.sparse_csr
    assert communication.shape == (34, 34)
    torch.testing.assert_close(communication.to_dense().sum(1), torch.ones(34))
    assert (options is None) == (not name.startswith("bimp"))


@every_model
def test_edge_weights(name: str, karate: Any) -> None:
    model = make(name).eval()
    edges = karate.edge_index
    with torch.no_grad():
        if isinstance(model, nn.GREAD):
            model.strength.logit.fill_(-1.0)  # the filter bank starts at alpha = beta, where the graph cancels out
        plain = model(karate.x, edges)
        torch.testing.assert_close(model(karate.x, edges, torch.ones(edges.shape[1])), plain, atol=1e-5, rtol=1e-4)
        weight = 0.2 + torch.rand(edges.shape[1], generator=torch.Generator().manual_seed(4))
        changed = (model(karate.x, edges, weight) - plain).abs().max()
    assert (float(changed) == 0.0) if name == "mlp" else (float(changed) > 1e-6)
    with pytest.raises(InputError, match="positive"):
        model(karate.x, edges, -torch.ones(edges.shape[1]))
    with pytest.raises(InputError, match="one weight per edge"):
        model(karate.x, edges, torch.ones(3))


@every_model
def test_sparse_features_are_dense_features(name: str, karate: Any) -> None:
    from dissensus.graph import SparseFeatures

    model = make(name).eval()
    x = karate.x * (torch.rand(34, IN, generator=torch.Generator().manual_seed(5)) < 0.5)
    with torch.no_grad():
        torch.testing.assert_close(
            model(SparseFeatures.from_dense(x), karate.edge_index), model(x, karate.edge_index), atol=1e-5, rtol=1e-4
        )


@every_model
def test_repr_names_class_sizes_and_what_was_chosen(name: str) -> None:
    model = make(name)
    assert repr(model).startswith(f"{type(model).__name__}({IN}, {HIDDEN}, {OUT}")
    for option, value in nn.info(name).options.items():
        if value not in ("f", "gcn"):  # the defaults
            assert f"{option}={value!r}" in repr(model)


@every_model
def test_unknown_options_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"unknown option of {re.escape(name)} 'input_dropuot'.*did you mean"):
        make(name, input_dropuot=0.1)
    with pytest.raises(TypeError, match="input_dropuot"):
        type(make(name))(IN, HIDDEN, OUT, input_dropuot=0.1)
    for option, value in nn.info(name).options.items():
        with pytest.raises(InputError, match="choose another model"):
            make(name, **{option: (not value) if isinstance(value, bool) else "none"})


@every_model
def test_bad_sizes_and_rates_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="in_channels"):
        nn.create(name, in_channels=0, hidden_channels=HIDDEN, out_channels=OUT)
    with pytest.raises(InputError, match="input_dropout"):
        make(name, input_dropout=1.0)
    with pytest.raises(InputError, match=r"time|num_layers"):
        make(name, **({"time": -1.0} if nn.info(name).continuous else {"num_layers": 0}))


@every_model
def test_graphs_of_no_edges_and_of_one_node(name: str) -> None:
    model = make(name).eval()
    with torch.no_grad():
        for n in (1, 3):
            scores = model(0.1 * torch.ones(n, IN), torch.empty(2, 0, dtype=torch.int64))
            assert scores.shape == (n, OUT)
            assert torch.isfinite(scores).all()


@each([name for name in NAMES if nn.info(name).continuous])
def test_a_training_pass_updates_the_mesh_of_the_solver(name: str, karate: Any, tmp_path: Path) -> None:
    model = make(name, method="dopri5", dropout=0.0, input_dropout=0.0, rtol=1e-6, atol=1e-6)
    before = model.integrate(karate.x, karate.edge_index)
    with torch.no_grad():
        forward(model, karate)
    forward(model.eval(), karate)
    assert model.mesh == ()
    scores = forward(model.train(), karate)
    model.eval()
    after = model.integrate(karate.x, karate.edge_index)
    assert after.times[1] == pytest.approx(model.mesh[0])
    assert after.stats.evaluations < before.stats.evaluations
    learned = forward(model, karate)
    torch.testing.assert_close(learned, scores, rtol=0, atol=1e-3)

    # It is part of the state, bit for bit, and evaluation does not change it.
    model.save(tmp_path / "model.safetensors")
    loaded = nn.load(tmp_path / "model.safetensors")
    assert loaded.mesh == copy.deepcopy(model).mesh == model.mesh
    assert torch.equal(forward(loaded, karate), learned)
    forward(model, karate)
    assert loaded.mesh == model.mesh
    model.reset_parameters()
    assert model.mesh == ()


LEARNED = (GCNII, APPNP, GPRGNN, JKNet, ADGN, G2, ResidualModel, FeaturePropagation)


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.slow
def test_every_rival_trains_saves_and_shows_its_layers(kind: type, ring_graph: Data, tmp_path) -> None:
    torch.manual_seed(0)
    model = kind(5, 8, 3, num_layers=3, dropout=0.0, input_dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ring_graph.x, ring_graph.edge_index), ring_graph.y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.9 * losses[0]
    assert all(p.grad is not None for p in model.parameters())
    states = model.eval().trajectory(ring_graph.x, ring_graph.edge_index, [1, 2])
    assert states.shape[:2] == (2, 12)
    model.save(tmp_path / "model.safetensors")
    again = kind.load(tmp_path / "model.safetensors")
    assert close(again(ring_graph.x, ring_graph.edge_index), model(ring_graph.x, ring_graph.edge_index))
