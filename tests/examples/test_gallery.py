"""Each script asserts the published result that it reproduces; here they are run, and their figures are there."""

import runpy
from pathlib import Path

import pytest

import dissensus

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
SCRIPTS = sorted(path.stem for path in GALLERY.glob("*.py"))


def test_there_are_six() -> None:
    assert len(SCRIPTS) == 6
    listed = (GALLERY / "README.md").read_text()
    assert all(f"`{name}.py`" in listed for name in SCRIPTS)
    assert dissensus.__version__


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_published_result(name: str, tmp_path: Path) -> None:
    script = runpy.run_path(str(GALLERY / f"{name}.py"))
    assert "Reproduces:" in script["__doc__"]
    script["main"](str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").stat().st_size > 10_000
