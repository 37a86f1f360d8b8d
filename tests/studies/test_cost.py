from dissensus.report import Curves
from dissensus.studies import STUDIES, run_cost
from dissensus.studies._show import items
from dissensus.studies._study import Request
from dissensus.train import resolve
from study_rows import finished


def test_cost_has_accuracy_against_seconds_and_memory():
    study, rows = STUDIES["cost"], []
    for config in study.plan(Request(models=("bimp",), datasets=("cora",), depths=(2, 8))).configs:
        depth, seed = config["cost"]["model"]["time"], config["cost"]["train"]["seed"]
        rows += study.rows(finished(study, config, test=60.0 + depth, seconds=depth * seed, memory=depth))
    drawn = {item.stem: item.content for item in items(study, rows) if isinstance(item.content, Curves)}
    assert (drawn["seconds-cora"].series[0].x, drawn["seconds-cora"].series[0].y) == ([4.0, 16.0], [62.0, 68.0])
    assert drawn["memory-cora"].series[0].x == [2.0, 8.0]


def test_a_run_of_the_study_cost_tells_its_memory():
    config = resolve("karate", "gcn", preset="none", flags={"train.epochs": 2}).as_dict()
    result = run_cost({"cost": config})
    assert result["epochs"] == 2
    # At least the features of 34 nodes after input dropout, and two hidden states.
    assert 34 * (34 + 2 * 64) * 4 / 2**20 < result["memory"] < 10
