from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from continuous_models import EULER, HIDDEN, make, slope
from dissensus import nn
from dissensus.errors import InputError


def test_grandpp_draws_from_its_sources_alone(data: Any) -> None:
    model = make("grand++-l", source_scale=2.0, **EULER)
    mask = torch.zeros(34, dtype=torch.bool)
    mask[[1, 5, 20]] = True
    model.set_sources(mask)
    a, x, velocity = slope(model, data)
    source = velocity - (a @ x - x)
    torch.testing.assert_close(source[~mask], torch.zeros(31, HIDDEN, dtype=torch.float64), atol=1e-9, rtol=0.0)
    torch.testing.assert_close(source[mask], 2.0 * (x[mask] - x[mask].mean(0)))
    model.set_sources(None)
    a, x, velocity = slope(model, data)
    torch.testing.assert_close(velocity - (a @ x - x), 2.0 * (x - x.mean(0)))


def test_grandpp_sources_are_saved_checked_and_the_callers_mask_is_not_kept(data: Any, tmp_path: Path) -> None:
    model = make("grand++-l")
    everywhere = model(data.x, data.edge_index)
    mask = torch.arange(34) < 4
    model.set_sources(mask)
    some = model(data.x, data.edge_index)
    assert not torch.allclose(some, everywhere)
    mask[:] = True
    assert torch.equal(model(data.x, data.edge_index), some)
    model.save(tmp_path / "m")
    loaded = nn.load(tmp_path / "m")
    assert torch.equal(loaded(data.x, data.edge_index), some)
    other = make("grand++-l")
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(data.x, data.edge_index), some)
    other.load_state_dict(make("grand++-l").state_dict())
    assert torch.equal(other(data.x, data.edge_index), everywhere)
    with pytest.raises(InputError, match="set for 34 nodes, but the graph has 3"):
        loaded(data.x[:3], torch.tensor([[0, 1], [1, 2]]))
    for wrong in (mask.float(), mask.view(2, 17), torch.zeros(34, dtype=torch.bool)):
        with pytest.raises(InputError, match="train_mask"):
            model.set_sources(wrong)


def test_grandpp_grows_along_the_ones_vector(data: Any) -> None:
    model = make("grand++-l", method="euler")
    model.set_sources(torch.arange(34) < 5)
    with torch.no_grad():
        early, late = model.trajectory(data.x, data.edge_index, [200.0, 400.0])
    # Beyond the transient every node moves by the same amount: X grows, differences between nodes do not.
    torch.testing.assert_close(late - early, (late - early).mean(0).expand(34, HIDDEN), atol=1e-8, rtol=0.0)
    assert float((late - early).abs().max()) > 1.0
