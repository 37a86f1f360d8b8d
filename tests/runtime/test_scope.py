"""A scope gives back what it changes."""

import os

import pytest
import torch

from dissensus import runtime
from dissensus.errors import InputError


def test_threads_and_variables_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAKEN", "mine")
    monkeypatch.delenv("FREE", raising=False)
    before = torch.get_num_threads()

    def fail() -> None:
        with runtime.scope(threads=before + 1, environment={"TAKEN": "theirs", "FREE": "theirs"}):
            assert torch.get_num_threads() == before + 1
            assert (os.environ["TAKEN"], os.environ["FREE"]) == ("mine", "theirs")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.get_num_threads() == before
    assert os.environ["TAKEN"] == "mine"
    assert "FREE" not in os.environ


def test_no_threads_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"), runtime.scope(threads=0):
        pass
