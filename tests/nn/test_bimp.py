import copy
import math
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from dissensus import graph, runtime
from dissensus.dynamics import saturation
from dissensus.dynamics._saturation import SATURATIONS
from dissensus.errors import InputError, StepSizeWarning
from dissensus.graph import SparseFeatures, _build
from dissensus.kernels import _sparse
from dissensus.nn import BIMP

IN, HIDDEN, OUT = 6, 4, 3
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 1], [1, 2, 3, 4, 0, 2, 0, 0]])


def features(n: int = 5, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, IN, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def make(seed: int = 0, dtype: torch.dtype = torch.float64, **options: Any) -> BIMP:
    torch.manual_seed(seed)
    given = {"heads": 2, "attention_channels": 4, "dropout": 0.0, "input_dropout": 0.0, "own_score": 1.0, "time": 2.0}
    model = BIMP(IN, HIDDEN, OUT, **given | options).to(dtype)
    with torch.no_grad():  # away from uniform attention, so that the graphs matter
        for parameter in model.communication.parameters():
            parameter.normal_()
    return model.eval()  # in training mode the solver's mesh moves from pass to pass


def gradients(model: BIMP, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True))


def literal(model: BIMP, x: Tensor, edge_index: Tensor, steps: int) -> Tensor:
    """The network as it is written, on dense matrices, by Euler's method."""
    x0 = model.encoder.linear(x)
    x_t, h = x0, model.time / steps
    s, d, alpha = saturation(model.saturation), model.damping, model.self_reinforcement
    u = d / (alpha + 3.0)
    for _ in range(steps):
        of = x_t if model.adaptive else x0
        pattern = graph.build(edge_index, x.shape[0]).pattern
        a_a = torch.zeros(x.shape[0], x.shape[0], dtype=x.dtype)
        a_a = a_a.index_put((pattern.row.long(), pattern.col.long()), model.communication(of, pattern))
        a_o = model.options(of)
        a_o = a_o if isinstance(a_o, Tensor) else torch.eye(HIDDEN, dtype=x.dtype)
        inside = alpha * x_t + a_a @ x_t + x_t @ a_o.T + a_a @ x_t @ a_o.T
        source = x0.detach() if model.detach_source else x0
        x_t = x_t + h * (-d * x_t + s(u * inside) + source)
    return model.decoder.linear(x_t)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("detach_source", [False, True])
