from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from dissensus.dynamics import Opinion, critical_attention, saturation
from dissensus.dynamics._saturation import SATURATIONS
from dissensus.errors import InputError
from dissensus.graph import Pattern, build
from dissensus.kernels import _blocks, _sparse
from dissensus.solve import Adjoint, Autograd, Discrete, Dopri5, Euler, solve, solver_named

N, K = 5, 3  # agents, options


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make_pattern(self_loops: bool = True) -> Pattern:
    edge_index = torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 2, 0]])
    return build(edge_index, N, self_loops=self_loops).pattern


def stochastic(seed: int = 0) -> tuple[Pattern, Tensor, Tensor]:
    """A right-stochastic communication matrix (pattern and values) and a right-stochastic option matrix."""
    pattern = make_pattern()
    return pattern, pattern.row_softmax(normal(pattern.entries, seed=seed)), normal(K, K, seed=seed + 1).softmax(-1)


def stochastic_field(source: Tensor | float, u_share: float = 1.0, d: float = 1.0, alpha: float = 1.0) -> Opinion:
    pattern, values, options = stochastic()
    u = u_share * critical_attention(None, None, d, alpha)
    return Opinion(pattern, values, options, source, damping=d, attention=u, self_reinforcement=alpha)


@pytest.fixture(params=["loops", "no loops", "fallback"])
def pattern(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pattern:
    """With the whole diagonal, without, and without MKL."""
    if request.param == "fallback":
        monkeypatch.setattr(_sparse, "_MKL", False)
    return make_pattern(request.param == "loops")


@pytest.mark.parametrize("name", SATURATIONS)
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
def test_field_equals_the_literal_forms(pattern: Pattern, name: str, alpha: float) -> None:
    values, a_o, x, source = normal(pattern.entries), normal(K, K, seed=1), normal(N, K, seed=2), normal(N, K, seed=3)
    a_a, d, u = pattern.matrix(values).to_dense(), 0.7, 0.4
    field = Opinion(pattern, values, a_o, source, damping=d, attention=u, self_reinforcement=alpha, saturation=name)
    s = saturation(name)
    four_terms = -d * x + s(u * (alpha * x + a_a @ x + x @ a_o.T + a_a @ x @ a_o.T)) + source
    # Row-major vec: vec(A X B') = (A kron B) vec(X).
    agents, options = torch.eye(N, dtype=torch.float64), torch.eye(K, dtype=torch.float64)
    effective = torch.kron(a_a + agents, a_o + options)
    inside = ((alpha - 1.0) * torch.eye(N * K, dtype=torch.float64) + effective) @ x.reshape(-1)
    kronecker = -d * x.reshape(-1) + s(u * inside) + source.reshape(-1)
    torch.testing.assert_close(field(0.0, x), four_terms, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(field(0.0, x).reshape(-1), kronecker, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(field.vjp(0.0, x)[0], four_terms, rtol=1e-12, atol=1e-12)
    out = torch.empty_like(x)
    assert field(0.0, x, out) is out
    torch.testing.assert_close(out, four_terms, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SATURATIONS)
@pytest.mark.parametrize("in_blocks", [True, False])
def test_float32_agrees_with_float64(name: str, in_blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if in_blocks:
        monkeypatch.setattr(_blocks, "_LARGE_BYTES", 0)
        monkeypatch.setattr(_blocks, "_BLOCK_BYTES", 2 * K * 4)  # two rows of float32
    pattern, values, options = stochastic()
    x, source = normal(N, K, seed=2), normal(N, K, seed=3)
    fields = [
        Opinion(pattern, values.to(t), options.to(t), source.to(t), damping=1, attention=0.3, saturation=name)
        for t in (torch.float64, torch.float32)
    ]
    result = fields[1](0.0, x.float(), torch.empty(N, K))
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.double(), fields[0](0.0, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gelu"])
@pytest.mark.parametrize("given_memory", [True, False])
@pytest.mark.parametrize("in_blocks", [True, False])
def test_derivatives_in_float32_agree_with_float64(
    alpha: float, name: str, given_memory: bool, in_blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_blocks:
        monkeypatch.setattr(_blocks, "_LARGE_BYTES", 0)
        monkeypatch.setattr(_blocks, "_BLOCK_BYTES", 2 * K * 4)  # two rows of float32
    pattern, *parameters = stochastic()
    x, g = normal(N, K, seed=2), normal(N, K, seed=4)
    found = []
    for dtype in (torch.float64, torch.float32):
        tensors = [p.to(dtype).requires_grad_() for p in (*parameters, normal(N, K, seed=3))]
        field = Opinion(pattern, *tensors, damping=0.7, attention=0.3, self_reinforcement=alpha, saturation=name)
        for part in (field, field.semilinear):
            grads = [torch.zeros_like(p) for p in field.parameters]
            room = [torch.empty(N, K, dtype=dtype) if given_memory else None for _ in range(2)]
            cotangent = g.to(dtype)
            value, pullback = part.vjp(0.0, x.to(dtype), room[0])
            kept = value.clone()
            by_x = pullback(cotangent, grads, room[1])
            assert (value is room[0], by_x is room[1]) == (given_memory,) * 2
            # What a pullback holds on to outlives it: the second adds the same again.
            again = pullback(cotangent, grads, None)
            alone = pullback(cotangent, [], None)
            assert torch.equal(value, kept)
            assert torch.equal(cotangent, g.to(dtype))
            if part is field:
                found.append([value, by_x, again, alone, *grads])
            else:
                # The kernel of tanh is another in single precision, and so is its gain.
                found.append([field.semilinear.gain * v for v in (by_x, again, alone, *grads[:2])])
    for one, other in zip(found[:2], found[2:], strict=True):
        for exact, single in zip(one, other, strict=True):
            torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("number", [0.0, 1.0, -0.5])
def test_a_number_of_options_is_a_multiple_of_the_identity(number: float) -> None:
    pattern, values, _ = stochastic()
    x = normal(N, K)
    given = {"damping": 1.0, "attention": 0.3, "self_reinforcement": 0.5}
    short = Opinion(pattern, values, number, 0.2, **given)
    long = Opinion(pattern, values, number * torch.eye(K, dtype=torch.float64), torch.full_like(x, 0.2), **given)
    torch.testing.assert_close(short(0.0, x), long(0.0, x))
    g = normal(N, K, seed=5)
    pulled = [f.vjp(0.0, x)[1](g, [torch.zeros_like(p) for p in f.parameters], None) for f in (short, long)]
    torch.testing.assert_close(*pulled)


def test_effective_matrix_of_stochastic_factors_has_leading_eigenvalue_four() -> None:
    for seed in range(5):
        pattern, values, a_o = stochastic(seed)
        a_a = pattern.matrix(values).to_dense()
        torch.testing.assert_close(a_a.sum(1), torch.ones(N, dtype=torch.float64))
        torch.testing.assert_close(a_o.sum(1), torch.ones(K, dtype=torch.float64))
        effective = torch.kron(a_o + torch.eye(K, dtype=torch.float64), a_a + torch.eye(N, dtype=torch.float64))
        eigenvalues = torch.linalg.eigvals(effective)
        assert eigenvalues.real.max().item() == pytest.approx(4.0, abs=1e-12)
        assert eigenvalues.abs().max().item() == pytest.approx(4.0, abs=1e-12)
        torch.testing.assert_close(effective.sum(1), torch.full((N * K,), 4.0, dtype=torch.float64))


def parts(**changed: Any) -> dict[str, Any]:
    given = {
        "values": normal(make_pattern().entries),
        "options": normal(K, K, seed=1),
        "source": normal(N, K, seed=2),
        "damping": 0.7,
        "attention": 0.4,
        "self_reinforcement": 1.5,
    }
    return given | changed


TENSORS: dict[str, dict[str, Any]] = {
    "numbers": {},
    "scalar tensors": {
        "damping": torch.tensor(0.7, dtype=torch.float64),
        "attention": torch.tensor(0.4, dtype=torch.float64),
        "self_reinforcement": torch.tensor(1.5, dtype=torch.float64),
    },
    "by agent": {
        "damping": normal(N, 1, seed=5).abs() + 0.1,
        "attention": normal(N, 1, seed=6),
        "self_reinforcement": normal(N, 1, seed=7).abs(),
    },
    "by option": {
        "damping": normal(K, seed=5).abs() + 0.1,
        "attention": normal(K, seed=6),
        "self_reinforcement": normal(K, seed=7).abs(),
        "source": normal(K, seed=8),
    },
    "by entry": {
        "damping": normal(N, K, seed=5).abs() + 0.1,
        "attention": normal(N, K, seed=6),
        "self_reinforcement": normal(N, K, seed=7).abs(),
        "source": normal(N, 1, seed=8),
    },
    "options a number": {"options": 0.5, "source": 0.1},
    "options by graph": {"options": normal(2, K, K, seed=1)},
}


def check_gradients(pattern: Pattern, given: dict[str, Any], name: str, sizes: tuple[int, ...] = ()) -> None:
    keys = [key for key, value in given.items() if isinstance(value, Tensor)]
    tensors = [given[key].clone().requires_grad_() for key in keys]

    def run(x: Tensor, *tensors: Tensor) -> Tensor:
        field = Opinion(pattern, **given | dict(zip(keys, tensors, strict=True)), saturation=name, sizes=sizes)
        return field.differentiable(0.0, x)

    assert gradcheck(run, (normal(N, K, seed=9).requires_grad_(), *tensors))


@pytest.mark.parametrize("name", SATURATIONS)
@pytest.mark.parametrize("kind", ["numbers", "by entry"])
def test_gradients_of_every_saturation(name: str, kind: str) -> None:
    check_gradients(make_pattern(), parts(**TENSORS[kind]), name)


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("name", ["tanh", "arctan"])
def test_gradients_of_every_parameter(kind: str, name: str, pattern: Pattern) -> None:
    given = parts(**TENSORS[kind]) | {"values": normal(pattern.entries)}
    check_gradients(pattern, given, name, (2, 3) if kind == "options by graph" else ())


@pytest.mark.parametrize("kind", TENSORS)
def test_gradients_of_the_sigmoid_form_of_tanh(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The form that float32 uses, in a precision that can be checked.
    import dissensus.dynamics._opinion as module

    fast = saturation("tanh", torch.float32)
    assert fast.inner != 1.0
    monkeypatch.setattr(module, "saturation_named", lambda *_: fast)
    check_gradients(make_pattern(), parts(**TENSORS[kind]), "tanh", (2, 3) if kind == "options by graph" else ())


def test_gradients_are_added_to_what_is_there() -> None:
    field = Opinion(
        make_pattern(), **{k: v.requires_grad_() if isinstance(v, Tensor) else v for k, v in parts().items()}
    )
    x, g = normal(N, K, seed=9), normal(N, K, seed=10)
    fresh = [torch.zeros_like(p) for p in field.parameters]
    field.vjp(0.0, x)[1](g, fresh, None)
    added = [torch.ones_like(p) for p in field.parameters]
    field.vjp(0.0, x)[1](g, added, None)
    for a, b in zip(fresh, added, strict=True):
        torch.testing.assert_close(a + 1.0, b)


@pytest.mark.parametrize("name", ["tanh", "linear", "gelu"])
def test_pullback_leaves_its_inputs_alone_and_can_be_called_again(name: str) -> None:
    field = Opinion(make_pattern(), **parts(**TENSORS["by entry"]), saturation=name)
    x, g = normal(N, K, seed=9), normal(N, K, seed=10)
    x_before, g_before = x.clone(), g.clone()
    _, pullback = field.vjp(0.0, x)
    results = [pullback(g, [torch.zeros_like(p) for p in field.parameters], None) for _ in range(2)]
    field(0.0, normal(N, K, seed=11))  # uses the field's own buffers
    results.append(pullback(g, [torch.zeros_like(p) for p in field.parameters], torch.empty_like(g)))
    results.append(pullback(g, (), None))  # the state's alone
    assert all(torch.equal(results[0], other) for other in results[1:])
    assert torch.equal(x, x_before)
    assert torch.equal(g, g_before)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["discrete", "autograd", "adjoint"])
@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.parametrize("memory", [0, 2**28])
def test_gradcheck_of_a_whole_solve(method: str, gradient: str, memory: int) -> None:
    pattern, values, options = stochastic()

    def run(x0: Tensor, values: Tensor, options: Tensor) -> Tensor:
        field = Opinion(pattern, values, options, x0, damping=0.9, attention=0.3, self_reinforcement=0.5)
        step = 0.01 if gradient == "adjoint" else 0.2
        solver = solver_named(method, step, 1e-9, 1e-9)
        parts = {"discrete": Discrete(memory), "autograd": Autograd(), "adjoint": Adjoint()}
        return solve(field, x0, 0.5, solver, parts[gradient]).state

    inputs = tuple(t.detach().clone().requires_grad_() for t in (normal(N, K), values, options))
    loose = gradient == "adjoint" and method == "euler"
    assert gradcheck(run, inputs, atol=1e-2 if loose else 1e-5, rtol=1e-2 if loose else 1e-3, fast_mode=True)


def test_batched_options_are_graphs_one_by_one() -> None:
    pattern = build(torch.tensor([[0, 1, 2, 3, 4], [1, 0, 3, 4, 2]]), N).pattern
    values, options, x = normal(pattern.entries), normal(3, K, K, seed=1), normal(N, K, seed=2)
    together = Opinion(pattern, values, options, 0.0, damping=1.0, attention=0.3, sizes=(2, 0, 3))(0.0, x)
    dense = pattern.matrix(values).to_dense()
    for rows, a_o in ((slice(0, 2), options[0]), (slice(2, 5), options[2])):
        part, a_a = x[rows], dense[rows, rows]
        y = part @ (a_o + torch.eye(K, dtype=torch.float64)).T
        torch.testing.assert_close(together[rows], -part + torch.tanh(0.3 * (y + a_a @ y)))


def test_runs_side_by_side_are_runs_one_by_one() -> None:
    pattern = make_pattern()
    values, options, x = normal(pattern.entries), normal(K, K, seed=1), normal(N, 2, K, seed=2)
    grads = []
    for states in ([x.reshape(N, -1)], [x[:, 0].contiguous(), x[:, 1].contiguous()]):
        learned = [values.clone().requires_grad_(), options.clone().requires_grad_()]
        field = Opinion(pattern, *learned, 0.0, damping=1.0, attention=0.3)
        found = [solve(field, state, 1.0, Euler(0.25)).state for state in states]
        torch.stack([state.view(N, -1, K) for state in found]).square().sum().backward()
        grads.append((torch.cat(found, 1).detach(), *(p.grad for p in learned)))
    for together, apart in zip(*grads, strict=True):
        torch.testing.assert_close(together, apart)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_an_euler_step_never_expands_in_the_sup_norm(alpha: float, share: float) -> None:
    d = 1.3
    dt = 1.0 / d
    u = share * d / (alpha + 3.0)
    bound = 1.0 - d * dt + u * dt * (alpha + 3.0)
    field = stochastic_field(0.0, share, d, alpha)
    for scale in (0.0, 0.3, 3.0):
        x = scale * normal(N, K, seed=4)
        jacobian = torch.autograd.functional.jacobian(lambda x: x + dt * field.differentiable(0.0, x), x)
        norm = jacobian.reshape(N * K, N * K).abs().sum(1).max().item()
        assert norm <= bound + 1e-12 <= 1.0 + 1e-11
        if scale == 0.0:
            assert norm == pytest.approx(bound, abs=1e-12)


def test_above_the_critical_attention_a_step_does_expand() -> None:
    field = stochastic_field(0.0, 1.2)
    rest = torch.zeros(N, K).double()
    jacobian = torch.autograd.functional.jacobian(lambda x: x + field.differentiable(0.0, x), rest)
    assert jacobian.reshape(N * K, N * K).abs().sum(1).max().item() == pytest.approx(1.2)


def test_equilibrium_at_the_critical_attention_is_unique() -> None:
    field = stochastic_field(normal(N, K, seed=3))
    ends = [solve(field, start, 400.0, Euler()).state for start in (normal(N, K) * 50, -normal(N, K) * 50)]
    assert field(0.0, ends[0]).abs().max() < 1e-9
    torch.testing.assert_close(*ends, rtol=0, atol=1e-9)


def test_two_equilibria_above_the_critical_attention() -> None:
    # The bifurcation itself: without input, agreement on either sign is stable above u*, only zero is below.
    ones = torch.ones(N, K, dtype=torch.float64)
    above = [solve(stochastic_field(0.0, 1.5), s * ones, 100.0, Euler()).state for s in (1.0, -1.0)]
    assert above[0].min() > 0.5
    torch.testing.assert_close(above[0], -above[1])
    below = solve(stochastic_field(0.0, 0.9), ones, 200.0, Euler()).state
    assert below.abs().max() < 1e-6


@pytest.mark.parametrize(("share", "alpha", "d"), [(0.5, 1.0, 1.0), (0.8, 0.0, 0.6), (0.9, 2.0, 1.5)])
def test_convergence_below_is_exponential_at_the_proven_rate(share: float, alpha: float, d: float) -> None:
    field = stochastic_field(normal(N, K, seed=3), share, d, alpha)
    rate = d - share * d  # d - u (alpha + 3)
    times = [0.0, 1.0, 2.0, 5.0, 10.0]
    pair = [solve(field, s, 10.0, Dopri5(1e-10, 1e-12), save_at=times).saved for s in (normal(N, K), -normal(N, K))]
    distance = (pair[0] - pair[1]).abs().amax((1, 2))
    for t, now in zip(times, distance.tolist(), strict=True):
        assert now <= distance[0].item() * torch.tensor(-rate * t).exp().item() * (1 + 1e-6)


@pytest.mark.parametrize("steps", [1, 7, 40])
def test_gradient_over_depth_is_at_most_one_plus_time(steps: int) -> None:
    dt = 0.5

    def run(x0: Tensor) -> Tensor:
        return solve(stochastic_field(x0), x0, steps * dt, Euler(dt)).state

    jacobian = torch.autograd.functional.jacobian(run, normal(N, K) * 0.2).reshape(N * K, N * K)
    assert jacobian.abs().sum(1).max().item() <= 1.0 + steps * dt


def test_the_source_keeps_gradients_alive_and_the_state_alone_does_not() -> None:
    source = normal(N, K, seed=3)
    grads = []
    for attached in (True, False):
        x0 = source.clone().requires_grad_()
        solve(stochastic_field(x0 if attached else source, 0.9), x0, 100.0, Euler()).state.sum().backward()
        grads.append(x0.grad.abs().max().item())
    assert grads[0] > 0.3
    assert grads[1] < 1e-5


def test_euler_limit_is_one_over_the_largest_damping() -> None:
    assert Opinion(make_pattern(), **parts(damping=0.5)).euler_limit == 2.0
    assert Opinion(make_pattern(), **parts(damping=torch.tensor([0.1, 4.0, 1.0]))).euler_limit == 0.25


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"damping": 0.0}, "damping.*positive"),
        ({"damping": -1.0}, "positive"),
        ({"damping": float("nan")}, "positive"),
        ({"damping": torch.tensor([1.0, 0.0, 1.0])}, "positive"),
        ({"self_reinforcement": -0.1}, "self_reinforcement.*negative"),
        ({"self_reinforcement": torch.tensor(-0.1)}, "negative"),
        ({"saturation": "tan"}, "did you mean 'tanh'.*softsign"),
    ],
)
def test_bad_parameters(wrong: dict[str, Any], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        Opinion(make_pattern(), **parts(**wrong))


def test_without_agents_or_with_one() -> None:
    for n in (0, 1):
        pattern = build(torch.zeros(2, 0, dtype=torch.int64), n).pattern
        values = torch.ones(n, dtype=torch.float64)
        x0 = torch.ones(n, K, dtype=torch.float64, requires_grad=True)
        field = Opinion(pattern, values, torch.eye(K, dtype=torch.float64), x0, damping=1.0, attention=0.25)
        solve(field, x0, 1.0).state.sum().backward()
        assert x0.grad.shape == (n, K)
