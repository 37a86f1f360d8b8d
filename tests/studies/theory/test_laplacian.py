import math

import pytest
import torch

from dissensus.studies.theory._laplacian import linear_flow


def test_the_linear_flow_is_exact():
    a, x = torch.tensor([[-1.0]]).double(), torch.tensor([[2.0]]).double()
    assert float(linear_flow(a, x, 3.0)) == pytest.approx(2 * math.exp(-3))
    source = torch.tensor([[5.0]]).double()
    assert float(linear_flow(a, x, 3.0, source)) == pytest.approx(5 - 3 * math.exp(-3))
