"""What the documentation shows of the package and its results, written at build time so that it cannot go stale.

Everything lands in ``reference/``, which is not committed. Numbers in sentences are substitutions: ``{{ cora_bimp }}``.
"""

from __future__ import annotations

import argparse
import ast
import csv
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dissensus
from dissensus import cli, report
from dissensus.studies import STUDIES, theory

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
ROOMS = dissensus._ROOMS


def write(docs: Path) -> None:
    """Write all generated pages below ``docs/reference``."""
    out = docs / "reference"
    out.mkdir(exist_ok=True)
    pages = {
        **{f"{room}.md": room_page(room) for room in ROOMS},
        "index.md": reference_page(),
        "command-line.md": command_page(),
        "results.md": results_page(),
        "benchmarks.md": inlined(ROOT / "benchmarks" / "README.md"),
        "models.md": models_page(),
        "checks.md": checks_page(),
        "gallery.md": gallery_page(),
        "changelog.md": inlined(ROOT / "CHANGELOG.md"),
        "contributing.md": inlined(ROOT / "CONTRIBUTING.md"),
    }
    for name, text in pages.items():
        path = out / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    (out / "extra").mkdir(exist_ok=True)
    report.lab(out / "extra" / "laboratory.html")


# The reference of the package.


def public_names() -> Iterator[str]:
    """Every public name with its room, such as ``dissensus.nn.BIMP``."""
    for room in ROOMS:
        for name in importlib.import_module(f"dissensus.{room}").__all__:
            yield f"dissensus.{room}.{name}"


def reference_page() -> str:
    """The page that lists the rooms."""
    rows = [f"| [`dissensus.{room}`]({room}.md) | {_markdown(_first_line(_room(room)))} |" for room in ROOMS]
    tree = "\n".join(["```{toctree}", ":hidden:", *ROOMS, "```"])
    return "\n".join(
        [
            "# Python API",
            "",
            "Everything listed here is public and stays compatible; names that begin with an underscore are not.",
            "",
            "| module | holds |",
            "|---|---|",
            *rows,
            "",
            tree,
            "",
        ]
    )


def room_page(room: str) -> str:
    """The reference of one room: a table of its names, then each of them."""
    module = _room(room)
    kinds: dict[str, list[str]] = {"Classes": [], "Functions": [], "Modules": [], "Constants": []}
    for name in module.__all__:
        thing = getattr(module, name)
        kind = "Constants"
        if inspect.isclass(thing):
            kind = "Classes"
        elif inspect.ismodule(thing):
            kind = "Modules"
        elif inspect.isroutine(thing):
            kind = "Functions"
        kinds[kind].append(name)
    lines = [f"# dissensus.{room}", "", "```{eval-rst}", f".. automodule:: dissensus.{room}", "   :no-members:", ""]
    for kind, names in kinds.items():
        if not names:
            continue
        lines += [f".. rubric:: {kind}", "", ".. list-table::", "   :widths: 30 70", ""]
        for name in names:
            role = {"Classes": "class", "Functions": "func", "Modules": "mod", "Constants": "data"}[kind]
            summary = _value(getattr(module, name)) if kind == "Constants" else _first_line(getattr(module, name))
            lines += [f"   * - :{role}:`~dissensus.{room}.{name}`", f"     - {summary}"]
        lines.append("")
    for kind, names in kinds.items():
        for name in names:
            lines += _entry(room, name, kind, getattr(module, name))
    return "\n".join([*lines, "```", ""])


def _entry(room: str, name: str, kind: str, thing: Any) -> list[str]:
    full = f"dissensus.{room}.{name}"
    if kind == "Classes":
        public = any(base is not object and not base.__name__.startswith("_") for base in thing.__bases__)
        return [f".. autoclass:: {full}", "   :members:", *["   :show-inheritance:"] * public, ""]
    if kind == "Functions":
        return [f".. autofunction:: {full}", ""]
    if kind == "Modules":
        return [f".. automodule:: {full}", "   :members:", ""]
    return [f".. py:data:: {name}", f"   :module: dissensus.{room}", "", f"   {_value(thing)}", ""]


