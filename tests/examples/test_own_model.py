"""A user's own model, in one short file, goes through the studies beside ours."""

from pathlib import Path

import pytest

from dissensus import studies

FILE = Path(__file__).parents[2] / "examples" / "my_model.py"
MINE = f"{FILE}:MyNet"

pytestmark = pytest.mark.slow


def test_the_example_is_short_and_that_of_the_documentation():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 40
    page = FILE.parents[1] / "docs" / "guides" / "own-model.md"
    assert text.split('"""\n\n', 1)[1].rstrip() in page.read_text()


@pytest.mark.parametrize(
    ("study", "choices"),
    [
        ("homophilic", {"datasets": ["karate"], "splits": [1, 2]}),
        ("depth", {"datasets": ["karate"], "splits": [1], "depths": [1, 4]}),
        ("energy", {"seeds": [1]}),
    ],
)
def test_a_model_of_a_file_beside_ours(study, choices, tmp_path):
    found = studies.reproduce(study, models=["bimp", MINE], quick=True, output=tmp_path, **choices)
    result = found.studies[study]
    assert found.failed == 0
    rows = {model: [row for row in result.rows if row["model"] == model] for model in ("bimp", MINE)}
    assert len(rows["bimp"]) == len(rows[MINE]) > 0
    value = "dirichlet_energy" if study == "energy" else "test"
    assert all(row[value] >= 0 for row in rows[MINE])
    assert (tmp_path / study / "runs.csv").read_text().count("MyNet") == len(rows[MINE])
    assert any("MyNet" in table.read_text() for table in (tmp_path / study / "tables").glob("*.csv"))
