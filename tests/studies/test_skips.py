from dissensus.studies import STUDIES
from dissensus.studies._study import Request
from dissensus.train import read_preset
from study_rows import finished


def test_a_gcn_gets_skip_connections_and_normalisation_and_bimp_runs_once():
    study = STUDIES["ablation-gcn"]
    plan = study.plan(Request(datasets=("cora",), splits=(1,), depths=(8,)))
    made = {row["added"]: config for config in plan.configs for row in study.rows(finished(study, config))}
    assert set(plan.presets.values()) == {"tuned"}
    assert [*made] == ["bimp", "gcn", "gcn + skip", "gcn + norm", "gcn + skip + norm"]
    assert len(plan.configs) == 5
    tuned = read_preset("tuned", "cora", "gcn")
    for name, config in made.items():
        if name != "bimp":
            assert config["model"]["residual"] == ("skip" in name)
            assert config["model"]["norm"] == ("batch" if "norm" in name else "none")
            assert config["model"]["num_layers"] == 8
            assert config["train"]["lr"] == tuned["train"]["lr"]
