"""``normalize_features``: every node's features at Euclidean norm one, dense or sparse, in every model."""

from typing import Any

import pytest
import torch

from dissensus import errors, graph, nn


@pytest.mark.parametrize("name", [name for name in nn.names() if name != "label-propagation"])
@pytest.mark.slow
def test_scale_of_features_does_not_matter(name: str) -> None:
    torch.manual_seed(0)
    x, edges = torch.rand(12, 6), torch.randint(12, (2, 30))
    model = nn.create(name, in_channels=6, hidden_channels=8, out_channels=3, normalize_features=True).eval()
    scale = torch.rand(12, 1) + 0.5
    with torch.no_grad():
        torch.testing.assert_close(model(x * scale, edges), model(x, edges), rtol=1e-3, atol=1e-4)
    assert model.config["normalize_features"] is True


def test_gradient_reaches_features_through_the_norm() -> None:
    x = torch.rand(5, 4, dtype=torch.float64, requires_grad=True)
    model = nn.BIMP(4, 3, 2, normalize_features=True, time=1.0, method="euler").double().eval()
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    assert torch.autograd.gradcheck(lambda x: model(x, edges), (x,))


@pytest.mark.parametrize("wrong", ["l2", 1, None])
def test_unknown_normalisation_is_rejected_before_any_work(wrong: Any) -> None:
    for name in ("bimp", "gcn", "sgc"):
        with pytest.raises(errors.InputError, match='use False, True or "hellinger"'):
            nn.create(name, in_channels=4, hidden_channels=3, out_channels=2, normalize_features=wrong)
    with pytest.raises(errors.InputError, match='use False, True or "hellinger"'):
        graph.features(torch.rand(2, 2), normalize=wrong)
