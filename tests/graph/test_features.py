import gc
import weakref

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dissensus import errors, graph
from dissensus.errors import InputError
from dissensus.graph import SparseFeatures, _features, features


def words(n: int = 40, width: int = 30) -> Tensor:
    """Bag-of-words features, four per cent filled, one row empty."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(n, width, generator=generator)
    x = x * (torch.rand(n, width, generator=generator) < 0.04)
    x[3] = 0
    return x


def test_few_non_zeros_become_sparse_and_many_stay_dense() -> None:
    x = words()
    assert isinstance(features(x), SparseFeatures)
    assert torch.equal(features(x).to_dense(), x)
    full = torch.rand(40, 30)
    assert features(full) is full


@pytest.mark.parametrize("convert", [Tensor.to_sparse_coo, Tensor.to_sparse_csr, Tensor.to_sparse_csc])
def test_sparse_tensors_are_taken(convert: object) -> None:
    x = words()
    assert torch.equal(features(convert(x)).to_dense(), x)


def test_duplicate_coordinates_add_up() -> None:
    x = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.tensor([1.0, 2.0]), (2, 3))
    assert torch.equal(features(x).to_dense(), x.to_dense())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_linear_equals_dense(dtype: torch.dtype) -> None:
    x = words().to(dtype)
    weight, bias = torch.randn(7, 30, dtype=dtype, requires_grad=True), torch.randn(7, dtype=dtype)
    cotangent = torch.randn(40, 7, dtype=dtype)
    sparse, dense = features(x).linear(weight, bias), F.linear(x, weight, bias)
    torch.testing.assert_close(sparse, dense)
    torch.testing.assert_close(*(torch.autograd.grad(y, weight, cotangent)[0] for y in (sparse, dense)))
    torch.testing.assert_close(features(x).linear(weight), F.linear(x, weight))


def test_dropout_has_the_distribution_of_dense_dropout() -> None:
    torch.manual_seed(0)
    x = torch.zeros(200, 200)
    x[::4, ::7] = 2.0
    dropped = features(x).dropout(0.3, True)
    stored = dropped.to_dense()[x > 0]
    assert (dropped.to_dense()[x == 0] == 0).all()
    assert set(stored.unique().tolist()) == {0.0, torch.tensor(2.0 / 0.7).item()}
    # The share of survivors of a binomial with p = 0.7, within four standard deviations.
    share = (stored > 0).double().mean().item()
    assert abs(share - 0.7) < 4 * (0.3 * 0.7 / stored.numel()) ** 0.5
    assert not torch.equal(features(x).dropout(0.3, True).values, dropped.values)


def test_no_dropout_outside_training_or_at_rate_zero() -> None:
    sparse = features(words())
    assert sparse.dropout(0.5, False) is sparse
    assert sparse.dropout(0.0, True) is sparse


def test_kept_until_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = words()
    first = features(x)
    with monkeypatch.context() as patch:
        patch.setattr(_features, "_convert", lambda _: pytest.fail("converted again"))
        assert features(x) is first
    x[3, 3] = 5.0
    assert torch.equal(features(x).to_dense(), x)
    x[3, 3] = torch.nan
    with pytest.raises(InputError, match="node 3, feature 3"):
        features(x)


def test_forgotten_with_the_tensor() -> None:
    x = words()
    kept = weakref.ref(features(x))
    del x
    gc.collect()
    assert kept() is None


def test_features_that_need_a_gradient_stay_dense_even_if_seen_before() -> None:
    x = words()
    assert isinstance(features(x), SparseFeatures)
    x.requires_grad_()
    assert features(x) is x


def test_gradient_of_sparse_tensors_twice() -> None:
    x = words().to_sparse().requires_grad_()
    weight = torch.randn(7, 30)
    grads = []
    for _ in range(2):
        x.grad = None
        features(x).linear(weight).square().sum().backward()
        grads.append(x.grad.to_dense())
    dense = words().requires_grad_()
    F.linear(dense, weight).square().sum().backward()
    torch.testing.assert_close(grads[0], dense.grad * (dense != 0))
    torch.testing.assert_close(grads[0], grads[1])


def test_seen_first_in_inference_mode_serves_training() -> None:
    x, weight = words(), torch.randn(7, 30, requires_grad=True)
    with torch.inference_mode():
        features(x)
    features(x).linear(weight).sum().backward()
    assert weight.grad is not None


def test_inference_tensors() -> None:
    with torch.inference_mode():
        x = words().clone()
        assert torch.equal(features(x).to_dense(), x)
        x[3, 3] = 5.0
        assert torch.equal(features(x).to_dense(), x)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty(shape: tuple[int, int]) -> None:
    assert features(torch.zeros(shape)).shape == shape
    assert SparseFeatures.from_dense(torch.zeros(shape)).linear(torch.ones(2, shape[1])).shape == (shape[0], 2)


def test_all_zero() -> None:
    x = features(torch.zeros(4, 3))
    assert torch.equal(x.linear(torch.ones(2, 3), torch.ones(2)), torch.ones(4, 2))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("kind", ["dense", "few", "sparse", "features"])
def test_not_finite(value: float, kind: str) -> None:
    x = torch.rand(40, 30) if kind == "dense" else words()
    x[7, 11] = value
    given = {"sparse": x.to_sparse(), "features": SparseFeatures.from_dense(x)}.get(kind, x)
    with pytest.raises(InputError, match=r"node 7, feature 11.*nan_to_num"):
        features(given)


def test_large_values_whose_sum_overflows_are_fine() -> None:
    x = torch.full((4, 4), 3e38)
    assert features(x) is x


@pytest.mark.parametrize(
    ("x", "cure"),
    [
        (torch.ones(3), r"\[nodes, features\]"),
        (torch.ones(3, 4, 5), r"\[nodes, features\]"),
        (torch.ones(2, 3, 4).to_sparse(), r"\[nodes, features\]"),
        (torch.ones(3, 4, dtype=torch.int64), r"x\.float\(\)"),
        (torch.ones(3, 4, dtype=torch.bool), r"x\.float\(\)"),
        (torch.ones(3, 4, dtype=torch.int64).to_sparse(), r"x\.float\(\)"),
        ([[1.0]], "torch tensor"),
    ],
)
def test_bad_features(x: Tensor, cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        features(x)


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
