"""Sums and products of states against the formula."""

import pytest
import torch

from dissensus.kernels import _dense, dense_product, linear_combination


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(7,), (4, 3), (0, 3)])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_linear_combination(dtype: torch.dtype, shape: tuple[int, ...], count: int) -> None:
    generator = torch.Generator().manual_seed(0)
    terms = [torch.randn(shape, generator=generator, dtype=dtype) for _ in range(2)]
    stack = torch.randn(3, *shape, generator=generator, dtype=dtype)
    weights = (0.5, -2.0, 3.0, 0.0, 1.5)[:count]
    out = torch.full(shape, torch.nan, dtype=dtype)
    expected = sum(w * v for w, v in zip(weights, [*terms, *stack], strict=False))
    assert linear_combination(weights, terms, stack, out=out) is out
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_dense_product(dtype: torch.dtype, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 7, generator=generator, dtype=dtype)
    matrix = torch.randn(7, 5, generator=generator, dtype=dtype)
    # The routine for AMD processors gives the same on every processor.
    for amd in (False, True):
        monkeypatch.setattr(_dense, "_mkl_misses_avx512", lambda amd=amd: amd)
        out = torch.full((rows, 5), torch.nan, dtype=dtype)
        assert dense_product(x, matrix, out) is out
        torch.testing.assert_close(out, x @ matrix)
        torch.testing.assert_close(dense_product(x, matrix), x @ matrix)
        square, place = matrix @ matrix.T, x.clone()
        torch.testing.assert_close(dense_product(place, square, place.view(rows, 7)), x @ square)
