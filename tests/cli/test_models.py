import json
import subprocess
import sys

import pytest

from dissensus import nn


def call(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dissensus", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.slow
def test_models() -> None:
    done = call("models")
    assert done.returncode == 0
    for info in map(nn.info, nn.names()):
        assert info.equation in done.stdout
        assert info.source in done.stdout


@pytest.mark.slow
def test_models_json_is_one_object() -> None:
    done = call("models", "--json")
    facts = json.loads(done.stdout)
    assert list(facts) == nn.names()
    assert facts["bimp"]["equation"] == nn.info("bimp").equation
    assert done.stderr == ""