@pytest.mark.parametrize("option_attention", ["gram", "node", "identity"])
def test_network_and_gradients_equal_the_literal_form(
    adaptive: bool, detach_source: bool, option_attention: str
) -> None:
    model = make(
        adaptive=adaptive,
        detach_source=detach_source,
        option_attention=option_attention,
        num_nodes=5,
        damping=0.8,
        self_reinforcement=0.6,
        method="euler",
        step_size=0.5,
    )
    x = features()
    ours, theirs = model(x, EDGES), literal(model, x, EDGES, 4)
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)
    weight = torch.randn(5, OUT, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    pairs = zip(gradients(model, (ours * weight).sum()), gradients(model, (theirs * weight).sum()), strict=True)
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", SATURATIONS)
def test_every_saturation(name: str) -> None:
    model = make(saturation=name, method="euler", step_size=0.5)
    torch.testing.assert_close(model(features(), EDGES), literal(model, features(), EDGES, 4), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("gradient", ["autograd", "adjoint"])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.slow
def test_gradient_kinds_agree(gradient: str, adaptive: bool) -> None:
    results = []
    for kind in ("discrete", gradient):
        model = make(gradient=kind, adaptive=adaptive, rtol=1e-8, atol=1e-8)
        results.append(gradients(model, model(features(), EDGES).square().sum()))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_every_parameter_and_the_features_get_a_gradient(encoder: str) -> None:
    model = make(encoder=encoder, decoder=encoder, attention="exp_kernel")
    x = features().requires_grad_()
    model(x, EDGES).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())
    assert x.grad.abs().max() > 0


def test_relu_decoder_sees_positive_opinions_alone() -> None:
    model, x = make(decoder="relu"), features()
    state = model.integrate(x, EDGES).state
    torch.testing.assert_close(model(x, EDGES), model.decoder.linear(state.clamp(min=0.0)))
    assert (state < 0).any()


def test_gradient_of_the_features() -> None:
    model = make(method="rk4", step_size=0.5)
    assert torch.autograd.gradcheck(lambda x: model(x, EDGES), (features().requires_grad_(),), fast_mode=True)


def test_edge_weights_get_a_gradient() -> None:
    model = make()
    weight = torch.rand(EDGES.shape[1], dtype=torch.float64) + 0.5
    assert torch.autograd.gradcheck(lambda w: model(features(), EDGES, w), (weight.requires_grad_(),), fast_mode=True)


def test_edge_weights_of_a_directed_graph() -> None:
    # A tiny weight is almost no edge; the scale of all weights into a node does not matter.
    model, x = make(self_loops=False), features()
    weight = torch.ones(EDGES.shape[1], dtype=torch.float64)
    cut = weight.clone()
    cut[5] = 1e-9
    without = EDGES[:, [0, 1, 2, 3, 4, 6, 7]]
    torch.testing.assert_close(model(x, EDGES, cut), model(x, without), rtol=0, atol=1e-7)
    torch.testing.assert_close(model(x, EDGES, 5.0 * weight), model(x, EDGES))
    assert (model(x, EDGES) - model(x, without)).abs().max() > 1e-4


@pytest.mark.parametrize("self_loops", [False, True])
def test_learned_graphs_are_right_stochastic(self_loops: bool) -> None:
    for kind in ("gram", "node", "identity"):
        model = make(option_attention=kind, num_nodes=7, self_loops=self_loops)
        a_a, a_o = model.graphs(features(7), EDGES)
        assert a_a.layout == torch.sparse_csr
        dense = a_a.to_dense()
        torch.testing.assert_close(dense.sum(1), torch.ones(7, dtype=torch.float64))
        torch.testing.assert_close(a_o.sum(1), torch.ones(HIDDEN, dtype=torch.float64))
        identity = torch.eye(7, dtype=torch.float64), torch.eye(HIDDEN, dtype=torch.float64)
        effective = torch.kron(a_o + identity[1], dense + identity[0])
        assert torch.linalg.eigvals(effective).real.max().item() == pytest.approx(4.0)
        # Row i holds what i listens to; nodes 5 and 6 hear nobody but themselves.
        expected = torch.zeros(7, 7, dtype=torch.bool)
        expected[EDGES[1], EDGES[0]] = True
        expected |= torch.diag(torch.tensor([self_loops] * 5 + [True] * 2))
        assert torch.equal(dense > 0, expected)
        assert not a_o.requires_grad


def test_attention_strength_is_critical() -> None:
    assert make(damping=0.7, self_reinforcement=2.0).attention_strength == pytest.approx(0.7 / 5.0)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.slow
def test_permutation_equivariance_with_gram_and_its_failure_with_node(adaptive: bool) -> None:
    x, order = features(), torch.tensor([3, 0, 4, 1, 2])
    moved = torch.argsort(order)[EDGES]
    for kind, equal in (("gram", True), ("identity", True), ("node", False)):
        model = make(option_attention=kind, num_nodes=5, adaptive=adaptive, rtol=1e-9, atol=1e-9)
        difference = (model(x[order], moved) - model(x, EDGES)[order]).abs().max().item()
        assert (difference < 1e-7) == equal, (kind, difference)
        assert difference < 1e-7 or difference > 1e-4


@pytest.mark.parametrize("option_attention", ["gram", "identity"])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.slow
def test_batch_is_graphs_one_by_one(option_attention: str, adaptive: bool) -> None:
    graphs = [
        Data(x=features(5, 1), edge_index=EDGES),
        Data(x=features(1, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64)),
        Data(x=features(3, 3), edge_index=torch.tensor([[0, 0, 2], [1, 1, 2]])),
    ]
    batch = Batch.from_data_list(graphs)
    model = make(option_attention=option_attention, adaptive=adaptive, method="rk4", step_size=0.25)
    together = model(batch.x, batch.edge_index, None, batch.batch)
    alone = torch.cat([model(g.x, g.edge_index) for g in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-12)
    for a, b in zip(gradients(model, together.square().sum()), gradients(model, alone.square().sum()), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
    states = model.trajectory(batch.x, batch.edge_index, [0.5, 2.0], batch=batch.batch)
    torch.testing.assert_close(states[:, :5], model.trajectory(graphs[0].x, EDGES, [0.5, 2.0]))


def test_batch_with_a_graph_without_nodes() -> None:
    graphs = [Data(x=features(n, n), edge_index=torch.zeros(2, 0, dtype=torch.int64)) for n in (0, 2, 0, 3, 0)]
    batch = Batch.from_data_list(graphs)
    model = make(method="euler", step_size=0.5).train()
    together = model(batch.x, batch.edge_index, None, batch.batch)
    together.sum().backward()
    torch.testing.assert_close(together, torch.cat([model(g.x, g.edge_index) for g in graphs]))


def test_a_batch_of_one_graph_is_that_graph() -> None:
    model = make()
    torch.testing.assert_close(
        model(features(), EDGES, None, torch.zeros(5, dtype=torch.int64)), model(features(), EDGES)
    )


def test_a_small_graph_changes_nothing_for_another_in_its_batch() -> None:
    # Not so with one option matrix for the whole batch.
    model = make(method="rk4", step_size=0.25)
    other = torch.cat([features(), 100.0 * features(2, 9)])
    batch = torch.tensor([0] * 5 + [1] * 2)
    torch.testing.assert_close(model(other, EDGES, None, batch)[:5], model(features(), EDGES))
    assert (model(other, EDGES)[:5] - model(features(), EDGES)).abs().max() > 1e-3


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    n = draw(st.integers(0, 6))
    node = st.integers(0, max(n - 1, 0))
    pairs = draw(st.lists(st.tuples(node, node), max_size=15 if n else 0))
    edge_index = torch.tensor(pairs, dtype=draw(st.sampled_from([torch.int32, torch.int64]))).view(-1, 2).t()
    return features(n, draw(st.integers(0, 3))), edge_index


@given(graphs(), st.booleans(), st.booleans(), st.sampled_from(["dopri5", "euler"]))
@settings(max_examples=40)
@pytest.mark.slow
def test_any_graph(given_graph: tuple[Tensor, Tensor], adaptive: bool, self_loops: bool, method: str) -> None:
    x, edge_index = given_graph
    model = make(adaptive=adaptive, self_loops=self_loops, method=method, step_size=0.5)
    out = model(x, edge_index)
    assert out.shape == (x.shape[0], OUT)
    # Order and repetition of edges, and the loops that are added anyway, do not matter.
    nodes = torch.arange(x.shape[0], dtype=edge_index.dtype)
    more = [edge_index.flip(1), edge_index] + ([torch.stack([nodes, nodes])] if self_loops else [])
    torch.testing.assert_close(model(x, torch.cat(more, 1)), out)
    if method == "euler" and self_loops:
        torch.testing.assert_close(out, literal(model, x, edge_index, 4), rtol=1e-9, atol=1e-10)
    out.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_sparse_features_equal_dense_features() -> None:
    x = torch.zeros(5, IN, dtype=torch.float64)
    x[0, 1], x[3, 2] = 1.0, -2.0
    model = make(method="rk4", step_size=0.25)
    dense = model(x.clone().requires_grad_(), EDGES)  # what needs a gradient stays dense
    for sparse in (x, x.to_sparse(), x.to_sparse_csr(), SparseFeatures.from_dense(x)):
        out = model(sparse, EDGES)
        torch.testing.assert_close(out, dense)
        for a, b in zip(gradients(model, out.sum()), gradients(model, model(x, EDGES).sum()), strict=True):
            torch.testing.assert_close(a, b)


def test_without_mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for mkl in (_sparse._MKL, False):
        monkeypatch.setattr(_sparse, "_MKL", mkl)
        model = make()
        out = model(features(), EDGES)
        results.append([out.detach(), *gradients(model, out.square().sum())])
    torch.testing.assert_close(*results)


def test_repeated_forwards_do_not_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.Cache.clear_all()
    model, x = make(), features()
    first = model(x, EDGES)
    with monkeypatch.context() as patch:
        patch.setattr(_build, "_build", lambda *_: pytest.fail("built again"))
        assert torch.equal(model(x, EDGES), first)
        assert torch.equal(model(x, EDGES.clone()), first)


@pytest.mark.parametrize("through", ["torch", "data", "numpy"])
def test_a_graph_changed_in_place_is_seen(through: str) -> None:
    model, x, edges = make(), features(), EDGES.clone()
    before = model(x, edges)
    {"torch": edges, "data": edges.data, "numpy": edges.numpy()}[through][0, 0] = 3
    after = model(x, edges)
    fresh = EDGES.clone()
    fresh[0, 0] = 3
    assert torch.equal(after, model(x, fresh))
    assert not torch.equal(after, before)


def test_inference_then_training() -> None:
    runtime.Cache.clear_all()
    for x in (features(), torch.eye(5, IN, dtype=torch.float64) * torch.tensor([[1.0], [0.0], [0.0], [0.0], [0.0]])):
        model = make()
        with torch.inference_mode():
            before = model(x, EDGES)
        out = model(x, EDGES)
        out.sum().backward()
        torch.testing.assert_close(out, before)


def test_float32_and_int32() -> None:
    single, double = make(dtype=torch.float32), make()
    single.load_state_dict({k: v.float() for k, v in double.state_dict().items()})
    out = single(features(dtype=torch.float32), EDGES.int())
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), double(features(), EDGES), rtol=1e-2, atol=1e-3)


def test_autocast_computes_in_full_precision() -> None:
    model, x = make(dtype=torch.float32), features(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        state = model.integrate(x, EDGES).state
        loss = model(x, EDGES).float().sum()
    assert state.dtype == torch.float32
    torch.testing.assert_close(state, model.integrate(x, EDGES).state)
    loss.backward()


# Torch's own tracing reads .grad of what is not a leaf.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.slow
def test_torch_compile(adaptive: bool) -> None:
    torch.compiler.reset()
    model, x = make(adaptive=adaptive, dtype=torch.float32), features(dtype=torch.float32)
    compiled = torch.compile(model, backend="eager")
    out = compiled(x, EDGES)
    torch.testing.assert_close(out, model(x, EDGES))
    out.sum().backward()
    assert model.encoder.linear.weight.grad is not None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_equals_cpu() -> None:
    results = []
    for device in ("cpu", "cuda"):
        model = make().to(device)
        out = model(features().to(device), EDGES.to(device))
        results.append([out.detach().cpu(), *(g.cpu() for g in gradients(model, out.square().sum()))])
    torch.testing.assert_close(*results)


def test_deep_copy_is_independent() -> None:
    model = make()
    twin = copy.deepcopy(model)
    assert twin.config == model.config
    assert torch.equal(twin(features(), EDGES), model(features(), EDGES))
    torch.nn.init.zeros_(twin.decoder.linear.weight)
    assert model.decoder.linear.weight.abs().max() > 0


def test_dropout_acts_in_training_only() -> None:
    model, x = make(dropout=0.5, input_dropout=0.5).train(), features()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))
    model.eval()
    assert torch.equal(model(x, EDGES), model(x, EDGES))


