"""The training loop: repeatable, selecting on validation alone, and clear about what goes wrong."""

import math

import numpy as np
import pytest
import torch

from dissensus import data, nn, runs
from dissensus.errors import InputError, TrainingError
from dissensus.train import Config, TrainConfig, execute, fit, resolve, run
from dissensus.train._batch import WholeGraph
from dissensus.train._evaluate import Score, evaluate
from dissensus.train._metrics import Metric
from train_graphs import write_graph


def quick(model="bimp", dataset="karate", **flags):
    flags = {"train.epochs": 8, "model.hidden_channels": 8} | {
        key.replace("__", "."): value for key, value in flags.items()
    }
    return resolve(dataset, model, preset="none", flags=flags)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "dtype"), [("bimp", "float32"), ("bimp", "float64"), ("gcn", "float32")])
def test_the_same_configuration_gives_the_same_bits(model, dtype):
    first, second = (run(quick(model, train__dtype=dtype)) for _ in range(2))
    assert first.history == second.history
    assert (first.val, first.test, first.epoch) == (second.val, second.test, second.epoch)
    for key, value in first.model.state_dict().items():
        assert value.dtype == getattr(torch, dtype)
        assert torch.equal(value, second.model.state_dict()[key])
    assert run(quick(model, train__dtype=dtype, train__seed=2)).history != first.history


def test_the_callers_random_state_and_settings_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run(quick(train__epochs=1))
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("before", [False, True])
def test_numbers_too_small_to_be_normal_are_zero_in_training_alone(before):
    if not torch.set_flush_denormal(before):
        pytest.skip("this processor cannot take them for zero")

    def tiny() -> float:
        return float(torch.tensor(2e-38) * 1e-2)

    try:
        seen = []
        run(quick(train__epochs=1), progress=lambda epoch: seen.append(tiny()))
        assert seen == [0.0]
        assert (tiny() == 0.0) == before
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("model", ["bimp", "gcn"])
def test_the_result_is_what_its_model_scores(model):
    result = run(quick(model, dataset="csbm", data__nodes=150, data__noise=0.5, train__epochs=30, train__lr=0.03))
    assert result.test > 60.0  # four classes: chance is 25
    split = WholeGraph.of(result.dataset.split(1), torch.device("cpu"), torch.float32)
    score = evaluate(result.model, split, Metric("accuracy"), select_time=False)
    assert (score.val, score.test) == (result.val, result.test)
    best = max(result.history, key=lambda epoch: (epoch.val, -epoch.val_loss))
    assert (best.number, best.val) == (result.epoch, result.val)


def test_ties_go_to_the_lower_loss_then_to_the_earlier():
    assert Score(80, 1, 0.5).beats(None)
    assert Score(81, 1, 0.9).beats(Score(80, 1, 0.5))
    assert Score(80, 1, 0.4).beats(Score(80, 99, 0.5))
    assert not Score(80, 99, 0.5).beats(Score(80, 1, 0.5))
    assert not Score(79, 99, 0.1).beats(Score(80, 1, 0.5))


def test_patience_ends_a_run_that_does_not_get_better():
    result = run(quick("gcn", train__epochs=300, train__patience=5, train__lr=0.05))
    assert len(result.history) == result.epoch + 5 < 300
    full = run(quick("gcn", train__epochs=len(result.history), train__lr=0.05))
    assert full.history == result.history


@pytest.mark.parametrize("optimizer", ["adam", "adamax", "rmsprop"])
def test_every_optimizer_lowers_the_loss(optimizer):
    history = run(quick("gcn", train__optimizer=optimizer, train__epochs=20)).history
    assert history[-1].loss < history[0].loss


def test_node_dropout_hides_the_features_of_whole_nodes_in_training_alone():
    seen = {True: [], False: []}

    class Net(torch.nn.Linear):
        def forward(self, x, edge_index):
            seen[self.training].append(x.clone())
            return super().forward(x)

    graph = data.load("karate").split(1)
    fit(Net(34, 4), graph, TrainConfig(epochs=20, node_dropout=0.25))
    hidden = torch.stack([x.eq(0).all(1) for x in seen[True]]).double().mean()
    assert 0.15 < float(hidden) < 0.35
    assert all(x.eq(graph.x).all(1).logical_or(x.eq(0).all(1)).all() for x in seen[True])
    assert all(x.equal(graph.x) for x in seen[False])
    with pytest.raises(InputError, match=r"train.node_dropout is 1.0: give a probability"):
        TrainConfig(node_dropout=1.0)


@pytest.mark.parametrize("method", ["euler", "dopri5"])
def test_selection_over_time_judges_every_step_up_to_three_times_the_end(method):
    flags = {"model__method": method, "model__time": 2.5, "model__input_dropout": 0.0, "train__epochs": 6}
    timed = run(quick(train__select_time=True, **flags))
    plain = run(quick(**flags))
    # Training is the same, and the end of time is among the candidates, so selection can only gain on validation.
    assert [epoch.loss for epoch in timed.history] == [epoch.loss for epoch in plain.history]
    assert all(a.val >= b.val for a, b in zip(timed.history, plain.history, strict=True))
    assert timed.val >= plain.val
    assert 0.0 < timed.time <= 7.5
    assert timed.as_dict()["selection"] == "epoch and time"
    assert (plain.time, plain.as_dict()["selection"]) == (None, "epoch")
    assert timed.model.time == timed.model.config["time"] == timed.time
    if method == "euler":
        split = WholeGraph.of(timed.dataset.split(1), torch.device("cpu"), torch.float32)
        assert evaluate(timed.model, split, Metric("accuracy"), select_time=False).test == timed.test


