from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from continuous_models import EULER, make, slope
from dissensus.errors import InputError


def test_acmp(data: Any) -> None:
    alpha, delta = torch.sigmoid(torch.tensor([-0.5, 0.8], dtype=torch.float64))

    def chosen(**options: Any) -> tuple[Tensor, Tensor, Tensor]:
        model = make("acmp", **options, **EULER)
        with torch.no_grad():
            model.time_scale.logit.fill_(-0.5)
            model.well.logit.fill_(0.8)
        return slope(model, data)

    a, x, velocity = chosen(repulsion=0.3)
    signed = torch.where(a > 0, a - 0.3, 0.0)
    differences = x.unsqueeze(0) - x.unsqueeze(1)  # [i, j]: x_j - x_i
    attraction = torch.einsum("ij,ijc->ic", signed, differences)
    torch.testing.assert_close(velocity, alpha * attraction + delta * x * (1 - x * x))
    a, x, velocity = chosen(repulsion=0.3, equation="code")
    torch.testing.assert_close(velocity, alpha * (signed @ x - x) + delta * x * (1 - x * x))
    a, x, velocity = chosen()
    torch.testing.assert_close(velocity, alpha * (a @ x - x) + delta * x * (1 - x * x))
    with pytest.raises(InputError, match="repulsion"):
        make("acmp", repulsion=-0.1)
