"""The size of an error relative to the tolerance, against the formula; the controller is seen in test_integrate.py."""

import math
from itertools import pairwise

import pytest
import torch

from dissensus.solve._control import equal_mesh, scaled_error_norm


def test_scaled_error_norm() -> None:
    error, x, new = torch.tensor([3.0, -4.0]), torch.tensor([-1.0, 2.0]), torch.tensor([0.5, -7.0])
    # 3 / (0.5 + 0.1) and 4 / (0.5 + 0.7)
    expected = math.sqrt((5.0**2 + (4.0 / 1.2) ** 2) / 2)
    assert scaled_error_norm(error, x, new, atol=0.5, rtol=0.1) == pytest.approx(expected)
    assert scaled_error_norm(torch.empty(0), torch.empty(0), torch.empty(0), 1.0, 1.0) == 0.0


def test_an_equal_mesh_by_hand() -> None:
    # Steps of 1 and 2 at 0.5 and 1 of the longest that the tolerance allows: 1.5 such lengths, two steps of 0.75 each.
    assert equal_mesh([0.0, 1.0, 3.0], [0.5**5, 1.0], 5) == pytest.approx((1.5, 3.0))
    assert equal_mesh([0.0, 2.0], [0.0], 5) == (2.0,)


@pytest.mark.parametrize(
    ("shares", "count"),
    [
        ([0.69], 1),
        ([0.71], 2),
        ([0.5, 0.5, 0.59], 2),  # of two steps each at most 0.8 of the longest
        ([0.5, 0.5, 0.61], 3),
        ([0.849] * 4, 4),
        ([0.851] * 4, 5),
        ([0.889] * 20, 20),
        ([0.891] * 20, 21),
        ([0.0] * 27, 3),  # a step may be ten times as long as the last, nine by 0.9
    ],
)
def test_steps_of_an_equal_mesh(shares: list[float], count: int) -> None:
    mesh = equal_mesh(range(len(shares) + 1), [share**5 for share in shares], 5)
    assert len(mesh) == count
    assert mesh[-1] == len(shares)
    assert all(a < b for a, b in pairwise((0.0, *mesh)))
