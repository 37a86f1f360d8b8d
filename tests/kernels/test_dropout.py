from __future__ import annotations

import torch

from dissensus.kernels import dropout


def test_dropout_has_the_distribution_of_pytorchs() -> None:
    torch.manual_seed(0)
    x = torch.ones(200, 500, dtype=torch.float64)
    dropped = dropout(x, 0.3, True)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / 0.7))
    assert abs(float(kept.double().mean()) - 0.7) < 0.01
    assert dropout(x, 0.3, False) is x
    assert dropout(x, 0.0, True) is x
