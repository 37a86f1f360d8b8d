"""Blocks of memory that come back when their last user is gone."""

import pytest
import torch

from dissensus import _memory
from dissensus._memory import empty_like


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "LEAST", 256)
    monkeypatch.setattr(_memory, "MOST", 4096)
    monkeypatch.setattr(_memory, "_unused", {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("rows", [2, 100])
def test_shapes(dtype: torch.dtype, rows: int) -> None:
    x = torch.zeros(rows, 3, dtype=dtype)
    for made, shape in (
        (empty_like(x), (rows, 3)),
        (empty_like(x, 5), (5, rows, 3)),
        (empty_like(x, rows=7 * rows), (7 * rows, 3)),
        (empty_like(x[:0]), (0, 3)),
    ):
        assert made.shape == shape
        assert made.dtype == dtype
        assert made.is_contiguous()
        assert not made.requires_grad
        assert bool((made.fill_(3) == 3).all())


def test_memory_is_used_again() -> None:
    x = torch.zeros(100)
    first = empty_like(x)
    place = first.data_ptr()
    assert place % _memory._PAGE == 0
    other = empty_like(x)
    assert other.data_ptr() != place  # which is still in use
    del first
    assert empty_like(x[:80]).data_ptr() == place  # a little smaller
    assert list(_memory._unused) == [400]
    empty_like(x[:65])  # much smaller
    assert list(_memory._unused) == [260]


def test_small_memory_is_left_to_torch() -> None:
    x = torch.zeros(63)
    made = empty_like(x)
    del made
    assert not _memory._unused


@pytest.mark.parametrize("user", [lambda t: t[3:], lambda t: t.numpy(), lambda t: t.view(10, 10).t(), torch.detach])
def test_a_view_keeps_it(user: object) -> None:
    x = torch.zeros(100)
    made = empty_like(x).fill_(1.0)
    view = user(made)  # type: ignore[operator]
    del made
    assert not _memory._unused
    empty_like(x).fill_(2.0)
    assert (view == 1.0).all()
    del view
    assert _memory._unused


def test_what_autograd_saved_keeps_it() -> None:
    w = torch.ones(100, requires_grad=True)
    made = empty_like(w).fill_(3.0)
    value = (w * made).sum()
    del made
    empty_like(w).fill_(5.0)
    value.backward()
    assert torch.equal(w.grad, torch.full((100,), 3.0))


def test_little_lies_unused() -> None:
    x = torch.zeros(100)
    many = [empty_like(x) for _ in range(20)]
    last = many[-1].data_ptr()
    while many:
        many.pop(0)  # the one of `last` comes back last
    (unused,) = _memory._unused.values()
    assert len(unused) == _memory.MOST // 400
    assert last in {block.ctypes.data for block in unused}


def test_what_is_mapped_anew_takes_the_place_of_what_lies_unused() -> None:
    for n in range(70, 140, 3):
        states = [empty_like(torch.zeros(n)) for _ in range(3)]
        del states
    assert {length: len(blocks) for length, blocks in _memory._unused.items()} == {4 * 139: 3}
