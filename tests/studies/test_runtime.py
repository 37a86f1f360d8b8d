import pytest

from dissensus.studies import STUDIES
from dissensus.studies._show import items
from studies_files import read


@pytest.mark.slow
def test_times_are_measured_alone_and_as_ratios(answer, capsys):
    study = ("runtime", "--datasets", "karate", "--models", "gcn,grand-l", "--quick", "-o", "out")
    found = answer(*study, "--executor", "processes", "--workers", 2)["studies"]["runtime"]
    assert found["value"] == "seconds"
    seconds = {cell["model"]: cell["mean"] for cell in found["cells"]}
    ratios = {row["model"]: float(row["karate"]) for row in read("out/runtime/tables/ratios.csv")}
    assert ratios == pytest.approx({"gcn": seconds["gcn"] / seconds["grand-l"], "grand-l": 1.0})


@pytest.mark.slow
def test_printed_ratios_stand_beside_ours():
    study = STUDIES["runtime"]
    rows = [
        {
            "dataset": "cora",
            "model": model,
            "split": 1,
            "seed": 1,
            "status": "done",
            "seconds": seconds,
        }
        for model, seconds in (("bimp", 3.0), ("grand-l", 2.0))
    ]
    table = next(item.content for item in items(study, rows) if item.stem == "ratios")
    bimp = table.rows[0][1]
    assert (bimp.mean, round(bimp.paper, 4)) == (1.5, round(14.33 / 11.97, 4))
