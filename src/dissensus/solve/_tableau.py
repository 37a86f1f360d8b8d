"""Explicit Runge-Kutta methods as tables of coefficients."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tableau:
    """Stages ``k_i = f(t + c_i h, x + h sum_j a_ij k_j)``, step ``x + h sum_i b_i k_i``.

    Attributes:
        a: strictly lower-triangular rows, one a stage; the first is empty.
        b: weights of the step.
        c: stage times.
        e: weights of the error estimate ``h sum_i e_i k_i``, one more than stages (the last for f at the new state);
            empty where the method has no estimate.
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

# Kutta's 3/8 rule, the fourth-order rule of torchdiffeq.
RK4 = Tableau(
    a=((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
    b=(1 / 8, 3 / 8, 3 / 8, 1 / 8),
    c=(0.0, 1 / 3, 2 / 3, 1.0),
    order=4,
)

# Dormand and Prince (1980); the seventh stage is f at the new state, so it is the first of the next step. The error
# weights are Shampine's (1986), as in torchdiffeq, so that both take the same steps.
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

TABLEAUS = {"euler": EULER, "rk4": RK4, "dopri5": DOPRI5}