def test_time_selection_reads_exactly_the_states_on_the_way():
    torch.manual_seed(0)
    model = nn.create("bimp", in_channels=34, hidden_channels=6, out_channels=4, method="euler", time=2.0).eval()
    dataset = quick().data.load()
    split = WholeGraph.of(dataset.split(1), torch.device("cpu"), torch.float32)
    states = model.trajectory(split.x, split.edge_index, range(1, 7))
    scores = []
    for time, state in enumerate(states, 1):
        right = model.decoder(state).argmax(1) == split.y
        loss = float(torch.nn.functional.cross_entropy(model.decoder(state).detach()[split.val], split.y[split.val]))
        scores.append((100 * right[split.val].double().mean().item(), -loss, time))
    best = max(scores, key=lambda entry: entry[:2])
    found = evaluate(model, split, Metric("accuracy"), select_time=True)
    assert (found.time, found.val) == (best[2], pytest.approx(best[0]))


def test_a_loss_that_is_not_a_number_stops_with_the_cure(tmp_path):
    config = quick("gcn", train__lr=1e30, train__epochs=50)
    with pytest.raises(TrainingError, match=r"epoch \d+: lower train\.lr"):
        run(config)
    summary = runs.execute([config.as_dict()], "dissensus.train:execute", store=tmp_path / "runs.db")
    assert summary.failed == 1
    assert "lower train.lr" in summary.records[0].error


def test_options_of_the_model_are_checked_before_any_work():
    with pytest.raises(InputError, match="did you mean 'heads'"):
        quick(model__haeds=3).check()
    with pytest.raises(InputError, match="did you mean 'cosine'"):
        quick(model__attention="cosin").check()
    with pytest.raises(InputError, match="positive"):
        quick(model__time=-1.0).check()
    with pytest.raises(InputError, match="wrong type"):
        quick(model__time="long").check()
    with pytest.raises(InputError, match="cannot be used here"):
        quick(train__device="abacus").check()
    quick(model__option_attention="node").check()


@pytest.mark.slow
@pytest.mark.parametrize("model", nn.names())
def test_every_model_of_the_registry_trains_repeatably(model):
    config = quick(model, train__epochs=2)
    first, second = execute(config.as_dict()), execute(config.as_dict())
    assert runs.key(first)  # JSON-able, options of the model included
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_sources_are_the_training_nodes_of_the_split():
    result = run(quick("grand++-l", data__split=3, train__epochs=1))
    assert torch.equal(result.model.sources, result.dataset.split(3).train_mask)


def test_the_node_count_is_filled_in_from_the_data():
    result = run(quick(model__option_attention="node", train__epochs=2))
    assert result.model.config["num_nodes"] == 34


def test_unlabelled_graphs_are_refused_and_missing_labels_are_not(tmp_path):
    write_graph(tmp_path / "bare.npz", labels=False)
    with pytest.raises(InputError, match="no labels"):
        run(quick(dataset=str(tmp_path / "bare.npz")))
    write_graph(tmp_path / "full.npz")
    with np.load(tmp_path / "full.npz") as archive:
        fields = dict(archive)
    fields["y"][:30] = ""
    np.savez(tmp_path / "half.npz", **fields)
    result = run(quick(dataset=str(tmp_path / "half.npz")))
    split = result.dataset.split(1)
    assert not (split.train_mask | split.val_mask | split.test_mask)[:30].any()


def test_a_file_that_changed_is_noticed(tmp_path):
    path = tmp_path / "graph.npz"
    write_graph(path)
    config = quick(dataset=str(path))
    fingerprint = config.data.load().fingerprint
    marked = Config.from_dict({**config.as_dict(), "data": config.data.as_dict() | {"fingerprint": fingerprint}})
    assert marked.data.load().fingerprint == fingerprint
    other = Config.from_dict({**config.as_dict(), "data": config.data.as_dict() | {"fingerprint": "0"}})
    with pytest.raises(InputError, match="has changed"):
        other.data.load()


def test_execute_gives_plain_values():
    config = quick("gcn", train__epochs=3, data__split=2, train__seed=4)
    result = execute(config.as_dict())
    assert runs.key(result)  # JSON-able
    assert {"split": 2, "seed": 4, "dataset": "karate", "model": "gcn", "epochs": 3}.items() <= result.items()
    made = run(config)
    history = result["history"]
    assert {**made.as_dict(), "seconds": 0, "history": history} == {**result, "seconds": 0}
    assert history["loss"] == pytest.approx([epoch.loss for epoch in made.history], rel=1e-4)
    assert history["validation"] == pytest.approx([epoch.val for epoch in made.history], rel=1e-4)
    assert math.isfinite(result["test"])
    assert result["options"]["num_layers"] == 2