def test_depth_does_not_explode_or_kill_gradients() -> None:
    norms = []
    for time in (8.0, 128.0):
        model = make(time=time, method="euler", step_size=1.0)
        x = features().requires_grad_()
        model(x, EDGES).sum().backward()
        norms.append(x.grad.abs().max().item())
    assert 0.1 < norms[1] / norms[0] < 10.0


def test_trajectory() -> None:
    model, x = make(rtol=1e-8, atol=1e-8), features()
    times = [2.0, 0.0, 3.5, 0.5]
    states = model.trajectory(x, EDGES, times)
    assert states.shape == (4, 5, HIDDEN)
    torch.testing.assert_close(model.decoder(states[0]), model(x, EDGES), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(states[1], model.encoder(x))
    torch.testing.assert_close(states[2], make(time=3.5, rtol=1e-8, atol=1e-8).integrate(x, EDGES).state)
    torch.testing.assert_close(model.trajectory(x, EDGES, [0, 0]), states[[1, 1]])
    assert states.requires_grad
    for wrong in ([], [-1.0]):
        with pytest.raises(InputError, match="times"):
            model.trajectory(x, EDGES, wrong)
    for wrong in ([math.nan], [math.inf]):
        with pytest.raises(InputError):
            model.trajectory(x, EDGES, wrong)


def test_options_reach_the_solver() -> None:
    model = make(method="rk4", step_size=0.5)
    seen: list[float] = []
    solution = model.integrate(features(), EDGES, callback=lambda t, _: seen.append(t), memory=0)
    assert seen == [0.5, 1.0, 1.5, 2.0]
    assert solution.stats.evaluations == 16
    loose, tight = (make(rtol=tol, atol=tol).integrate(features(), EDGES).stats.accepted for tol in (1e-2, 1e-8))
    assert tight > loose
    model = make(gradient="adjoint", adjoint_method="euler", adjoint_step_size=0.1)
    solution = model.integrate(features(), EDGES)
    solution.state.sum().backward()
    assert solution.stats.backward_evaluations == 2 * 20


def test_large_euler_steps_warn() -> None:
    for adaptive in (False, True):
        model = make(method="euler", step_size=1.0, damping=2.0, adaptive=adaptive)
        with pytest.warns(StepSizeWarning, match=r"step_size <= 0.5"):
            model(features(), EDGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(method="euler", step_size=0.5, damping=2.0)(features(), EDGES)


BAD_OPTIONS = [
    ({"damping": 0.0}, "damping.*positive"),
    ({"damping": -1.0}, "damping.*positive"),
    ({"damping": math.nan}, "damping.*positive"),
    ({"self_reinforcement": -0.1}, "self_reinforcement.*negative"),
    ({"time": 0.0}, "time.*positive"),
    ({"time": -1.0}, "time.*positive"),
    ({"time": math.inf}, "finite"),
    ({"step_size": 0.0}, "step_size.*positive"),
    ({"heads": 3}, "heads = 3 does not divide attention_channels = 4: choose attention_channels = 3"),
    ({"option_attention": "node"}, "num_nodes.*gram"),
    ({"attention": "scaled"}, "unknown attention 'scaled': did you mean 'scaled_dot'"),
    ({"normalizer": "soft"}, "unknown normalizer"),
    ({"option_attention": "grams"}, "did you mean 'gram'"),
    ({"saturation": "tanhh"}, "did you mean 'tanh'"),
    ({"method": "dopri55"}, "did you mean 'dopri5'"),
    ({"gradient": "adjoin"}, "did you mean 'adjoint'"),
    ({"adjoint_method": "rk5"}, "unknown method 'rk5'"),
    ({"adjoint_step_size": -1.0}, "step_size"),
    ({"encoder": "lineer"}, "unknown encoder 'lineer': did you mean 'linear'"),
    ({"decoder": "mpl"}, "unknown decoder"),
    ({"rtol": -1e-3}, "negative"),
    ({"dropout": 1.0}, r"dropout is 1.0.*\[0, 1\)"),
    ({"input_dropout": -0.1}, "input_dropout"),
]


@pytest.mark.parametrize(("wrong", "cure"), BAD_OPTIONS)
def test_bad_options(wrong: dict[str, Any], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        make(**wrong)


@pytest.mark.parametrize("sizes", [(0, 4, 3), (6, 0, 3), (6, 4, 0), (6, 4, -1), (6.0, 4, 3)])
def test_bad_sizes(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match=r"_channels is .*at least 1"):
        BIMP(*sizes)


def nan_features() -> Tensor:
    x = features()
    x[2, 3] = math.nan
    return x


BAD_INPUT = [
    ((nan_features(), EDGES), "node 2, feature 3.*nan_to_num"),
    ((features() / 0.0, EDGES), "NaN or infinite"),
    ((features()[:, :4], EDGES), "4 features.*in_channels=6"),
    ((features()[0], EDGES), r"\[nodes, features\]"),
    ((features().long(), EDGES), r"x\.float\(\)"),
    ((features().float(), EDGES), r"x has dtype torch.float32.*x\.to\(torch.float64\)"),
    ((features().float().relu().to_sparse(), EDGES), r"x\.to\(torch.float64\)"),
    ((features().numpy(), EDGES), "torch tensor"),
    ((features(), EDGES + 1), "has node 5, but there are 5 nodes"),
    ((features(), EDGES - 1), "has node -1"),
    ((features(), EDGES.t()), "transpose"),
    ((features(), EDGES.float()), r"edge_index\.long\(\)"),
    ((features(), EDGES.tolist()), "torch tensor"),
    ((features(), EDGES, torch.ones(3, dtype=torch.float64)), "one weight per edge"),
    ((features(), EDGES, torch.zeros(8, dtype=torch.float64)), "positive and finite"),
    ((features(), EDGES, torch.full((8,), math.nan, dtype=torch.float64)), "positive and finite"),
    ((features(), EDGES, torch.ones(8, dtype=torch.int64)), r"edge_weight\.float\(\)"),
    ((features(), EDGES, [1.0] * 8), "edge_weight.*torch tensor"),
    ((features(), EDGES, None, torch.tensor([0, 0, 1, 0, 1])), "ascending"),
    ((features(), EDGES, None, torch.tensor([0, 0, 1])), "each of the 5 nodes"),
    ((features(), EDGES, None, torch.zeros(5)), "as integers"),
    ((features(), EDGES, None, torch.tensor([-1, 0, 0, 1, 1])), "from 0"),
    ((features(), EDGES, None, [0, 0, 0, 1, 1]), "batch"),
]


@pytest.mark.parametrize(("arguments", "cure"), BAD_INPUT)
def test_bad_input_is_refused_before_any_work(arguments: tuple[Any, ...], cure: str) -> None:
    model = make()
    model.encoder.register_forward_pre_hook(lambda *_: pytest.fail("encoded already"))
    with pytest.raises(InputError, match=cure):
        model(*arguments)


@pytest.mark.parametrize("batch", [None, torch.tensor([0, 0, 0, 1, 1])])
def test_node_attention_on_another_graph_is_refused_before_any_work(batch: Tensor | None) -> None:
    model = make(option_attention="node", num_nodes=5 if batch is not None else 4)
    model.encoder.register_forward_pre_hook(lambda *_: pytest.fail("encoded already"))
    with pytest.raises(InputError, match="use option_attention='gram'"):
        model(features(), EDGES, None, batch)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(InputError, match=r"model\.float\(\)"):
        make(dtype=dtype)(features(dtype=dtype), EDGES)
