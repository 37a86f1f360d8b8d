import json

import pytest

from dissensus import cli


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DISSENSUS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def call(monkeypatch, capsys):
    """Run a command in this process: exit code, standard output, standard error."""
    for name in ("train", "predict"):
        monkeypatch.setitem(cli.COMMANDS, name, (name, ""))

    def run(*arguments):
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def answer(call):
    """Run a command with --json that must succeed, and parse what it prints."""

    def run(*arguments):
        code, out, err = call(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run
