import json

import pytest

from dissensus.cli import command_line
from dissensus.cli import theory as command
from dissensus.errors import InputError
from dissensus.studies import theory
from dissensus.studies.theory._check import CORRECTED
from theory_verdicts import EXPECTED


def run(*arguments: object) -> int:
    parser = command_line()[1]["theory"]
    return command.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.mark.slow
def test_the_command_prints_one_row_a_check(capsys):
    assert run("--nodes", 8) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, verdict in EXPECTED.items():
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert line.endswith(verdict)
    assert any("'dissensus theory NAME'" in line for line in lines)


@pytest.mark.slow
def test_the_command_shows_one_check_in_detail(capsys):
    assert run("gradient-upper", "--nodes", 6) == 0
    out = capsys.readouterr().out
    found = theory.examine("gradient-upper", nodes=6).checks[0]
    assert found.note in out
    for fact in found.facts:
        assert fact.label in out
    assert "≥ 1 (as printed)  no" in out


@pytest.mark.slow
def test_the_command_prints_one_json_object(capsys, monkeypatch):
    assert run("gradient-upper", "--nodes", 8, "--json") == 0
    assert json.loads(capsys.readouterr().out)["checks"][0]["facts"]
    assert run("grand++", "--nodes", 8, "--seed", 2, "--json") == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    (check,) = found["checks"]
    expected = theory.examine("grand++", nodes=8, seed=2).checks[0]
    assert check["evidence"] == expected.evidence
    assert check["verdict"] == CORRECTED
    assert found["verdicts"] == {CORRECTED: 1}
    assert (found["seed"], found["nodes"], found["graphs"]) == (2, 8, 3)
    assert {fact["printed"] for fact in check["facts"]} == {True, False}
    assert any(fact["low"] is None for fact in check["facts"])


@pytest.mark.parametrize("arguments", [("grand+",), ("--nodes", 2), ("--seed", -1)])
def test_the_command_refuses_bad_input(capsys, arguments):
    with pytest.raises(InputError):
        run(*arguments)
    assert capsys.readouterr().out == ""