def _room(room: str) -> Any:
    return importlib.import_module(f"dissensus.{room}")


def _first_line(thing: Any) -> str:
    """The first sentence of a docstring, on one line and without links."""
    paragraph = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    paragraph = re.sub(r'`"?([^`<"]+)"?\s*<[^>]+>`_', r"*\1*", paragraph)
    return re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0].rstrip(":")


def _markdown(text: str) -> str:
    """A sentence of a docstring as Markdown, with its code and the names it refers to as code."""
    parts = re.split(r"(?:``|:\w+:`~?)([^`]+)`+", text)
    return "".join(f"`{part}`" if k % 2 else part for k, part in enumerate(parts))


def _value(thing: Any) -> str:
    """A constant in words."""
    names = list(thing) if isinstance(thing, dict | tuple | list | set | frozenset) else None
    if names is not None and all(isinstance(name, str) for name in names):
        return "One of " + ", ".join(f"``{name}``" for name in names) + "."
    return f"``{str(thing).replace('typing.', '')}``"


# The command line.


def command_page() -> str:
    """Every command with its options, from the parsers themselves."""
    lines = ["# Command line", "", "`dissensus COMMAND --help` prints the same.", ""]
    for name, parser in cli.command_line(declared=True)[1].items():
        about = importlib.import_module(f"dissensus.cli.{name}").__doc__ or ""
        usage = parser.format_usage().removeprefix("usage: ").replace("\n       ", "\n").rstrip()
        lines += [f"## dissensus {name}", "", "```text", usage, "```", ""]
        for part in about.strip("\n").split("\n\n"):
            lines += ["```", textwrap.dedent(part), "```", ""] if part.startswith("    ") else [_prose(part), ""]
        for action in parser._actions[1:]:  # the first is --help
            text = parser._get_formatter()._expand_help(action) if action.help else ""
            lines += [f"{_flags(action)}", f":   {_prose(text)}", ""]
    return "\n".join(lines)


def _flags(action: argparse.Action) -> str:
    takes = action.nargs != 0
    shown = action.metavar if action.metavar is not None else action.dest.upper()
    metavar = " ".join(shown) if isinstance(shown, tuple) else shown
    if not action.option_strings:
        return f"`{metavar}`"
    return ", ".join(f"`{flag}{' ' + metavar if takes else ''}`" for flag in action.option_strings)


def _prose(text: str) -> str:
    """Help text as Markdown: nothing in it is markup."""
    joined = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", joined)


# Models.


def models_page() -> str:
    """Every model that the package brings: name, equation, source."""
    from dissensus import nn

    lines = [
        "# Models",
        "",
        "`dissensus models` prints this list. {func}`dissensus.nn.create` makes one of them.",
        "",
        "| name | equation | source |",
        "|---|---|---|",
    ]
    for name in nn.names():
        found = nn.info(name)
        lines.append(f"| `{name}` | {_prose(found.equation)} | {_prose(found.source)} |")
    return "\n".join([*lines, ""])


# The gallery.


