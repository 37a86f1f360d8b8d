"""Settings that hold inside a block and not after it."""

import pytest
import torch

from dissensus import runtime
from dissensus.runtime import _training


def flushes() -> bool:
    return not bool(torch.tensor(1e-40) * 1.0)


@pytest.mark.parametrize("batches", [False, True])
def test_settings_end_with_the_block(batches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[dict[int, int]] = []
    monkeypatch.setattr(_training, "_set", settings.append)
    before = flushes()

    def fail() -> None:
        with runtime.training(batches=batches):
            assert flushes()
            with runtime.training():
                pass
            assert flushes()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert flushes() == before
    outer = _training._RETURN if batches else _training._KEEP
    assert settings == [outer, _training._KEEP, outer, _training._DEFAULT]


@pytest.mark.slow
def test_import_and_model_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from dissensus import nn

    monkeypatch.setattr(_training, "_set", lambda _: pytest.fail("memory settings changed"))
    threads, before = torch.get_num_threads(), flushes()
    model = nn.BIMP(3, 4, 2)
    model(torch.ones(2, 3), torch.tensor([[0, 1], [1, 0]])).sum().backward()
    assert (torch.get_num_threads(), flushes()) == (threads, before)
