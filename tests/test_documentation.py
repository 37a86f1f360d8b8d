"""README and documentation: their Python runs, their commands parse, their numbers are those of the results."""

import argparse
import csv
import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

import dissensus
from dissensus import cli, data, nn, studies

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "results" / "README.md",
        ROOT / "benchmarks" / "README.md",
        *(path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in ("_build", "reference")),
    ]
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(path.read_text(encoding="utf-8")) if kind == language]


def commands() -> list[tuple[str, str]]:
    """Every line of a code block, and every piece of code in a sentence, that calls the command line."""
    found = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        lines = [line for block in blocks(path, "") for line in block.splitlines()]
        inline = re.findall(r"`(dissensus \w+ [^`]+)`", BLOCK.sub("", text))
        calls = [" ".join(line.split(" > ")[0].split()) for line in [*lines, *inline] if line.startswith("dissensus ")]
        found += [(str(path.relative_to(ROOT)), call) for call in calls]
    for name in cli.COMMANDS:
        text = importlib.import_module(f"dissensus.cli.{name}").__doc__ or ""
        examples = re.findall(r"^    (dissensus .*?)(?: > .*)?$", text, re.MULTILINE)
        found += [(f"dissensus {name} --help", call) for call in examples]
    return found


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(blocks(ROOT / "README.md", "python"))))
def test_python_of_the_readme_runs(index: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks(ROOT / "README.md", "python")[index], "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_there_are_commands() -> None:
    pages = {page for page, _ in commands()}
    assert {"README.md", "docs/guides/scaling.md", "docs/start/practitioner.md", "dissensus train --help"} <= pages


@pytest.mark.parametrize(("page", "call"), commands())
def test_commands_parse(page: str, call: str) -> None:
    _, *arguments = shlex.split(call, comments=True)
    if not {"COMMAND", "NAME", "STUDY", "-h", "--help", "--version"}.isdisjoint(arguments):
        return  # a form, or nothing but a parser
    try:
        args = cli.command_line()[0].parse_args(arguments)
    except SystemExit:
        pytest.fail(f"{page}: {call}")
    for model in names_in(args, "model", "models"):
        nn.info(model)
    graph = getattr(args, "dataset", None) or getattr(args, "graph", None)
    if (
        isinstance(graph, str)
        and "/" not in graph
        and "." not in graph
        and arguments[0] in ("train", "tune", "measure")
    ):
        assert graph in data.names()
    if arguments[0] == "reproduce":
        assert arguments[1] in (*studies.STUDIES, "all")


def names_in(args: argparse.Namespace, *options: str) -> list[str]:
    values = [getattr(args, option, None) for option in options]
    named = [value if isinstance(value, str) else ",".join(value) for value in values if value]
    simulated = ("nonlinear", "degroot", "consensus", "altafini")
    return [name for value in named for name in value.split(",") if name not in simulated]


@pytest.mark.parametrize("room", dissensus._ROOMS)
def test_every_public_name_is_in_the_reference(room: str, generate: ModuleType) -> None:
    page = generate.room_page(room)
    for name in importlib.import_module(f"dissensus.{room}").__all__:
        directive = rf"^\.\. (auto\w+:: dissensus\.{room}\.{name}|py:data:: {name})$"
        assert len(re.findall(directive, page, re.MULTILINE)) == 1, name


def test_every_flag_is_in_the_reference(generate: ModuleType) -> None:
    page = generate.command_page()
    for name, parser in cli.command_line(declared=True)[1].items():
        section = page.split(f"## dissensus {name}\n")[1].split("\n## ")[0]
        for action in parser._actions[1:]:
            for flag in action.option_strings:
                assert f"`{flag}" in section, (name, flag)


def test_pages_name_no_missing_number(generate: ModuleType) -> None:
    known = generate.numbers()
    for path in PAGES:
        if DOCS in path.parents:
            wanted = set(re.findall(r"\{\{ (\w+) \}\}", path.read_text(encoding="utf-8")))
            assert wanted <= set(known), path


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    names = {"Coauthor CS": "coauthor-cs", "CoauthorCS": "coauthor-cs"}
    rows = re.findall(
        r"^\| ([A-Z]\w+) \| ([^|]+) \| ([^|]+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", readme_results(), re.MULTILINE
    )
    assert 1 <= len(rows) <= 8
    for shown, bimp, paper, gcn in rows:
        dataset = names.get(shown, shown.lower())
        assert [bimp, gcn] == [measured(dataset, "bimp"), measured(dataset, "gcn")], shown
        assert paper == measured(dataset, "bimp", ("as-printed",), missing="–"), shown


def readme_results() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8").split("## Results")[1]


def measured(
    dataset: str, model: str, tables: tuple[str, ...] = ("homophilic", "heterophilic"), missing: str | None = None
) -> str:
    """A cell of the accuracy tables as the README writes it: mean ± standard deviation (samples)."""
    for study in tables:
        with (ROOT / "results" / study / "tables" / "accuracy.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["model"] == model and row.get(dataset):
                    spread = row[f"{dataset} std"]
                    shown = f" ± {float(spread):.1f}" if spread else ""
                    return f"{float(row[dataset]):.1f}{shown} ({row[f'{dataset} n']})"
    if missing is None:
        raise AssertionError(f"{model} on {dataset} is in no table")
    return missing
