"""The size of an error relative to the tolerance, against the formula; the controller is seen in test_integrate.py."""

import math

import pytest
import torch

from dissensus.solve._control import scaled_error_norm


def test_scaled_error_norm() -> None:
    error, x, new = torch.tensor([3.0, -4.0]), torch.tensor([-1.0, 2.0]), torch.tensor([0.5, -7.0])
    # 3 / (0.5 + 0.1) and 4 / (0.5 + 0.7)
    expected = math.sqrt((5.0**2 + (4.0 / 1.2) ** 2) / 2)
    assert scaled_error_norm(error, x, new, atol=0.5, rtol=0.1) == pytest.approx(expected)
    assert scaled_error_norm(torch.empty(0), torch.empty(0), torch.empty(0), 1.0, 1.0) == 0.0
