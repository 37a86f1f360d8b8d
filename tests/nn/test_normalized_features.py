"""``normalize_features``: every node's features at Euclidean norm one, dense or sparse, in every model."""

import pytest
import torch

from dissensus import graph, nn


@pytest.mark.parametrize("share", [0.05, 0.6], ids=["sparse", "dense"])
def test_rows_have_norm_one_and_zero_rows_stay(share: float) -> None:
    torch.manual_seed(0)
    x = torch.rand(30, 40) * (torch.rand(30, 40) < share)
    x[3] = 0.0
    expected = torch.nn.functional.normalize(x, dim=1)
    found = graph.features(x, normalize=True)
    assert isinstance(found, graph.SparseFeatures) == (share < 0.1)
    dense = found.to_dense() if isinstance(found, graph.SparseFeatures) else found
    torch.testing.assert_close(dense, expected)
    # Both forms are kept apart, and a change in place is seen.
    plain = graph.features(x)
    torch.testing.assert_close(plain.to_dense() if isinstance(plain, graph.SparseFeatures) else plain, x)
    x.mul_(3.0)
    again = graph.features(x, normalize=True)
    torch.testing.assert_close(again.to_dense() if isinstance(again, graph.SparseFeatures) else again, expected)


@pytest.mark.parametrize("name", nn.names())
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


def test_no_own_score_is_the_softmax_of_the_paper() -> None:
    model = nn.BIMP(4, 3, 2, own_score=0.0)
    assert model.options.own_score is None
    assert not [name for name, _ in model.named_parameters() if "own_score" in name]
    x, edges = torch.rand(6, 4), torch.tensor([[0, 1], [1, 2]])
    options = model.graphs(x, edges)[1]
    torch.testing.assert_close(options.sum(1), torch.ones(3))
    model(x, edges).sum().backward()
