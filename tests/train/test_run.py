from dissensus import train


def test_a_training_run_takes_it_as_a_setting() -> None:
    flags = {"model.normalize_features": "hellinger", "train.epochs": 1, "model.hidden_channels": 4}
    result = train.run(train.resolve("karate", "gcn", flags=flags))
    assert result.config.as_dict()["model"]["normalize_features"] == "hellinger"
