"""Butcher tableaus of explicit Runge-Kutta methods."""

from dataclasses import dataclass

import numpy as np

from dissensus.runtime import memoized


@dataclass(frozen=True)
class Tableau:
    """Stages ``k_i = f(t + c_i h, x + h sum_j a_ij k_j)``, step ``x + h sum_i b_i k_i``.

    Attributes:
        a: rows of the strictly lower triangular matrix, one per stage; the first is empty.
        b: weights of the step.
        c: times of the stages.
        e: weights of the error estimate ``h sum_i e_i k_i``, one more than there are stages (the last for f at the new
            state); empty if the method has no error estimate.
        order: order of convergence.
    """

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]
    order: int
    e: tuple[float, ...] = ()

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def adaptive(self) -> bool:
        return bool(self.e)


EULER = Tableau(a=((),), b=(1.0,), c=(0.0,), order=1)

# Kutta's 3/8 rule, which is torchdiffeq's method "rk4".
THREE_EIGHTHS = Tableau(
    a=((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
    b=(1 / 8, 3 / 8, 3 / 8, 1 / 8),
    c=(0.0, 1 / 3, 2 / 3, 1.0),
    order=4,
)

# Dormand and Prince (1980). The seventh stage is f at the new state, so it is also the first stage of the next step.
# The error weights are Shampine's (1986), as in torchdiffeq, so that both accept the same steps.
DOPRI5 = Tableau(
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
    order=5,
    e=(
        35 / 384 - 1951 / 21600,
        0.0,
        500 / 1113 - 22642 / 50085,
        125 / 192 - 451 / 720,
        -2187 / 6784 + 12231 / 42400,
        11 / 84 - 649 / 6300,
        -1 / 60,
    ),
)


@dataclass(frozen=True)
class Combination:
    """The weights of the linear combination ``state x + drive B + sum_j values_j g_j``."""

    state: float
    drive: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class Weights:
    """The weights of a step of size h for ``f = gain g + B - decay x`` with drive B: its stages as linear combinations
    of the state x, the drive and the values of g.

    Let L be the matrix with the rows a and b. Then ``X_i = x + h sum_j L_ij f(X_j)`` holds for the stages and for the
    new state, so ``(1 + h decay L) X = x + h L (gain g + B)``. The error estimate is ``h sum_i e_i f(X_i)``.

    Attributes:
        stages: the weights of the input of each stage and, last, of the new state.
        error: the weights of the error estimate; all zero if the method has none.
    """

    stages: tuple[Combination, ...]
    error: Combination

    @staticmethod
    @memoized(256)
    def of(tableau: Tableau, h: float, gain: float = 1.0, decay: float = 0.0) -> "Weights":
        count = tableau.stages
        lower = np.zeros((count + 1, count + 1))
        for i, row in enumerate((*tableau.a, tableau.b)):
            lower[i, : len(row)] = row
        # R = (1 + h decay L)^-1
        inverse = np.linalg.inv(np.eye(count + 1) + h * decay * lower) if decay else np.eye(count + 1)
        state, values = inverse.sum(1), h * gain * (inverse @ lower)
        drive = h * (inverse @ lower).sum(1)
        rows = tuple(
            Combination(float(state[i]), float(drive[i]), tuple(values[i, :i].tolist())) for i in range(count + 1)
        )
        e = h * np.array(tableau.e or [0.0] * (count + 1))
        error = gain * e - decay * (e @ values)
        return Weights(
            rows, Combination(float(-decay * (e @ state)), float(e.sum() - decay * (e @ drive)), tuple(error.tolist()))
        )
