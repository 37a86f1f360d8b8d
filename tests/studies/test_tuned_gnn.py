from dissensus.studies import STUDIES
from dissensus.studies._study import Request


def test_the_protocol_of_tuned_classic_gnns():
    study = STUDIES["tuned-gnn"]
    plan = study.plan(Request())
    assert len(plan.configs) == 2 * (3 * 5 + 2 * 10)
    for config in plan.configs:
        fixed = config["data"]["name"] in ("minesweeper", "squirrel-filtered")
        assert config["data"].get("protocol") == (None if fixed else "tunedgnn")
        assert fixed or config["data"]["split"] == 123
    (cora,) = study.plan(Request(models=("gcn-res",), datasets=("cora",), seeds=(1,))).configs
    assert (cora["model"]["num_layers"], cora["model"]["hidden_channels"], cora["model"]["norm"]) == (3, 512, "none")
    assert set(study.plan(Request(models=("bimp",), datasets=("cora",))).presets.values()) == {"tuned"}
    assert study.printed.get({"model": "gcn-res", "dataset": "minesweeper"}) == 97.86
    assert study.printed.get({"model": "bimp", "dataset": "minesweeper"}) is None
