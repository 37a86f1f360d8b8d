"""Tests mirror the source: ``nn/_bimp.py`` has ``nn/test_bimp.py``, and further files of it ``nn/test_bimp_....py``."""

import ast
from pathlib import Path

import dissensus

TESTS = Path(__file__).parent
ROOT = Path(dissensus.__file__).parent

# Tests of no single module.
CROSS_CUTTING = {
    "architecture": "the import contract of the rooms",
    "contributing": "what somebody who adds a model, a dataset or a study has to do",
    "documentation": "README and documentation",
    "layout": "this file",
    "packaging": "wheel and sdist",
    "public_names": "documentation and number of public names",
    "data/fuzz": "any content of any kind of file",
    "data/malicious": "files of any kind that try to run code",
    "nn/export": "every model under torch.export and in ONNX",
    "nn/family": "every model of the registry",
    "runtime/process": "what importing and building change in the process",
    "examples/gallery": "examples",
    "examples/lightning_bimp": "examples",
    "examples/own_model": "examples",
    "examples/reach_page": "examples",
}

# Modules without a file of their own, and where a public name runs them.
TESTED_THROUGH = {
    "cli/opinions": "cli/simulate",
    "cli/reproduce": "studies/reproduce",
    "data/catalogue": "data/benchmarks",
    "dynamics/diagram": "dynamics/bifurcation",
    "measure/reading": "measure/watch",
    "nn/continuous": "nn/family",
    "report/html": "report/page",
    "runs/call": "runs/execute",
    "runs/processes": "runs/execute",
    "solve/step": "solve/integrate",
    "solve/torchdiffeq": "solve/solvers",
    "studies/theory/behaviour": "studies/theory/check",
    "studies/theory/form": "studies/theory/check",
    "studies/theory/linear": "studies/theory/check",
    "studies/theory/reaction": "studies/theory/check",
}

# Lines of code from which on a module must be in one of the two.
LARGE = 40


def modules() -> dict[str, Path]:
    """Every module by its place without underscores; a package goes by its own name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT)
        place = place.parent if path.name == "__init__.py" else place.with_name(path.stem.lstrip("_"))
        found[place.as_posix()] = path
    return found


def places() -> list[str]:
    """Every test file by its place, without ``test_``."""
    files = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return sorted(file.with_name(file.stem.removeprefix("test_")).as_posix() for file in files)


def module_of(test: str, known: dict[str, Path]) -> str | None:
    """The module that a test file names, by the longest of the names that fit."""
    fitting = [name for name in known if test == name or (test.startswith(f"{name}_") and "/" not in test[len(name) :])]
    return max(fitting, key=len, default=None)


def lines_of_code(path: Path) -> int:
    """Lines within functions, docstrings left out."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            body = node.body[ast.get_docstring(node) is not None :]
            lines.update(line for part in body for line in range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return len(lines)


def test_every_test_file_names_a_module() -> None:
    known = modules()
    assert [test for test in places() if module_of(test, known) is None and test not in CROSS_CUTTING] == []


def test_every_large_module_has_a_test_file() -> None:
    known = modules()
    reached = {module_of(test, known) for test in places()} | TESTED_THROUGH.keys()
    assert [name for name, path in known.items() if name not in reached and lines_of_code(path) > LARGE] == []


def test_the_lists_name_what_there_is_and_nothing_more() -> None:
    known, files = modules(), places()
    mirrored = {module_of(test, known) for test in files}
    assert CROSS_CUTTING.keys() <= set(files)
    assert [test for test in CROSS_CUTTING if module_of(test, known)] == []
    assert TESTED_THROUGH.keys() <= known.keys()
    assert set(TESTED_THROUGH.values()) <= set(files)
    assert sorted(TESTED_THROUGH.keys() & mirrored) == []
    assert [name for name in TESTED_THROUGH if lines_of_code(known[name]) <= LARGE] == []
