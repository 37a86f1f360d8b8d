"""Sums of states against the formula."""

import pytest
import torch

from dissensus.kernels import linear_combination


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
