from __future__ import annotations

from typing import Any

import pytest
import torch

from continuous_models import EULER, make, slope


@pytest.mark.parametrize("adaptive", ["l", "aa"])
def test_grand(data: Any, adaptive: str) -> None:
    a, x, velocity = slope(make(f"grand-{adaptive}", **EULER), data)
    torch.testing.assert_close(velocity, a @ x - x)
    model = make(f"grand-{adaptive}", source=True, learn_time_scale=True, **EULER)
    with torch.no_grad():
        model.source.fill_(0.7)
        model.time_scale.logit.fill_(-1.0)
    a, x, velocity = slope(model, data)
    scale = torch.sigmoid(torch.tensor(-1.0, dtype=torch.float64))
    torch.testing.assert_close(velocity, scale * (a @ x - x) + 0.7 * x)


@pytest.mark.parametrize("name", ["grand-l", "grand-aa", "grand++-l", "grand++-aa", "kuramoto"])
def test_a_detached_source_passes_no_gradient(name: str, data: Any) -> None:
    """One Euler step to T of an undamped source: X(T) = ... + T B, so the source's share of the gradient shows."""
    gradients = []
    for detach in (False, True):
        options = {"source": True} if name.startswith("grand-") else {}
        model = make(name, method="euler", time=1.0, detach_source=detach, **options)
        if options:
            with torch.no_grad():
                model.source.fill_(1.0)
        out = model(data.x, data.edge_index)
        out.square().sum().backward()
        gradients.append((out.detach(), model.encoder.linear.weight.grad.clone()))
    torch.testing.assert_close(gradients[0][0], gradients[1][0])
    assert not torch.allclose(gradients[0][1], gradients[1][1], rtol=1e-3)
