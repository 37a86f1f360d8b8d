"""Checkpoints: the discrete adjoint in bounded memory."""

import weakref
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dissensus.dynamics import Opinion
from dissensus.graph import build
from dissensus.solve import Field, Pullback
from dissensus.solve._tape import MIN_CHECKPOINTS, AcceptedStep, Tape
from solve_fields import Counting, Drift, solve

STATE = 4  # bytes of a state in the tests of the tape alone


def drift() -> tuple[Field, list[Tensor]]:
    module = Drift()
    return module, list(module.parameters())


def opinion() -> tuple[Field, list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    pattern = build(torch.randint(0, 9, (2, 40), generator=generator), 9).pattern
    values = pattern.row_softmax(torch.randn(pattern.entries, generator=generator, dtype=torch.float64))
    options = torch.rand(2, 2, generator=generator, dtype=torch.float64)
    source = torch.randn(9, 2, generator=generator, dtype=torch.float64)
    parameters = [p.requires_grad_() for p in (values.detach(), options, source)]
    return Opinion(pattern, *parameters, damping=1.0, attention=0.25, self_reinforcement=1.5), parameters


@pytest.mark.parametrize("make", [drift, opinion])
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("euler", {"step_size": 0.03}),
        ("rk4", {"step_size": 0.06}),
        ("dopri5", {"rtol": 1e-10, "atol": 1e-11}),
    ],
)
@pytest.mark.slow
def test_gradient_is_the_unlimited_one_bit_for_bit(
    make: Callable[[], tuple[Field, list[Tensor]]], method: str, options: dict[str, float]
) -> None:
    x0 = torch.randn(9, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    weight = torch.arange(1.0, 4.0, dtype=torch.float64).view(3, 1, 1)
    results, counts, strides = [], [], []
    for memory in (2**28, 0, 144, 20 * 144, 50 * 144):
        field, parameters = make()
        solution = solve(field, x0, 5.0, method, memory=memory, save_at=[0.0, 1.7, 4.01], **options)
        strides.append(solution.state.grad_fn.tape.stride)
        loss = solution.state.square().sum() + (solution.saved * weight).sum()
        results.append((loss.detach(), *torch.autograd.grad(loss, (x0, *parameters))))
        counts.append(solution.stats.accepted)
    assert min(counts) == max(counts) > MIN_CHECKPOINTS**2 / 2
    assert strides[0] == 1 < strides[3] < strides[1]
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize(("method", "options"), [("euler", {}), ("rk4", {}), ("dopri5", {"rtol": 1e-6, "atol": 1e-6})])
@pytest.mark.slow
def test_so_it_is_in_single_precision(channels: int, method: str, options: dict[str, float]) -> None:
    # Here stages are made by other kernels when a step is taken than when it is taken again.
    generator = torch.Generator().manual_seed(0)
    pattern = build(torch.randint(60, (2, 300), generator=generator), 60).pattern
    values = pattern.row_softmax(torch.randn(pattern.entries, generator=generator)).requires_grad_()
    mixing = torch.rand(channels, channels, generator=generator).softmax(-1).requires_grad_()
    x0 = torch.randn(60, channels, generator=generator).requires_grad_()
    results, repeated = [], []
    for memory in (2**28, 0):
        field = Opinion(pattern, values, mixing, x0, damping=1.0, attention=0.25)
        solution = solve(field, x0, 12.0, method, step_size=0.2, memory=memory, **options)
        loss = solution.state.square().sum()
        results.append((loss.detach(), *torch.autograd.grad(loss, (x0, values, mixing))))
        repeated.append(solution.stats.backward_evaluations)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert repeated[1] > 1.9 * repeated[0]


def test_backward_again_is_the_same() -> None:
    field, parameters = drift()
    x0 = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    loss = solve(field, x0, 3.0, "rk4", step_size=0.05, memory=0).state.sum()
    first = torch.autograd.grad(loss, (x0, *parameters), retain_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(first, torch.autograd.grad(loss, (x0, *parameters)), strict=True))


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
def test_repeated_evaluations_are_counted(method: str) -> None:
    field = Counting(torch.tensor(0.5, dtype=torch.float64, requires_grad=True))
    x0 = torch.ones(2, 2, dtype=torch.float64)
    solution = solve(field, x0, 1.0, method, step_size=0.01, rtol=1e-13, atol=1e-13, memory=0)
    forward = field.count()
    assert solution.stats.evaluations == forward
    solution.state.sum().backward()
    assert solution.state.grad_fn.tape.stride > 1
    assert solution.stats.backward_evaluations == field.count() - forward


class Watching(Counting):
    """Counts how many of the states that it was evaluated at are still alive."""

    def __init__(self) -> None:
        super().__init__(torch.tensor(0.5, dtype=torch.float64, requires_grad=True))
        self.seen: dict[int, weakref.ref[Tensor]] = {}
        self.peak = 0

    def look(self, x: Tensor) -> None:
        self.seen = {key: ref for key, ref in self.seen.items() if ref() is not None} | {id(x): weakref.ref(x)}
        self.peak = max(self.peak, len(self.seen))

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        self.look(x)
        return super().__call__(t, x, out)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        self.look(x)
        return super().vjp(t, x, out)


@pytest.mark.parametrize("method", ["euler", "rk4", "dopri5"])
@pytest.mark.slow
def test_states_in_memory_do_not_grow_with_the_steps(method: str) -> None:
    peaks, counts = [], []
    for steps, tol in ((8, 1e-6), (64, 1e-11), (512, 1e-14)):
        field, x0 = Watching(), torch.ones(2, 2, dtype=torch.float64)
        solution = solve(field, x0, 4.0, method, step_size=4.0 / steps, rtol=tol, atol=tol, memory=0)
        solution.state.sum().backward()
        peaks.append(field.peak)
        counts.append(solution.stats.accepted)
    assert counts[2] > 3 * counts[1] > 6 * counts[0]
    # Beside the checkpoints there is the state at hand, the one before, and the input of a stage.
    assert max(peaks) <= 2 * MIN_CHECKPOINTS + 3
    assert peaks[2] <= peaks[1] + 2


class States:
    """States that know their number; how many are alive, and how often a step was taken again."""

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[States.State] = weakref.WeakSet()
        self.peak = self.repeated = 0

    class State:
        def __init__(self, number: int) -> None:
            self.number = number

    def make(self, number: int) -> "States.State":
        state = States.State(number)
        self.alive.add(state)
        self.peak = max(self.peak, len(self.alive))
        return state

    def advance(self, steps: Sequence[AcceptedStep], x: "States.State") -> "States.State":
        assert [step.t for step in steps] == list(range(x.number, x.number + len(steps)))
        self.repeated += len(steps)
        return self.make(x.number + len(steps))


def run(count: int, memory: float) -> tuple[Tape, States, int]:
    """The tape of so many steps gone there and back, and the largest number of states kept on the way there."""
    tape, states = Tape(memory * STATE, STATE, 3 * STATE), States()
    for i in range(count):
        pullbacks = (lambda g, grads, out: g,) if tape.keeps_pullbacks else ()
        tape.add(AcceptedStep(float(i), 1.0), states.make(i), pullbacks)
        used = len(tape.states) + 3 * len(tape.pullbacks)
        assert used <= max(memory, MIN_CHECKPOINTS)
    forward = states.peak
    order = []
    for step, x, pullbacks in tape.backwards(states.advance):
        assert x.number == step.t
        assert bool(pullbacks) == (x.number < len(tape.pullbacks))
        order.append(x.number)
        del x
    assert order == list(reversed(range(count)))
    return tape, states, forward


@given(st.integers(1, 700), st.integers(0, 60))
def test_every_step_comes_back_within_the_budget(count: int, memory: int) -> None:
    tape, states, forward = run(count, memory)
    kept = max(memory, MIN_CHECKPOINTS)
    assert forward <= kept + 1
    assert states.peak <= kept + MIN_CHECKPOINTS + 1
    assert len(tape.states) >= min(count, kept // 2)
    if count <= kept:
        assert states.repeated == 0


@pytest.mark.parametrize(("count", "repeats"), [(8, 0), (64, 1), (360, 3), (1200, 4), (10_000, 6)])
def test_steps_are_repeated_few_times(count: int, repeats: int) -> None:
    assert run(count, 0)[1].repeated <= repeats * count


def test_pullbacks_give_way_to_states() -> None:
    kept = [len(run(count, 20)[0].pullbacks) for count in (1, 5, 6, 8, 9, 11, 19, 20, 21)]
    assert kept == [1, 5, 4, 4, 3, 3, 0, 0, 0]
    assert run(20, 20)[0].stride == 1
    assert run(21, 20)[0].stride == 2
