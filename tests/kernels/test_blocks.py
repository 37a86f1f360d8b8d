"""Blocks of rows cover a state once, and only a large one has several."""

import pytest
import torch

from dissensus.kernels import _blocks


@pytest.mark.parametrize(("rows", "channels"), [(1, 1), (7, 3), (8, 3), (100, 1)])
def test_blocks_cover_all_rows_once(rows: int, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.zeros(rows, channels)
    assert not _blocks.is_large(x)
    assert [x[block].shape for block in _blocks.row_blocks(x)] == [x.shape]
    monkeypatch.setattr(_blocks, "_LARGE_BYTES", 0)
    monkeypatch.setattr(_blocks, "_BLOCK_BYTES", 24)
    for block in _blocks.row_blocks(x):
        assert 0 < x[block].numel() * 4 <= 24
        x[block] += 1
    assert torch.equal(x, torch.ones(rows, channels))


def test_a_state_without_rows_has_no_blocks() -> None:
    assert list(_blocks.row_blocks(torch.zeros(0, 3))) == []


def test_a_large_state_has_blocks_of_four_megabytes() -> None:
    x = torch.empty(2**17, 128)
    assert _blocks.is_large(x)
    assert {x[block].numel() * 4 for block in _blocks.row_blocks(x)} == {2**22}
