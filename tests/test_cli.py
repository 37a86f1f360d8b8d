import ast
import json
import os
import re
import subprocess
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

from dissensus import __version__, cli, nn
from dissensus.errors import InputError


def call(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dissensus", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A command named ``probe`` whose ``run`` a test may replace."""
    module = types.ModuleType("dissensus.cli.probe", "Probe something.")
    module.configure = lambda parser: parser.add_argument("--size", type=int, default=3, help="how much")
    module.run = lambda args: print(args.size) or 0
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.COMMANDS, "probe", "probe something")
    return module


@pytest.mark.parametrize("arguments", [["--help"], ["models", "--help"], ["data"], ["--version"]])
def test_torch_is_not_imported(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom dissensus.cli import main\n"
        f"try:\n    code = main({arguments!r})\nexcept SystemExit as end:\n    code = end.code\n"
        "heavy = {'torch', 'torch_geometric', 'scipy', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy), code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "HEAVY [] 0" in done.stderr
    assert done.stdout


def test_importing_the_package_is_light() -> None:
    code = "import sys, dissensus; print(dissensus.__version__, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == [__version__, "False"]


@pytest.mark.parametrize(("given", "spins"), [(None, "1000"), ("7", "7")])
def test_thread_pool_spins_for_a_short_time(
    given: str | None, spins: str, command: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", given or "")
    if given is None:
        monkeypatch.delenv("GOMP_SPINCOUNT")
    seen = []
    command.run = lambda args: seen.append(os.environ["GOMP_SPINCOUNT"]) or 2
    assert cli.main(["probe"]) == 2
    assert seen == [spins]
    assert os.environ.get("GOMP_SPINCOUNT") == given


def test_help_names_every_command() -> None:
    done = call("--help")
    assert done.returncode == 0
    for name, text in cli.COMMANDS.items():
        assert f"  {name}" in done.stdout
        assert text in done.stdout


def test_version() -> None:
    done = call("--version")
    first, *used = done.stdout.splitlines()
    assert (done.returncode, first) == (0, f"dissensus {__version__}")
    assert f"torch {metadata.version('torch')}" in used


@pytest.mark.slow
def test_a_terminal_without_greek_letters() -> None:
    done = call("models", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "bimp" in done.stdout
    done = call("models", "--json", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert json.loads(done.stdout)["bimp"]["equation"] == nn.info("bimp").equation


@pytest.mark.slow
def test_a_reader_that_has_gone() -> None:
    for arguments in (["models"], ["models", "--json"], ["--version"]):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "dissensus", *arguments]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
        os.close(write)
        assert (done.returncode, done.stderr) == (0, "")


def test_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["modles"])
    assert ended.value.code == 2
    assert "unknown command 'modles': did you mean 'models'? Known: " in capsys.readouterr().err


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    printed = capsys.readouterr()
    assert "commands:" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["models", "--jsn"], "dissensus models: error: unknown arguments --jsn"),
        (["train", "karate", "--num-layers", "3"], "--num-layers 3: to set an option of the model, use --set model."),
        (["train"], "dissensus train: error: the following arguments are required: NAME|FILE"),
        (["train", "karate", "--lr", "fast"], "--lr: invalid float value: 'fast'"),
    ],
)
def test_wrong_use_is_told_in_two_lines(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    error, where = capsys.readouterr().err.splitlines()
    assert said in error
    assert where == f"'dissensus {arguments[0]} --help' lists the arguments"


def test_help_keeps_paragraphs_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    text = capsys.readouterr().out
    assert "\n\n    dissensus train cora --model bimp --preset tuned\n    dissensus train my_graph/" in text
    assert "\n\nYour own graph is" in text


def test_arguments_reach_the_command(command: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probe", "--size", "7"]) == 0
    assert capsys.readouterr().out == "7\n"


def test_exit_code_of_the_command(command: types.ModuleType) -> None:
    command.run = lambda args: 5
    assert cli.main(["probe"]) == 5


def test_help_of_a_command_shows_its_docstring_and_defaults(
    command: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["probe", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "Probe something." in text
    assert "how much (default: 3)" in text


def test_errors_are_one_line(command: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def run(args: object) -> int:
        raise InputError("x is wrong: make it right")

    command.run = run
    assert cli.main(["probe"]) == 1
    printed = capsys.readouterr()
    assert printed.err == "dissensus: error: x is wrong: make it right\n"
    assert printed.out == ""


def messages() -> list[tuple[Path, str]]:
    """The texts within each call that makes an error, by file."""
    root, found = Path(cli.__file__).parents[1], []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
                texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                found += [(path.relative_to(root), text) for text in texts if isinstance(text, str)]
    return found


def flags(command: str) -> set[str]:
    parser = cli.command_line(declared=True)[1][command]
    return {flag for action in parser._actions for flag in action.option_strings}


def test_errors_name_flags_that_exist() -> None:
    """Of the command itself in its own module; elsewhere of the command named before it, or of any."""
    declared = {name: flags(name) for name in cli.COMMANDS if name != "probe"}
    shared = {"_opinions": ["simulate", "bifurcation"]}
    checked = 0
    for path, text in messages():
        for before, flag in re.findall(r"(?:(\w+) )?(?<![\w-])(--[a-z][a-z-]*)", text):
            if before in declared:
                where = [before]
            elif path.parts[0] == "cli":
                where = shared.get(path.stem, [path.stem])
            else:
                where = [max(declared, key=lambda name: flag in declared[name])]
            for name in where:
                assert flag in declared[name], f"{path} names {flag}, which dissensus {name} has not"
                checked += 1
    assert checked > 30


@pytest.mark.parametrize(
    "arguments",
    [
        ["bifurcation", "parts.csv"],
        ["bifurcation", "chain.csv", "--directed"],
        ["bifurcation", "--saturation", "relu"],
        ["bifurcation", "--range", "1e9"],
        ["bifurcation", "--damping", "0"],
        ["simulate", "foes.csv", "--self-reinforcement", "-1"],
        ["simulate", "chain.csv", "--directed", "--self-reinforcement", "0"],
        ["simulate", "--saturation", "linear", "--attention", "9", "--time", "1000"],
        ["simulate", "--model", "voter"],
        ["simulate", "--time", "inf"],
        ["simulate", "--attention", "-1"],
        ["simulate", "--attention", "nan"],
        ["simulate", "--input", "inf"],
    ],
)
@pytest.mark.slow
def test_cures_can_be_followed_from_the_command_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No cure asks for a Python argument that is no flag of the command."""
    monkeypatch.chdir(tmp_path)
    Path("parts.csv").write_text("a,b\nc,d\n")
    Path("foes.csv").write_text("a,b,-1\nb,c,-1\nc,a,-1\n")
    Path("chain.csv").write_text("a,b\nb,c\n")
    command, *rest = arguments
    assert cli.main([command, "--agents", "4", *rest]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("dissensus: error: ")
    python = "options|normalize|u_max|step|rtol|atol|max_steps|count|float64"
    cure = error.rpartition(": ")[2]
    for name in re.findall(rf"--[a-z-]+|\b(?:{python})\b", cure):
        assert (name if name.startswith("--") else f"--{name}") in flags(command), error


def test_bugs_keep_their_traceback(command: types.ModuleType) -> None:
    def run(args: object) -> int:
        raise ZeroDivisionError

    command.run = run
    with pytest.raises(ZeroDivisionError):
        cli.main(["probe"])


def test_interrupt(command: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def run(args: object) -> int:
        raise KeyboardInterrupt

    command.run = run
    assert cli.main(["probe"]) == 130
    assert "interrupted" in capsys.readouterr().err
