"""``normalize_features``: every node's features at Euclidean norm one, dense or sparse, in every model."""

from typing import Any

import pytest
import torch

from dissensus import errors, graph, nn, train


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


@pytest.mark.parametrize("share", [0.05, 0.6], ids=["sparse", "dense"])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo])
def test_hellinger_takes_the_root_of_the_shares(share: float, layout: torch.layout) -> None:
    torch.manual_seed(0)
    x = torch.rand(30, 40) * (torch.rand(30, 40) < share)
    x[3] = 0.0
    expected = (x / x.sum(1, keepdim=True).clamp_min(1e-12)).sqrt()
    found = graph.features(x if layout == torch.strided else x.to_sparse_coo(), normalize="hellinger")
    dense = found.to_dense() if isinstance(found, graph.SparseFeatures) else found
    torch.testing.assert_close(dense, expected)
    # The three forms of one tensor are kept apart.
    assert not torch.allclose(torch.nn.functional.normalize(x, dim=1), expected)
    plain = graph.features(x, normalize=True)
    dense = plain.to_dense() if isinstance(plain, graph.SparseFeatures) else plain
    torch.testing.assert_close(dense, torch.nn.functional.normalize(x, dim=1))


def test_gradient_reaches_features_through_the_root() -> None:
    x = torch.rand(5, 4, dtype=torch.float64) + 0.1
    x[1, 2] = 0.0
    x.requires_grad_()
    found = graph.features(x, normalize="hellinger")
    found.sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    positive = (torch.rand(5, 4, dtype=torch.float64) + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: graph.features(x, normalize="hellinger"), (positive,))


@pytest.mark.parametrize("share", [0.05, 1.0], ids=["sparse", "dense"])
def test_negative_features_have_no_shares(share: float) -> None:
    x = torch.rand(30, 40) * (torch.arange(40) < 40 * share)
    x[7, 1] = -1.0
    with pytest.raises(errors.InputError, match=r"negative at node 7, feature 1.*normalize_features=True"):
        graph.features(x, normalize="hellinger")


@pytest.mark.parametrize("wrong", ["l2", 1, None])
def test_unknown_normalisation_is_rejected_before_any_work(wrong: Any) -> None:
    for name in ("bimp", "gcn", "sgc"):
        with pytest.raises(errors.InputError, match='use False, True or "hellinger"'):
            nn.create(name, in_channels=4, hidden_channels=3, out_channels=2, normalize_features=wrong)
    with pytest.raises(errors.InputError, match='use False, True or "hellinger"'):
        graph.features(torch.rand(2, 2), normalize=wrong)


def test_a_training_run_takes_it_as_a_setting() -> None:
    flags = {"model.normalize_features": "hellinger", "train.epochs": 1, "model.hidden_channels": 4}
    result = train.run(train.resolve("karate", "gcn", flags=flags))
    assert result.config.as_dict()["model"]["normalize_features"] == "hellinger"


def test_no_own_score_is_the_softmax_of_the_paper() -> None:
    model = nn.BIMP(4, 3, 2, own_score=0.0)
    assert model.options.own_score is None
    assert not [name for name, _ in model.named_parameters() if "own_score" in name]
    x, edges = torch.rand(6, 4), torch.tensor([[0, 1], [1, 2]])
    options = model.graphs(x, edges)[1]
    torch.testing.assert_close(options.sum(1), torch.ones(3))
    model(x, edges).sum().backward()
