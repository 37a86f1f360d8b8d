"""The command ``reproduce`` in an empty folder."""

import json

import pytest

from dissensus import cli


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = cli.main(["reproduce", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def answer(call):
    def run(*arguments):
        code, out, err = call(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run
