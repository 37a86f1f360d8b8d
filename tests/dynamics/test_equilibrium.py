import networkx as nx
import numpy as np
import pytest
import torch

from dissensus import dynamics
from dissensus.errors import InputError, SolverError

GRID = nx.to_numpy_array(nx.grid_2d_graph(4, 4))
OPTIONS = np.array([[0.0, 0.5, -0.2], [0.3, 0.0, 0.1], [-0.2, 0.4, 0.0]])
RNG = np.random.default_rng(0)
INPUT = RNG.normal(size=(16, 3))


def right_hand_side(x: np.ndarray, **parameters: object) -> np.ndarray:
    return dynamics.System(GRID, OPTIONS, **parameters).field()(0.0, torch.from_numpy(x)).numpy()


def test_field_vanishes_at_the_equilibrium() -> None:
    parameters = {"input": INPUT, "damping": RNG.uniform(0.5, 2.0, 16), "attention": 0.05}
    found = dynamics.equilibrium(GRID, options=OPTIONS, tol=1e-12, **parameters)
    assert found.converged
    assert found.residual <= 1e-12
    assert np.abs(right_hand_side(found.state.numpy(), **parameters)).max() < 1e-11


def test_far_starts_agree_at_the_critical_attention() -> None:
    near, far = (dynamics.equilibrium(GRID, np.full(16, x), input=INPUT[:, 0], tol=1e-13) for x in (0.0, -100.0))
    assert near.state.allclose(far.state, atol=1e-9)


def test_above_it_the_start_decides() -> None:
    u = 1.5 * float(dynamics.System(GRID).attention)
    up, down = (dynamics.equilibrium(GRID, np.full(16, x), attention=u) for x in (0.5, -0.5))
    assert bool((up.state > 0.3).all())
    assert up.state.allclose(-down.state, atol=1e-7)
    assert dynamics.stability(GRID, up.state, attention=u).stable
    assert not dynamics.stability(GRID, attention=u).stable


def test_gradient_of_an_objective_on_the_equilibrium() -> None:
    matrix = torch.from_numpy(GRID).requires_grad_()
    source = torch.from_numpy(INPUT).requires_grad_()
    damping = torch.full((16,), 1.2, dtype=torch.float64, requires_grad=True)
    attention = torch.full((16,), 0.05, dtype=torch.float64, requires_grad=True)
    options = torch.from_numpy(OPTIONS).requires_grad_()
    alpha = torch.ones(1, 3, dtype=torch.float64, requires_grad=True)
    given = (matrix, source, damping, attention, options, alpha)

    def loss(*given: torch.Tensor) -> torch.Tensor:
        a, b, d, u, o, r = given
        found = dynamics.equilibrium(
            a, options=o, input=b, damping=d, attention=u, self_reinforcement=r, normalize=True, tol=1e-13
        )
        return found.state.pow(3).sum()

    grads = torch.autograd.grad(loss(*given), given)
    generator = torch.Generator().manual_seed(0)
    for index, (parameter, grad) in enumerate(zip(given, grads, strict=True)):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if index == 0:
            direction = direction * (parameter != 0)  # edges stay edges
        if index == 4:
            direction.fill_diagonal_(0.0)
        moved = [[*given[:index], parameter + h * direction, *given[index + 1 :]] for h in (1e-5, -1e-5)]
        numeric = float((loss(*moved[0]) - loss(*moved[1])).detach()) / 2e-5
        assert float((grad * direction).sum()) == pytest.approx(numeric, rel=1e-6, abs=1e-8)


@pytest.mark.slow
def test_no_convergence() -> None:
    ring = -nx.to_numpy_array(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))  # oscillates above 2/3
    with pytest.raises(SolverError, match="oscillate"):
        dynamics.equilibrium(ring, np.array([0.5, 0.0, 0.0]), attention=2.0, max_time=200.0)
    found = dynamics.equilibrium(ring, np.array([0.5, 0.0, 0.0]), attention=2.0, max_time=200.0, strict=False)
    assert not found.converged
    with pytest.raises(InputError, match="max_time"):
        dynamics.equilibrium(GRID, max_time=0.0)


def test_an_unstable_equilibrium_is_said_to_be_one() -> None:
    with pytest.warns(RuntimeWarning, match="unstable"):
        found = dynamics.equilibrium(GRID, attention=1.0)
    assert not found.stable


def test_the_flow_is_followed_where_plain_iteration_cycles() -> None:
    # x <- S(..)/d jumps between two states on a star whose centre and leaves disagree; the flow settles.
    star, start = nx.star_graph(6), np.array([1.0] + [-1.0] * 6)
    u = 2.0 * float(dynamics.System(star, self_reinforcement=0.0).attention)
    found = dynamics.equilibrium(star, start, attention=u, self_reinforcement=0.0)
    assert found.stable
    assert float(found.state.abs().min()) > 0.3
    flow = dynamics.simulate(star, start, attention=u, self_reinforcement=0.0, times=[200.0])
    assert found.state.allclose(flow.final, atol=1e-6)


