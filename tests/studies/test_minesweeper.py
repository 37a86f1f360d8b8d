import pytest

from dissensus.studies import STUDIES
from dissensus.studies._study import Request
from dissensus.train import read_preset


@pytest.mark.parametrize("name", ["minesweeper", "long-range", "ring-transfer"])
def test_every_model_has_settings_for_the_task_and_equal_ones_but_for_its_own(name):
    study = STUDIES[name]
    plan = study.plan(Request(splits=(1,), seeds=(1,)))
    assert set(plan.presets.values()) == {"tuned"}
    for dataset in study.datasets:
        found = [read_preset("tuned", dataset, model) for model in study.models]
        assert len({(layer["model"]["hidden_channels"], layer["train"]["epochs"]) for layer in found}) == 1
    # What suits words of papers has no place here.
    assert not any(config["model"].get("detach_source") for config in plan.configs)
    assert {config["model"]["input_dropout"] for config in plan.configs} == {0.0}
