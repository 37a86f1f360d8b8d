"""What is claimed of BIMP, and the paired differences beside it."""

import pytest

from dissensus.report import Value
from dissensus.studies import STUDIES
from dissensus.studies._claim import claim
from dissensus.studies._show import items


def run(dataset, test, split=1, val=80.0, change=None, status="done"):
    row = {"dataset": dataset, "model": "bimp", "split": split, "seed": 1, "status": status, "val": val, "test": test}
    return {**row, "change": change, "preset": "paper", "error": None}


def test_the_claim_has_both_settings_beside_the_printed_number():
    found = claim(
        {
            "as-printed": [run("cora", 78.0), run("cora", 80.0, split=2), run("cora", None, split=3, status="failed")],
            # The choice is made by validation accuracy: the better test accuracy is not taken.
            "readings": [run("cora", 90.0, change="none"), run("cora", 79.0, change="A_o = I", val=81.0)],
            "homophilic": [run("cora", 84.0)],
            "heterophilic": [run("texas", 82.0)],
        }
    )
    rows = {row[0]: row[1:] for row in found.rows}
    assert len(rows) == 10
    assert rows["cora"] == [83.19, Value.of([78.0, 80.0]), "A_o = I", Value.of([79.0]), Value.of([84.0])]
    assert rows["texas"] == [82.16, None, None, None, Value.of([82.0])]
    assert rows["photo"] == [92.9, None, None, None, None]
    assert "| texas | 82.16 | – | – | – | 82.00 (1) |" in found.markdown()
    assert claim({"homophilic": [run("cora", 84.0)]}) is None


def test_what_a_change_brings_is_a_difference_over_common_splits():
    rows = [
        *(run("cora", test, split, change="none") for split, test in ((1, 80.0), (2, 83.0), (3, 99.0))),
        *(run("cora", test, split, change="linear") for split, test in ((1, 78.0), (2, 82.0), (4, 10.0))),
        run("texas", 70.0, change="linear"),
    ]
    (table,) = [item.content for item in items(STUDIES["ablation"], rows) if item.stem == "differences"]
    assert table.columns == ["change", "cora", "texas"]
    assert table.rows == [["linear", Value.of([-2.0, -1.0]), None]]
    assert "| linear | -1.50 ± 0.71 (2) | – |" in table.markdown()
    assert table.rows[0][1].mean == pytest.approx(-1.5)
