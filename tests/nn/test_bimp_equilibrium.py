"""Infinite depth: BIMP decoded at its equilibrium."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import KarateClub

from dissensus import measure, nn, solve
from dissensus.dynamics import Opinion
from dissensus.errors import InputError, SolverError
from dissensus.graph import build
from dissensus.nn import BIMP
from dissensus.train import Config

IN, HIDDEN, OUT = 6, 4, 3
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 1], [1, 2, 3, 4, 0, 2, 0, 0]])


def features(n: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(n, IN, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(seed: int = 0, **options: Any) -> BIMP:
    torch.manual_seed(seed)
    given = {"heads": 2, "attention_channels": 4, "dropout": 0.0, "input_dropout": 0.0, "own_score": 1.0}
    given |= {"depth": "equilibrium", "tol": 1e-11}
    model = BIMP(IN, HIDDEN, OUT, **given | options).double()
    with torch.no_grad():  # away from uniform attention, so that the graphs matter
        for parameter in model.communication.parameters():
            parameter.normal_()
    return model


@pytest.mark.parametrize("iteration", ["anderson", "picard"])
@pytest.mark.parametrize("attention_ratio", [0.8, 1.0])
@pytest.mark.slow
def test_agrees_with_a_very_long_integration(iteration: str, attention_ratio: float) -> None:
    model = make(
        iteration=iteration,
        attention_ratio=attention_ratio,
        damping=0.7,
        self_reinforcement=1.3,
        rtol=1e-8,
        atol=1e-10,
    )
    x = features()
    scores = model(x, EDGES)
    longer = model.integrate(x, EDGES, time=1000.0).state
    torch.testing.assert_close(scores, model.decoder(longer), rtol=0, atol=1e-5)
    # At the depth of one T it is another state: the equilibrium is not just the transient's end.
    assert (scores - model.decoder(model.integrate(x, EDGES, time=1.0).state)).abs().max() > 1e-2


def test_gradient_agrees_with_a_very_long_integration() -> None:
    x = features()
    implicit, through_time = make(), make(depth="time", time=400.0, method="euler", step_size=1.0)
    grads = [
        torch.autograd.grad(model(x, EDGES).square().sum(), list(model.parameters()), materialize_grads=True)
        for model in (implicit, through_time)
    ]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("option_attention", ["gram", "identity"])
def test_gradcheck_of_the_whole_model(option_attention: str) -> None:
    model = make(option_attention=option_attention, tol=1e-13)
    names = [name for name, _ in model.named_parameters()]

    def scores(x: Tensor, weight: Tensor, *parameters: Tensor) -> Tensor:
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(model, given, (x, EDGES, weight))

    weight = (torch.rand(EDGES.shape[1], dtype=torch.float64) + 0.5).requires_grad_()
    parameters = [p.detach().clone().requires_grad_() for p in model.parameters()]
    assert torch.autograd.gradcheck(scores, (features().requires_grad_(), weight, *parameters), fast_mode=True)


def test_every_parameter_gets_a_gradient() -> None:
    model = make()
    model(features(), EDGES).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


@given(st.integers(0, 10**6), st.floats(0.3, 1.0), st.floats(0.2, 3.0), st.floats(0.0, 3.0))
@pytest.mark.slow
def test_unique_from_any_start(seed: int, ratio: float, damping: float, alpha: float) -> None:
    model = make(seed, attention_ratio=ratio, damping=damping, self_reinforcement=alpha)
    field, _ = model.problem(features(seed=seed), EDGES, None, None)
    generator = torch.Generator().manual_seed(seed)
    starts = [s * torch.randn(5, HIDDEN, generator=generator, dtype=torch.float64) for s in (0.0, 1.0, 30.0)]
    found = [solve.equilibrium(field, start, tol=1e-12, max_iter=5000).state for start in starts]
    for other in found[1:]:
        torch.testing.assert_close(found[0], other, rtol=0, atol=1e-7)


@pytest.mark.parametrize("ratio", [0.5, 0.9])
def test_ratio_is_the_guaranteed_rate(ratio: float) -> None:
    # Picard's iteration shrinks every distance by the ratio at least, so its residuals, and so their number.
    model = make(attention_ratio=ratio, iteration="picard", tol=1e-9)
    field, start = model.problem(features(), EDGES, None, None)
    residuals = []
    x = start.detach()
    for _ in range(30):
        change = field(0.0, x) / model.damping
        residuals.append(float(change.abs().max()))
        x = x + change
    assert all(b <= ratio * a * (1 + 1e-9) for a, b in pairwise(residuals))
    bound = 2 + math.log(1e-9 / residuals[0]) / math.log(ratio)
    assert model.equilibrium(features(), EDGES).iterations <= bound


@given(st.floats(1e-3, 1.0), st.floats(1e-3, 10.0), st.floats(0.0, 10.0))
def test_attention_is_at_most_critical(ratio: float, damping: float, alpha: float) -> None:
    model = make(attention_ratio=ratio, damping=damping, self_reinforcement=alpha)
    assert 0.0 < model.attention_strength <= damping / (alpha + 3.0) * (1 + 1e-15)
    assert model.attention_strength == pytest.approx(ratio * damping / (alpha + 3.0))


def test_attention_ratio_acts_at_finite_depth_too() -> None:
    options = {"depth": "time", "time": 2.0, "method": "euler", "step_size": 0.5}
    critical, inside, beyond = (make(attention_ratio=r, **options)(features(), EDGES) for r in (1.0, 0.5, 2.0))
    assert (critical - inside).abs().max() > 1e-3
    assert (critical - beyond).abs().max() > 1e-3


@pytest.mark.parametrize("iteration", ["anderson", "picard"])
def test_memory_does_not_depend_on_the_iterations(iteration: str) -> None:
    def kept(tol: float) -> tuple[int, int, int]:
        model, saved = make(tol=tol, iteration=iteration), []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
            found = model.equilibrium(features(), EDGES)
        return len(saved), sum(saved), found.iterations

    (few, size, short), (many, larger, long) = kept(1e-2), kept(1e-12)
    assert long > 2 * short
    assert (few, size) == (many, larger)


def test_adjoint_iterations_leave_the_parameters_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from dissensus.dynamics import _opinion

    accumulated = []
    for owner, name in ((_opinion._Mixing, "add_gradient"), (_opinion.Opinion, "_add_coefficients")):
        original = getattr(owner, name)
        counted = lambda *given, name=name, original=original: accumulated.append(name) or original(*given)  # noqa: E731
        monkeypatch.setattr(owner, name, counted)
    found = make().equilibrium(features(), EDGES)
    found.state.sum().backward()
    assert sorted(accumulated) == ["_add_coefficients", "add_gradient"]
    assert found.stats.backward_evaluations > 5


def test_iterations_and_residual_are_reported() -> None:
    for tol in (1e-3, 1e-9):
        found = make(tol=tol).equilibrium(features(), EDGES)
        assert found.converged
        assert 0.0 <= found.residual <= tol
        assert found.stats.evaluations == found.iterations > 1
        assert found.state.shape == (5, HIDDEN)
    # A model of finite depth can be asked as well.
    torch.testing.assert_close(make(depth="time").equilibrium(features(), EDGES).state, found.state, rtol=0, atol=1e-7)


def test_too_few_iterations_name_the_cure() -> None:
    with pytest.raises(SolverError, match=r"no fixed point after 3 iterations.*Raise max_iter or tol"):
        make(max_iter=3)(features(), EDGES)


def test_trajectory_is_the_transient_to_it() -> None:
    model = make(rtol=1e-8, atol=1e-8)
    states = model.trajectory(features(), EDGES, [0.0, 1.0, 500.0])
    torch.testing.assert_close(
        states, make(depth="time", rtol=1e-8, atol=1e-8).trajectory(features(), EDGES, [0.0, 1.0, 500.0])
    )
    torch.testing.assert_close(states[-1], model.equilibrium(features(), EDGES).state, rtol=0, atol=1e-5)
    assert measure.dirichlet_energy(states[-1], EDGES) > 1e-3  # no consensus at infinite depth


def test_batch_settles_as_its_graphs_do() -> None:
    model = make()
    graphs = [Data(x=features(n, n), edge_index=EDGES) for n in (5, 7)]
    batch = Batch.from_data_list(graphs)
    together = model(batch.x, batch.edge_index, batch=batch.batch)
    apart = torch.cat([model(graph.x, graph.edge_index) for graph in graphs])
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-8)


def test_float32_at_the_default_tolerance() -> None:
    default = BIMP(IN, HIDDEN, OUT).config["tol"]
    model = make(tol=default).float()
    scores = model(features().float(), EDGES)
    scores.square().sum().backward()
    torch.testing.assert_close(scores.double(), make()(features(), EDGES), rtol=0, atol=1e-3)


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = make(attention_ratio=0.9, iteration="picard", max_iter=700)
    model.save(tmp_path / "model.safetensors")
    loaded = nn.load(tmp_path / "model.safetensors")
    assert torch.equal(loaded(features(), EDGES), model(features(), EDGES))
    assert (loaded.depth, loaded.iteration, loaded.tol, loaded.max_iter) == ("equilibrium", "picard", 1e-11, 700)
    assert "depth='equilibrium', iteration='picard'" in repr(loaded)
    assert loaded.attention_strength == model.attention_strength


@pytest.mark.slow
def test_learns_karate() -> None:
    data = KarateClub()[0]
    torch.manual_seed(0)
    model = nn.create("bimp", in_channels=34, hidden_channels=16, out_channels=4, depth="equilibrium", dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        optimizer.zero_grad()
        F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    right = (model.eval()(data.x, data.edge_index).argmax(1) == data.y)[~data.train_mask]
    assert right.double().mean() > 0.7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"depth": "infinite"}, "unknown depth 'infinite'.*Known: time, equilibrium"),
        ({"iteration": "newton"}, "unknown iteration 'newton'.*Known: anderson, picard"),
        ({"attention_ratio": 1.01}, "attention_ratio is 1.01, but above 1 .*give at most 1, or use depth='time'"),
        ({"attention_ratio": 0.0}, "attention_ratio is 0.0: give a positive number"),
        ({"attention_ratio": math.nan, "depth": "time"}, "attention_ratio is nan: give a positive number"),
        ({"tol": 0.0}, "tol is 0.0 and max_iter is 1000: give positive numbers"),
        ({"max_iter": 0}, "max_iter is 0: give positive numbers"),
        ({"adaptive": True}, "adaptive=True .*use adaptive=False .*or depth='time'"),
    ],
)
def test_bad_options_are_refused_when_the_model_is_made(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**wrong)


def test_adaptive_models_have_no_equilibrium() -> None:
    with pytest.raises(InputError, match="adaptive=True"):
        make(depth="time", adaptive=True).equilibrium(features(), EDGES)
    sizes = {"in_channels": IN, "hidden_channels": HIDDEN, "out_channels": OUT}
    with pytest.raises(InputError, match="the model 'bimp'"):
        nn.create("bimp-aa", **sizes, depth="equilibrium")


def test_no_time_to_select() -> None:
    values = {"data": {"name": "karate"}, "model": {"name": "bimp", "depth": "equilibrium"}}
    assert Config.from_dict(values).model.options == {"depth": "equilibrium"}
    with pytest.raises(InputError, match="BIMP has no solver time to select"):
        Config.from_dict(values | {"train": {"select_time": True}}).check()


def opinions_along_a_path(ratio: float, strength: float, self_reinforcement: float = 1.0) -> Tensor:
    """The equilibrium on a path whose first node alone has an input."""
    n = 160
    i = torch.arange(n - 1)
    pattern = build(torch.stack([torch.cat([i, i + 1]), torch.cat([i + 1, i])]), n, self_loops=False).pattern
    source = torch.zeros(n, 1, dtype=torch.float64)
    source[0] = strength
    field = Opinion(
        pattern,
        pattern.row_normalize(torch.ones(pattern.entries, dtype=torch.float64)),
        1.0,
        source,
        damping=1.0,
        attention=ratio / (self_reinforcement + 3.0),
        self_reinforcement=self_reinforcement,
    )
    return solve.equilibrium(field, source, tol=1e-9, max_iter=20_000).state[:, 0]


@pytest.mark.parametrize(("strength", "self_reinforcement"), [(1.0, 1.0), (10.0, 0.0)])
def test_critical_opinions_fade_as_one_over_the_distance(strength: float, self_reinforcement: float) -> None:
    x = opinions_along_a_path(1.0, strength, self_reinforcement)
    slope = float(1.0 / x[40] - 1.0 / x[20]) / 20.0
    assert slope == pytest.approx(math.sqrt((self_reinforcement + 3.0) / 6.0), rel=0.01)


def test_opinions_below_the_critical_attention_fade_exponentially() -> None:
    x = opinions_along_a_path(0.9, 1.0)
    assert float(torch.log(x[5] / x[10])) / 5.0 == pytest.approx(math.acosh((4.0 / 0.9 - 2.0) / 2.0), rel=0.01)


def test_nodes_without_features_only_listen() -> None:
    model = make(encoder_bias=False)
    x = features()
    x[2:] = 0.0
    start = model.trajectory(x, EDGES, [0.0])[0]
    assert not start[2:].any()
    assert start[:2].all()
    heard = model.equilibrium(x, EDGES).state
    assert heard[2:].all()
    assert make().trajectory(x, EDGES, [0.0])[0, 2:].all()


@pytest.mark.slow
@given(ratio=st.floats(0.1, 1.0), seed=st.integers(0, 20))
def test_symmetric_attention_has_one_equilibrium(ratio: float, seed: int) -> None:
    model, x = make(seed, normalizer="symmetric", attention_ratio=ratio, tol=1e-9), features(seed=seed)
    field, start = model.problem(x, EDGES, None, None)
    far = torch.full_like(start, 5.0)
    states = [solve.equilibrium(field, begin, tol=1e-9, max_iter=20_000).state for begin in (start, far)]
    torch.testing.assert_close(*states, rtol=0, atol=1e-5)
