import json
import subprocess
import sys
from pathlib import Path

import pytest

from dissensus import data
from dissensus.cli import command_line
from dissensus.cli import data as command


def run(*arguments: str) -> int:
    parser = command_line()[1]["data"]
    return command.run(parser.parse_args(arguments))


def test_json_is_one_object_with_every_dataset(capsys: pytest.CaptureFixture[str], small_texas: Path) -> None:
    assert run("--json") == 0
    facts = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in facts["datasets"]}
    assert list(rows) == data.names()
    assert rows["cora"]["nodes"] == 2708
    assert {name: rows[name]["present"] for name in ("digits", "texas", "cora")} == {
        "digits": "built in",
        "texas": "DISSENSUS_DATA",
        "cora": "no",
    }
    assert facts["data_folder"] == str(small_texas.parents[1])


def test_table_has_a_line_for_every_dataset(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISSENSUS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2 : 2 + len(data.names())]] == data.names()
    assert lines[5].split() == ["cora", "2,708", "5,278", "1,433", "7", "0.810", "MIT", "no"]
    assert lines[-2:] == ["raw files: DISSENSUS_DATA is not set", "processed files: /somewhere/dissensus"]
    assert max(map(len, lines)) <= 110


def test_the_command_needs_no_torch() -> None:
    code = (
        "import sys, argparse; from dissensus.cli import data; "
        "data.run(argparse.Namespace(json=True)); assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
