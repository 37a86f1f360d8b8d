"""Products with a sparse matrix against those with the dense one, by every routine."""

import pytest
import torch
from torch import Tensor

from dissensus.graph import Pattern
from dissensus.kernels import _blocks, _sparse, sampled_product, sparse_product

ROWS, COLUMNS, CHANNELS = 6, 4, 3


def matrix(dtype: torch.dtype) -> tuple[Pattern, Tensor, Tensor]:
    """A pattern with an empty row, its values, and the dense matrix."""
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(ROWS, COLUMNS, generator=generator, dtype=dtype)
    dense *= torch.rand(ROWS, COLUMNS, generator=generator) < 0.5
    dense[2] = 0.0
    row, col = dense.nonzero(as_tuple=True)
    return Pattern(row, col, (ROWS, COLUMNS)), dense[row, col], dense


@pytest.fixture(params=["usual", "in blocks", "without MKL"])
def routine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in blocks":
        monkeypatch.setattr(_blocks, "_LARGE_BYTES", 0)
        monkeypatch.setattr(_blocks, "_BLOCK_BYTES", 2 * CHANNELS * 4)  # two rows of float32
    elif request.param == "without MKL":
        monkeypatch.setattr(_sparse, "_MKL", False)


@pytest.mark.usefixtures("routine")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("scale", [1.0, -0.5])
def test_sparse_product(dtype: torch.dtype, add: bool, scale: float) -> None:
    pattern, values, dense = matrix(dtype)
    x, more = torch.randn(COLUMNS, CHANNELS, dtype=dtype), torch.randn(ROWS, CHANNELS, dtype=dtype)
    expected = scale * (dense @ x + (more if add else 0.0))
    a = pattern.rowptr, pattern.row, pattern.col, values
    given = more.clone() if add else None
    torch.testing.assert_close(sparse_product(*a, x, add=given, scale=scale), expected)
    for out in (torch.full_like(more, torch.nan), *([] if given is None else [given])):
        assert sparse_product(*a, x, add=given, scale=scale, out=out) is out
        torch.testing.assert_close(out, expected)


@pytest.mark.usefixtures("routine")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sampled_product(dtype: torch.dtype) -> None:
    pattern, _, _ = matrix(dtype)
    a, b = torch.randn(ROWS, CHANNELS, dtype=dtype), torch.randn(COLUMNS, CHANNELS, dtype=dtype)
    expected = 2.0 * (a @ b.T)[pattern.row.long(), pattern.col.long()]
    positions = pattern.rowptr, pattern.row, pattern.col
    torch.testing.assert_close(sampled_product(*positions, a, b, scale=2.0), expected)
    out = torch.ones(pattern.entries, dtype=dtype)
    assert sampled_product(*positions, a, b, scale=2.0, out=out) is out
    torch.testing.assert_close(out, expected + 1.0)
