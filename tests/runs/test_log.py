"""Loggers: TensorBoard itself; the others against a module that records what it is called with."""

import sys

import pytest

from dissensus import runs
from dissensus.errors import MissingExtraError
from dissensus.runs._log import open_logger
from dissensus.train import resolve

CONFIG = resolve("karate", "gcn", preset="none")
OPENED = ("start_run", "log_params", "log_metrics")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_has_every_epoch_of_every_run(tmp_path):
    folder = tmp_path / "logs"
    config = resolve("karate", "gcn", preset="none", flags={"train.epochs": 3})
    runs.repeat(config, splits=[1, 2], log=f"tensorboard:{folder}")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert sorted(path.name for path in folder.iterdir()) == ["karate-gcn-1-1", "karate-gcn-2-1"]
    events = EventAccumulator(str(folder / "karate-gcn-2-1"))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["loss", "val", "val_loss"]
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3]


class Recorder:
    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*args, **kwargs):
            self.calls.append((name, args, kwargs))
            return self

        return call


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("wandb", ["init", "log", "log", "finish", "init", "log", "finish"]),
        (
            "mlflow",
            ["set_tracking_uri", *OPENED, "log_metrics", "end_run", *OPENED, "end_run"],
        ),
    ],
)
def test_each_run_is_opened_once_and_closed(monkeypatch, kind, names):
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, kind, recorder)
    logger = open_logger(f"{kind}:place")
    logger.log("a", CONFIG, 1, {"loss": 2.0})
    logger.log("a", CONFIG, 2, {"loss": 1.0})
    logger.log("b", CONFIG, 1, {"loss": 3.0})
    logger.close()
    assert [name for name, _, _ in recorder.calls] == names
    logged = [args[0] for name, args, _ in recorder.calls if name in ("log", "log_metrics")]
    assert logged == [{"loss": 2.0}, {"loss": 1.0}, {"loss": 3.0}]


@pytest.mark.parametrize(
    ("kind", "module"), [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb"), ("mlflow", "mlflow")]
)
def test_a_logger_that_is_not_installed_says_how_to_get_it(monkeypatch, kind, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        open_logger(f"{kind}:place")
