"""What is claimed of BIMP."""

from dissensus.report import Value
from dissensus.studies._claim import claim


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
