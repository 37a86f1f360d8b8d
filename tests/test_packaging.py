"""What is released: the wheel holds every file of the package, the sdist all that a build and the tests need."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import dissensus

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dissensus"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.py[co]")

pytest.importorskip("setuptools", minversion="77")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist, built from a copy so that nothing is left beside the sources."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in ("src", "tests", "examples"):
        shutil.copytree(ROOT / name, tree / name, ignore=IGNORED)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, tree)
    program = (
        "import sys; from setuptools import build_meta as build\n"
        "out = sys.argv[1]; build.build_wheel(out); build.build_sdist(out)"
    )
    subprocess.run([sys.executable, "-c", program, str(out)], cwd=tree, check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"dissensus-{dissensus.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        fields = email.message_from_bytes(archive.read(metadata))
    files = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert packed == {path.relative_to(SOURCE.parent).as_posix() for path in files}
    kinds = {Path(name).suffix for name in packed}
    assert {".py", ".typed", ".toml", ".csv", ".npz", ".js", ".css"} <= kinds
    assert fields["Name"] == "dissensus"
    assert fields["Requires-Python"] == ">=3.11"
    assert fields["License-Expression"] == "MIT"


@pytest.mark.slow
def test_the_sdist_holds_what_a_build_and_the_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "src/dissensus/py.typed"}
    assert needed | {"tests/test_packaging.py", "examples/my_model.py"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("results/")]


def test_extras_that_the_package_names_exist() -> None:
    named = {
        extra
        for path in SOURCE.rglob("*.py")
        for extra in re.findall(r"optional\(\"[^()\"]+\", \"([a-z]+)\"", path.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= PROJECT["optional-dependencies"].keys()
