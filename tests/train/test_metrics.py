import numpy as np
import pytest
import torch

from dissensus import data, nn, train
from dissensus.errors import InputError
from dissensus.train._metrics import METRICS, Metric, metric_of

SCORES = torch.tensor([[2.0, 1.0], [0.0, 3.0], [1.0, 0.5], [0.2, 0.1], [0.0, 1.0]])
CLASSES = torch.tensor([0, 1, 1, 0, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accuracy", 100 * 3 / 5),
        ("balanced_accuracy", 100 * (2 / 3 + 1 / 2) / 2),
        # Precision and recall are 2/3 and 2/3 for class 0, 1/2 and 1/2 for class 1.
        ("macro_f1", 100 * (2 / 3 + 1 / 2) / 2),
        # Margins -1, 3, -0.5, -0.1, 1 of positives 3, -0.5 and negatives -1, -0.1, 1: 4 of 6 pairs are in order.
        ("roc_auc", 100 * 4 / 6),
        # Ranked 1, 0, 0, 1, 0: precision 1 at the first positive, 2/4 at the second.
        ("average_precision", 100 * (1 + 2 / 4) / 2),
    ],
)
def test_shares_are_in_per_cent(name, value):
    metric = metric_of(name, CLASSES, lambda: (CLASSES, CLASSES))
    assert metric(SCORES, CLASSES) == pytest.approx(value)
    assert metric.sign == 1
    assert float(metric.loss(SCORES, CLASSES)) == pytest.approx(
        float(torch.nn.functional.cross_entropy(SCORES, CLASSES))
    )


def test_errors_are_in_the_unit_of_the_target_and_are_what_is_minimised():
    y, scores = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([[1.0], [0.0], [5.0]])
    mae, rmse = (metric_of(name, y, lambda: ()) for name in (None, "rmse"))
    assert (mae.name, mae.sign, mae(scores, y)) == ("mae", -1, pytest.approx(1.0))
    assert rmse(scores, y) == pytest.approx((5 / 3) ** 0.5)
    assert float(mae.loss(scores, y)) == pytest.approx(1.0)
    assert float(rmse.loss(scores, y)) == pytest.approx(5 / 3)


def test_a_class_that_is_only_predicted_is_no_warning():
    for name in ("balanced_accuracy", "macro_f1"):
        assert 0 <= Metric(name)(torch.eye(3), torch.tensor([0, 1, 1])) <= 100


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [
        ("acuracy", CLASSES, "did you mean 'accuracy'"),
        ("mae", CLASSES, "is for numbers, and the targets y are classes: choose accuracy"),
        ("accuracy", CLASSES.float(), "is for classes, and the targets y are numbers: choose mae, rmse"),
        ("roc_auc", CLASSES + 1, "two classes"),
        ("roc_auc", CLASSES * 0, "two classes"),
    ],
)
def test_a_metric_that_does_not_fit_is_refused(name, y, message):
    with pytest.raises(InputError, match=message):
        metric_of(name, y, lambda: (y, y))


@pytest.mark.slow
def test_selection_is_by_the_metric():
    """With each metric the epoch is the first best of its own curve, up to the validation loss at ties."""
    graph = data.load("csbm", nodes=200, classes=2, noise=3.0).split(1)
    for name in METRICS:
        if name in ("mae", "rmse"):
            continue
        torch.manual_seed(0)
        model = nn.create("gcn", in_channels=graph.num_features, hidden_channels=8, out_channels=2)
        result = train.fit(model, graph, train.TrainConfig(epochs=15, metric=name))
        best = max(result.history, key=lambda epoch: (epoch.val, -epoch.val_loss))
        assert (result.metric, result.epoch, result.val) == (name, best.number, best.val)


def test_the_lowest_error_is_selected():
    graph = data.load("shortest-path", graphs=20, nodes=12).split(1)
    torch.manual_seed(0)
    model = nn.create("gcn", in_channels=2, hidden_channels=8, out_channels=1)
    result = train.fit(model, graph, train.TrainConfig(epochs=15, lr=0.1))
    assert result.metric == "mae"
    assert result.val == min(epoch.val for epoch in result.history) < result.history[0].val
    scores = result.model(graph.x, graph.edge_index)[:, 0].detach()
    assert result.test == pytest.approx(float((scores - graph.y)[graph.test_mask].abs().mean()), rel=1e-5)


@pytest.mark.parametrize("task", ["shortest-path", "diameter", "ring-transfer"])
@pytest.mark.parametrize("model", ["bimp", "grand-l", "grand++-l", "graphcon-gcn", "acmp", "gcn", "label-propagation"])
@pytest.mark.slow
def test_every_kind_of_model_takes_every_kind_of_target(task, model):
    options = {"graphs": 10, "distance": 3} if task == "ring-transfer" else {"graphs": 10, "nodes": 12}
    flags = {f"data.{name}": value for name, value in options.items()} | {"train.epochs": 2}
    config = train.resolve(task, model, preset="none", flags=flags)
    if (task, model) == ("diameter", "label-propagation"):
        with pytest.raises(InputError, match="choose another model"):
            train.run(config)
        return
    result = train.run(config)
    assert result.metric == ("accuracy" if task == "ring-transfer" else "mae")
    assert np.isfinite([result.val, result.test]).all()
