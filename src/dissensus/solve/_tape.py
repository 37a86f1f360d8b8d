"""Checkpointing for the discrete adjoint: it decides which states are stored and recomputes the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb

from torch import Tensor

from dissensus.solve._field import Pullback

# Number of checkpoints that are always allowed in the forward pass, and again while recomputing the steps between two.
MIN_CHECKPOINTS = 8

# advance(steps, x) takes the steps from the state x and returns the state after them.
Advance = Callable[["list[AcceptedStep]", Tensor], Tensor]


@dataclass(frozen=True)
class AcceptedStep:
    """An accepted step of size h from time t."""

    t: float
    h: float


class Tape:
    """The accepted steps of an integration, with checkpoints (states at the start of steps) and pullbacks of stages.

    Pullbacks are stored from the first step on, as long as they and the checkpoints fit into ``memory``; later
    checkpoints replace them. If there is no room for more than ``MIN_CHECKPOINTS`` checkpoints, only every second one
    is stored, then every fourth, and so on. :meth:`backwards` recomputes the steps in between by binomial checkpointing
    (Griewank and Walther, Algorithm 799, 2000) with at most ``MIN_CHECKPOINTS`` further states. For any number of
    steps, memory is bounded by max(``memory``, ``MIN_CHECKPOINTS`` states) + ``MIN_CHECKPOINTS`` states.

    Args:
        memory: bytes for checkpoints and pullbacks.
        state_bytes: bytes of a state.
        pullback_bytes: bytes of the pullbacks of one step.
    """

    def __init__(self, memory: float, state_bytes: int, pullback_bytes: float) -> None:
        self.memory, self.state_bytes, self.pullback_bytes = memory, max(state_bytes, 1), pullback_bytes
        self.steps: list[AcceptedStep] = []
        self.states: dict[int, Tensor] = {}  # at the start of every ``stride``-th step
        self.stride = 1
        self.pullbacks: list[tuple[Pullback, ...]] = []  # of the first steps

    @property
    def keeps_pullbacks(self) -> bool:
        """Whether there is room for the pullbacks of the next step, and was for those of all previous ones."""
        return len(self.pullbacks) == len(self.steps) and self._free_bytes(1) >= self.pullback_bytes

    def _free_bytes(self, more: int = 0) -> float:
        used = (len(self.states) + more) * self.state_bytes + len(self.pullbacks) * self.pullback_bytes
        return self.memory - used

    def add(self, step: AcceptedStep, x: Tensor, pullbacks: tuple[Pullback, ...]) -> None:
        """Record a step from the state x. ``pullbacks`` are those of its stages, or empty."""
        if len(self.steps) % self.stride == 0:
            self.states[len(self.steps)] = x
        self.steps.append(step)
        if pullbacks:
            self.pullbacks.append(pullbacks)
        while self.pullbacks and self._free_bytes() < 0:
            self.pullbacks.pop()
        if len(self.states) > MIN_CHECKPOINTS and self._free_bytes() < 0:
            self.stride *= 2
            self.states = {i: state for i, state in self.states.items() if i % self.stride == 0}

    def backwards(self, advance: Advance) -> Iterator[tuple[AcceptedStep, Tensor, tuple[Pullback, ...]]]:
        """Yield the steps from the last to the first, each with the state at its start and any stored pullbacks."""
        for first in reversed(self.states):
            segment = range(first, min(first + self.stride, len(self.steps)))
            for i, x in self._reversed(segment, self.states[first], MIN_CHECKPOINTS, advance):
                yield self.steps[i], x, self.pullbacks[i] if i < len(self.pullbacks) else ()

    def _reversed(self, segment: range, x: Tensor, slots: int, advance: Advance) -> Iterator[tuple[int, Tensor]]:
        """Yield the steps of a segment that starts at state x, from the last to the first, each with its own state.

        ``slots`` is the number of further checkpoints allowed.
        """
        while len(segment) > 1:
            left, right = _split(segment, slots)
            # The state in the middle is not bound to a variable, so it is freed after the steps on its right.
            yield from self._reversed(right, advance(self.steps[left.start : left.stop], x), slots - 1, advance)
            segment = left
        yield segment[0], x


def _split(segment: range, slots: int) -> tuple[range, range]:
    """The steps before and after the next checkpoint, of which ``slots`` are left.

    With s checkpoints besides the first state, C(s + r, s) steps can be reversed if each is repeated at most r times.
    """
    repeats = 1
    while comb(slots + repeats, slots) < len(segment):
        repeats += 1
    middle = max(1, len(segment) - comb(slots - 1 + repeats, slots - 1))
    return segment[:middle], segment[middle:]