def gallery_page() -> str:
    """The scripts of ``examples/gallery``: what each reproduces, and its code."""
    about, *_ = (ROOT / "examples" / "gallery" / "README.md").read_text(encoding="utf-8").split("\n| script")
    lines = [about.rstrip(), ""]
    for path in sorted((ROOT / "examples" / "gallery").glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        title, *rest = text.split("\n\n")
        lines += [f"## {title.strip().rstrip('.')}", "", *(f"{_prose(part)}\n" for part in rest)]
        lines += [f"```{{literalinclude}} ../../examples/gallery/{path.name}", ":language: python", "```", ""]
    return "\n".join(lines)


# The theory.


def checks_page() -> str:
    """Every check of the theory on three random graphs, evaluated now."""
    findings = theory.examine()
    lines = [
        "# Every check",
        "",
        "The output of `dissensus theory`, evaluated when this page was built, on three random graphs. *Holds,",
        "corrected* means that the conclusion stands once a formula, a hypothesis or the measure is put right, as the",
        "note says.",
        "",
    ]
    for check in findings.checks:
        lines += [f"## {check.name}", "", f"*{_prose(check.where)}.* {_prose(check.statement)}.", ""]
        lines += [f"**{check.verdict.capitalize()}.** {_prose(check.note)}", ""]
        lines += ["| measured | value |", "|---|---:|"]
        lines += [f"| {_prose(fact.label)} | {fact.value:.3g} |" for fact in check.facts]
        lines.append("")
    return "\n".join(lines)


# Results.


def results_page() -> str:
    """``results/README.md``, with the corrections of the paper in one list with all others."""
    return inlined(RESULTS / "README.md")


def inlined(path: Path) -> str:
    """A Markdown file of the repository as a page: pictures found, links to files turned into their names."""

    def picture(match: re.Match[str]) -> str:
        target = (path.parent / match[2]).resolve().relative_to(ROOT)
        return f"![{match[1]}](../../{target})"

    def link(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if target.startswith(("http", "#", "../../")):
            return match[0]
        shown = (path.parent / target.split("#")[0]).resolve().relative_to(ROOT)
        return f"`{shown}`" if text.strip("/`") == target.strip("/.") or "/" in text else f"{text} (`{shown}`)"

    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!\[([^]]*)\]\(([^)]+)\)", picture, text)
    return re.sub(r"(?<!!)\[([^]]+)\]\(([^)]+)\)", link, text)


def details(study: str) -> list[dict[str, str]]:
    """The rows of a study's summary; none where it has not been run."""
    path = RESULTS / study / "tables" / "details.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers() -> dict[str, str]:
    """The substitutions of the pages: ``STUDY_MODEL_DATASET`` or ``STUDY_MODEL_DATASET_DEPTH`` is a number, ``tables``
    all accuracies by study.
    """
    values = {"tables": "\n".join(accuracy_tables())}
    for name, study in STUDIES.items():
        if study.dimensions not in (("dataset", "model"), ("dataset", "model", "depth")):
            continue
        for row in details(name):
            if row.get("test %"):
                key = "_".join([name, row["model"], row["dataset"], *([row["depth"]] if row.get("depth") else [])])
                values[key.replace("-", "_")] = f"{float(row['test %']):.1f}%"
    return values


# The models that stand beside the best one of a dataset.
_BESIDE = ("bimp", "gcn", "mlp", "feature-propagation", "label-propagation")


def accuracy_tables() -> Iterator[str]:
    """For each study of accuracies by dataset and model: the best model of each dataset beside familiar ones."""
    for name, study in STUDIES.items():
        rows = [row for row in details(name) if row.get("test %") and row.get("model") and row.get("dataset")]
        models = {row["model"] for row in rows}
        if len(models) < 2 or study.dimensions != ("dataset", "model"):
            continue
        beside = [model for model in _BESIDE if model in models]
        yield f"### {study.title}\n"
        yield "| dataset | best here | " + " | ".join(beside) + " |"
        yield "|:---|:---|" + "---:|" * len(beside)
        for dataset in dict.fromkeys(row["dataset"] for row in rows):
            found = {row["model"]: row for row in rows if row["dataset"] == dataset}
            best = max(found, key=lambda model: float(found[model]["test %"]))
            cells = [_shown(found[model]) if model in found else "" for model in beside]
            yield f"| {dataset} | {best} {_shown(found[best])} | " + " | ".join(cells) + " |"
        yield ""


def _shown(row: dict[str, str]) -> str:
    """A mean with its 95% confidence interval, where there are samples enough for one."""
    mean = float(row["test %"])
    if not row["95% from"]:
        return f"{mean:.1f} (one run)"
    return f"{mean:.1f} ± {mean - float(row['95% from']):.1f}"
