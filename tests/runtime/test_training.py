"""Settings that make training faster hold inside a block and not after it."""

import pytest
import torch

from dissensus import runtime
from dissensus.runtime import _training


def flushes() -> bool:
    return not bool(torch.tensor(1e-40) * 1.0)


@pytest.mark.parametrize("batches", [False, True])
def test_settings_end_with_the_block(batches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[dict[int, int]] = []
    monkeypatch.setattr(_training, "_set_thresholds", settings.append)
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
    assert settings == [outer, _training._KEEP, outer, _training._AFTER]


@pytest.mark.parametrize(
    ("variable", "value", "calls"),
    [
        ("UNRELATED", "1", 4),
        ("MALLOC_TRIM_THRESHOLD_", "1000", 0),
        ("MALLOC_MMAP_THRESHOLD_", "1000", 0),
        ("MALLOC_MMAP_MAX_", "10", 0),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1000", 0),
        ("GLIBC_TUNABLES", "glibc.cpu.x86_ibt=off", 4),
    ],
)
def test_thresholds_of_the_user_stay(variable: str, value: str, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, ...]] = []
    monkeypatch.setattr(_training, "_libc", lambda name: lambda *arguments: made.append(arguments))
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    _training._set_thresholds(_training._AFTER)  # three parameters, and free memory returned
    assert len(made) == calls
