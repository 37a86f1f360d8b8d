import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dissensus import cli


def call(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dissensus", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_its_flags(shell: str) -> None:
    pytest.importorskip("shtab")
    done = call("completion", shell)
    assert done.returncode == 0
    assert all(name in done.stdout for name in cli.COMMANDS)
    assert "splits" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [("tr", "train"), ("train --pre", "--preset"), ("train pyp", "pyproject.toml"), ("reproduce homo", "homophilic")],
)
def test_bash_completes(words: str, expected: str, tmp_path: Path) -> None:
    pytest.importorskip("shtab")
    if shutil.which("bash") is None or sys.platform == "win32":
        pytest.skip("bash is missing")
    script = tmp_path / "completion"
    script.write_text(call("completion", "bash").stdout)
    (tmp_path / "pyproject.toml").touch()
    typed = ["dissensus", *words.split()]
    program = (
        f"source {script}; COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; _shtab_dissensus; "
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout.split() == [expected]


def test_completion_without_shtab_names_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert "dissensus[completion]" in capsys.readouterr().err
