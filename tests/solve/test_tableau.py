import math

import pytest
import torch

from dissensus.solve import RK4, Dopri5, Euler
from dissensus.solve._tableau import DOPRI5, Tableau
from solve_fields import waves

X0 = torch.tensor([[1.0, -0.5], [0.3, 2.0]], dtype=torch.float64)
OWN = ("euler", "rk4", "dopri5")


@pytest.mark.parametrize("tableau", [solver.tableau for solver in (Euler, RK4, Dopri5)], ids=OWN)
def test_tables_are_consistent(tableau: Tableau) -> None:
    assert sum(tableau.b) == pytest.approx(1.0, abs=1e-15)
    assert [sum(row) for row in tableau.a] == pytest.approx(list(tableau.c), abs=1e-14)
    assert [len(row) for row in tableau.a] == list(range(tableau.stages))
    assert sum(tableau.e) == pytest.approx(0.0, abs=1e-15)


def test_order_of_the_error_estimate() -> None:
    # The estimate of one step compares orders 5 and 4, so it falls like h^5.
    estimates = []
    for h in (0.2, 0.1):
        k = [waves(0.0, X0)]
        for a, c in zip((*DOPRI5.a[1:], DOPRI5.b), (*DOPRI5.c[1:], 1.0), strict=True):
            k.append(waves(c * h, X0 + h * sum(w * v for w, v in zip(a, k, strict=False))))
        estimates.append((h * sum(w * v for w, v in zip(DOPRI5.e, k, strict=True))).abs().max().item())
    assert math.log2(estimates[0] / estimates[1]) == pytest.approx(5, abs=0.3)
