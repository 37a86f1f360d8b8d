"""What the discrete adjoint keeps of the steps taken, and how it gets back what it did not keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb

from torch import Tensor

from dissensus.solve._field import Pullback

# So many states may always be kept, forward, and again while a stretch of steps is repeated backward.
LEAST = 8

# advance(steps, x): the state after the steps, from the state x before them.
Advance = Callable[["list[Step]", Tensor], Tensor]


@dataclass(frozen=True)
class Step:
    """One accepted step of size h from time t."""

    t: float
    h: float


class Tape:
    """The accepted steps of an integration and, in so many bytes, states and pullbacks for their derivative.

    The pullbacks of the stages are kept from the first step on, while they fit beside the states. They give way to
    later states; where these alone do not fit, and are more than ``LEAST``, only every second is kept, then every
    fourth, and so on. :meth:`backwards` repeats the steps between those kept, in the order of the binomial scheme
    (Griewank and Walther, Algorithm 799, 2000), with at most ``LEAST`` further states at a time. So the bound is
    max(``memory``, ``LEAST`` states) + ``LEAST`` states, however many steps there are.

    Args:
        memory: bytes.
        state_bytes: size of a state.
        pullback_bytes: size of the pullbacks of one step.
    """

    def __init__(self, memory: float, state_bytes: int, pullback_bytes: float) -> None:
        self.memory, self.state_bytes, self.pullback_bytes = memory, max(state_bytes, 1), pullback_bytes
        self.steps: list[Step] = []
        self.states: dict[int, Tensor] = {}  # at the start of every ``stride``-th step
        self.stride = 1
        self.pullbacks: list[tuple[Pullback, ...]] = []  # of the first steps

    @property
    def keeps_pullbacks(self) -> bool:
        """Whether there is room for the pullbacks of the next step, as there was for all before."""
        return len(self.pullbacks) == len(self.steps) and self._room(1) >= self.pullback_bytes

    def _room(self, more: int = 0) -> float:
        used = (len(self.states) + more) * self.state_bytes + len(self.pullbacks) * self.pullback_bytes
        return self.memory - used

    def add(self, step: Step, x: Tensor, pullbacks: tuple[Pullback, ...]) -> None:
        """Record a step from the state x, with the pullbacks of its stages or none."""
        if len(self.steps) % self.stride == 0:
            self.states[len(self.steps)] = x
        self.steps.append(step)
        if pullbacks:
            self.pullbacks.append(pullbacks)
        while self.pullbacks and self._room() < 0:
            self.pullbacks.pop()
        if len(self.states) > LEAST and self._room() < 0:
            self.stride *= 2
            self.states = {i: state for i, state in self.states.items() if i % self.stride == 0}

    def backwards(self, advance: Advance) -> Iterator[tuple[Step, Tensor, tuple[Pullback, ...]]]:
        """Every step from the last to the first, with the state at its start and the pullbacks that were kept."""
        for first in reversed(self.states):
            stretch = range(first, min(first + self.stride, len(self.steps)))
            for i, x in self._reversed(stretch, self.states[first], LEAST, advance):
                yield self.steps[i], x, self.pullbacks[i] if i < len(self.pullbacks) else ()

    def _reversed(self, stretch: range, x: Tensor, slots: int, advance: Advance) -> Iterator[tuple[int, Tensor]]:
        """The steps of a stretch that begins at x, from the last to the first, each with the state at its start."""
        while len(stretch) > 1:
            left, right = _split(stretch, slots)
            # Without a name here, the state in the middle is freed once the steps after it are done.
            yield from self._reversed(right, advance(self.steps[left.start : left.stop], x), slots - 1, advance)
            stretch = left
        yield stretch[0], x


def _split(stretch: range, slots: int) -> tuple[range, range]:
    """The steps before and after the next state to keep, of ``slots``, such that few steps are repeated often.

    With s states besides the first, C(s + r, s) steps can be gone back through by repeating none more than r times.
    """
    repeats = 1
    while comb(slots + repeats, slots) < len(stretch):
        repeats += 1
    middle = max(1, len(stretch) - comb(slots - 1 + repeats, slots - 1))
    return stretch[:middle], stretch[middle:]
