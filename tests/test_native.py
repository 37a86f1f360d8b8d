"""Where the package's own kernels come from, and that they step aside."""

from types import SimpleNamespace

import pytest
import torch

from dissensus import _native


def test_the_environment_leaves_them_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISSENSUS_NATIVE", "0")
    assert _native._load() is None


def test_built_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "EXTENSION_SUFFIXES", [".none"])
    assert _native._load() is None


def test_kernels_of_another_version_are_told_of_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if _native._library is None:
        pytest.skip("built without its kernels")
    monkeypatch.setattr(_native, "_INTERFACE", -1)
    with pytest.warns(UserWarning, match=r"pip install -e \."):
        assert _native._load() is None


@pytest.mark.parametrize(
    "other",
    [
        torch.zeros(4, 6, dtype=torch.float64),
        torch.zeros(4, 6, dtype=torch.int32),
        torch.zeros(6, 4).t(),
        torch.zeros(4, 6, device="meta"),
    ],
)
def test_what_they_take(other: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = torch.zeros(4, 6)
    monkeypatch.setattr(_native, "_library", SimpleNamespace())
    assert _native.serves(fine, None, fine[1:])
    assert not _native.serves(fine, other)
    monkeypatch.setattr(_native, "_library", None)
    assert not _native.serves(fine)
