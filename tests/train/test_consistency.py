"""Agreeing with the prediction of the epoch before: the formula, what the loop feeds it, and where it is refused."""

import pytest
import torch

from dissensus.errors import InputError
from dissensus.train import resolve, run
from dissensus.train._batch import WholeGraph
from dissensus.train._consistency import WARM_UP, Consistency
from dissensus.train._evaluate import evaluate
from dissensus.train._metrics import Metric


def config(**flags):
    flags = {"train.epochs": 4, "model.hidden_channels": 8, "train.consistency": 2.0} | flags
    return resolve("karate", flags.pop("model", "bimp"), preset="none", flags=flags)


def test_the_loss_is_the_cross_entropy_against_squared_probabilities():
    before, scores = torch.randn(2, 5, 3, dtype=torch.float64).unbind()
    consistency = Consistency(0.7)
    assert float(consistency.loss(scores)) == 0.0
    consistency.record(before)
    target = torch.softmax(before, 1) ** 2
    target /= target.sum(1, keepdim=True)
    expected = -(target * torch.log_softmax(scores, 1)).sum(1).mean() * 0.7 / WARM_UP
    torch.testing.assert_close(consistency.loss(scores), expected)
    for _ in range(2 * WARM_UP):
        consistency.record(before)
    torch.testing.assert_close(consistency.loss(scores), WARM_UP * expected)


@pytest.mark.parametrize("select_time", [False, True])
def test_it_sees_the_scores_at_the_end_of_time(select_time):
    run = config(**{"model.time": 2.0, "model.method": "euler"})
    graph = run.data.load().split(1)
    split = WholeGraph.of(graph, torch.device("cpu"), torch.float32)
    model = run.model.create(graph.num_features, 4, graph.num_nodes).eval()
    seen = []
    evaluate(model, split, Metric("accuracy"), select_time=select_time, on_scores=seen.append)
    assert len(seen) == 1
    torch.testing.assert_close(seen[0], split.scores(model).detach())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bimp", "gcn", "grand++-l"])
def test_training_differs_from_the_second_epoch_on(model):
    with_it, without = run(config(model=model)), run(config(model=model, **{"train.consistency": None}))
    assert with_it.history[0] == without.history[0]
    assert with_it.history[1].loss > without.history[1].loss
    assert run(config(model=model)).history == with_it.history


@pytest.mark.slow
def test_unlabelled_nodes_help_where_labels_are_few():
    flags = {"data.nodes": 600, "data.noise": 0.5, "train.epochs": 60, "train.lr": 0.03, "model.method": "euler"}
    tests = {
        weight: [
            run(resolve("csbm", preset="none", flags={**flags, "data.split": split, "train.consistency": weight})).test
            for split in range(1, 6)
        ]
        for weight in (None, 1.0)
    }
    assert sum(tests[1.0]) > sum(tests[None])  # by 2 points a split or so


def test_it_is_refused_where_it_cannot_work():
    with pytest.raises(InputError, match="at least 0"):
        config(**{"train.consistency": -1.0})
    with pytest.raises(InputError, match=r"whole graph.*train\.clusters"):
        config(**{"train.clusters": 2})
    with pytest.raises(InputError, match=r"whole graph.*loader"):
        run(config(), loader=[config().data.load().split(1)])