@pytest.mark.parametrize("name", ["attention", "damping", "self_reinforcement", "input"])
def test_numbers_as_tensors_keep_their_gradients(name: str) -> None:
    values = {"attention": 0.06, "damping": 1.1, "self_reinforcement": 0.9, "input": 0.1}

    def loss(value: torch.Tensor, how: str) -> torch.Tensor:
        given = {**values, name: value}
        if how == "simulate":
            return dynamics.simulate(GRID, np.linspace(-1, 1, 16), times=[2.0], rtol=1e-10, **given).final.pow(3).sum()
        return dynamics.equilibrium(GRID, tol=1e-12, **given).state.pow(3).sum()

    for how in ("simulate", "equilibrium"):
        value = torch.tensor(values[name], dtype=torch.float64, requires_grad=True)
        (grad,) = torch.autograd.grad(loss(value, how), value)
        ahead, behind = (float(loss(torch.tensor(values[name] + h, dtype=torch.float64), how)) for h in (1e-5, -1e-5))
        assert float(grad) == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)


# --- Stability ---


def test_neutral_state_is_critical_at_the_critical_attention() -> None:
    for a, o in ((GRID, OPTIONS), (RNG.normal(size=(9, 9)), RNG.normal(size=(3, 3)))):
        bare_a, bare_o = (m - np.diag(np.diag(m)) for m in (a, o))
        u = dynamics.critical_attention(bare_a, bare_o, 0.7, 0.4)
        found = dynamics.stability(a, options=o, damping=0.7, self_reinforcement=0.4, attention=u, self_loops=False)
        assert found.eigenvalues[0].real == pytest.approx(0.0, abs=1e-10)
        assert dynamics.System(a, o, damping=0.7, self_reinforcement=0.4, self_loops=False).attention == pytest.approx(
            u
        )


def test_eigenpairs_solve_the_eigenvalue_equation() -> None:
    x = RNG.normal(size=(16, 3))
    system = dynamics.System(GRID, OPTIONS, attention=0.3, damping=RNG.uniform(0.5, 2.0, (16, 3)))
    flow, found = system.flow(), dynamics.stability(system, x, count=48)
    matrix = flow.jacobian(flow.evaluate(x, 1.0))
    assert len(found.eigenvalues) == 48
    assert bool((np.diff(found.eigenvalues.real) <= 1e-12).all())
    for value, vector in zip(found.eigenvalues, found.directions, strict=True):
        assert np.allclose(matrix @ vector.ravel(), value * vector.ravel(), atol=1e-10)
    assert np.sum(found.eigenvalues).real == pytest.approx(np.trace(matrix))


@pytest.mark.parametrize("kind", ["signed", "directed"])
def test_large_graphs_agree_with_all_eigenvalues(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 300
    matrix = np.where(RNG.random((n, n)) < 0.03, RNG.normal(size=(n, n)) if kind == "signed" else 1.0, 0.0)
    x = 0.1 * RNG.normal(size=n)
    exact = dynamics.stability(matrix, x, attention=0.2, count=3)
    monkeypatch.setattr("dissensus.dynamics._spectrum.DENSE_UP_TO", 9)
    sparse = dynamics.stability(matrix, x, attention=0.2, count=3)
    assert np.allclose(exact.eigenvalues, sparse.eigenvalues, atol=1e-7)


@pytest.mark.slow
def test_crowded_eigenvalues_of_a_long_path() -> None:
    n, u = 2000, 0.3
    found = dynamics.stability(nx.path_graph(n), attention=u, count=5)
    expected = -1.0 + u * (1.0 + 2.0 * np.cos(np.pi * np.arange(1, 6) / (n + 1)))
    assert np.allclose(found.eigenvalues, expected, atol=1e-9)


def test_unequal_damping_and_oscillation() -> None:
    # A rotation with unequal damping: no real eigenvalue crosses first.
    ring = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])
    damping = np.array([0.5, 1.0, 2.0])
    system = dynamics.System(ring, damping=damping)
    leading = dynamics.stability(system).eigenvalues[0]
    assert leading.real == pytest.approx(0.0, abs=1e-9)
    assert abs(leading.imag) > 0.1


def test_a_graph_without_growth_has_no_critical_attention() -> None:
    with pytest.raises(InputError, match="stable at every attention"):
        dynamics.System(np.zeros((3, 3)), self_reinforcement=0.0)


def test_bad_count_is_refused() -> None:
    with pytest.raises(InputError, match="count"):
        dynamics.stability(GRID, count=0)
