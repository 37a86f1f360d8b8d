"""Linear combinations of states: the package's own kernels, and torch in their place, against the formulas."""

import math

import pytest
import torch
from torch import Tensor

from dissensus import _native
from dissensus.solve import Sum
from dissensus.solve._sums import Sums

SHAPES = [(1,), (6, 4), (7, 5), (2, 30, 16), (601, 99)]
ROWS = [(0.5,), (-2.0, 0.25), (1.5, -0.3, 0.1), (3.0, -1.0, 0.7, 0.2, -0.6)]


@pytest.fixture(params=["kernels", "torch"], autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "torch":
        monkeypatch.setattr(_native, "_library", None)
    elif _native._library is None:
        pytest.skip("built without its kernels")


def make(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(5, *shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


def sums_of(states: Tensor, others: int) -> Sums:
    return Sums(list(states[:others]), states[others:], ROWS)


def expected(states: Tensor, weights: tuple[float, ...]) -> Tensor:
    return sum((w * s for w, s in zip(weights, states.double(), strict=False)), torch.zeros(()).double())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("others", [1, 3, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sums(shape: tuple[int, ...], others: int, dtype: torch.dtype, threads: int) -> None:
    states, before = make(shape, dtype), torch.get_num_threads()
    sums, out = sums_of(states, others), torch.empty(shape, dtype=dtype)
    try:
        torch.set_num_threads(threads)
        for i, weights in enumerate(ROWS):
            assert sums(i, out) is out
            torch.testing.assert_close(out, expected(states, weights).to(dtype))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_term_may_depend_on_the_sums_before_it(shape: tuple[int, ...]) -> None:
    states = make(shape)
    filled = torch.full_like(states, torch.nan)
    filled[0] = states[0]
    sums = Sums([filled[0]], filled[1:], ROWS[:3])
    for i in range(3):
        torch.testing.assert_close(sums(i, torch.empty(shape)), expected(states, ROWS[i]).float())
        filled[i + 1] = states[i + 1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cotangents_of_a_sigmoid(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    states, out = make(shape, dtype), torch.empty(shape, dtype=dtype)
    k = torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    room = torch.empty(shape, dtype=dtype)
    cotangent = Sum(sums_of(states, 1), 2, room)
    g = expected(states, ROWS[2]).to(dtype)
    assert cotangent.through_sigmoid(k, out) is out
    torch.testing.assert_close(out, g * k * (1.0 - k))
    assert cotangent.tensor() is room
    torch.testing.assert_close(room, g)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("contiguous", [True, False])
def test_the_last_sum_adds_to_a_total(shape: tuple[int, ...], dtype: torch.dtype, contiguous: bool) -> None:
    states, out = make(shape, dtype), torch.empty(shape, dtype=dtype)
    total = torch.ones(shape, dtype=dtype) if contiguous else torch.ones(*shape, 2, dtype=dtype)[..., 0]
    sums = sums_of(states, 1)
    assert sums.last(ROWS[3], out) is out
    torch.testing.assert_close(out, expected(states, ROWS[3]).to(dtype))
    sums.last(ROWS[3], out.zero_(), ((1.0, 2.0, 3.0, 4.0, 5.0), total))
    torch.testing.assert_close(out, expected(states, ROWS[3]).to(dtype))
    torch.testing.assert_close(total, 1.0 + expected(states, (1.0, 2.0, 3.0, 4.0, 5.0)).to(dtype))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_relative_size(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    states, x, new = make(shape, dtype), -make(shape, dtype)[1], make(shape, dtype)[2]
    scale = 1e-3 + 1e-2 * torch.maximum(x.abs(), new.abs()).double()
    wanted = (expected(states, ROWS[3]) / scale).square().mean().sqrt().item()
    sums = sums_of(states, 2)
    assert sums.relative_rms(3, x, new, 1e-3, 1e-2) == pytest.approx(wanted, rel=1e-5)
    states[4].view(-1)[-1] = math.nan
    assert math.isnan(sums.relative_rms(3, x, new, 1e-3, 1e-2))


def test_strided_terms() -> None:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).t()
    sums = Sums([x, x], x[None][:0], [(1.0, 2.0)])
    torch.testing.assert_close(sums(0, torch.empty(3, 4)), 3.0 * x)
