"""Several workers for one training: on the loopback interface, and the same as one worker with all of their batches."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from queue import Queue

import pytest

from dissensus.errors import DissensusError, InputError, MissingExtraError, TrainingError
from dissensus.train import Epoch, resolve, run
from dissensus.train._distributed import _wait_for_result

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="the extra 'ray' is not installed")


def config(**flags):
    return resolve("karate", "gcn", preset="none", flags={f"train.{key}": value for key, value in flags.items()})


@pytest.mark.slow
@needs_ray
def test_two_workers_make_the_steps_of_one_with_twice_the_batch():
    program = Path(__file__).parents[1] / "support" / "train_distributed.py"
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    # On a busy machine the workers take their time to start.
    environment["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "240"
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)  # one JSON object: Ray and its workers print nothing there
    assert len(answer["two"]) == 3
    assert answer["two"] == pytest.approx(answer["one"], abs=1e-4)
    assert answer["parameters"] < 1e-4
    assert answer["val"][0] == answer["val"][1]
    assert answer["seen"] == answer["two"]
    # A plain mean over workers would be wrong here.
    assert min(answer["counts"]) == 0
    assert max(answer["counts"]) > 2
    assert answer["two"][-1] < answer["two"][0]
    assert (answer["training"], answer["clusters"]) == (False, 24)


def test_what_cannot_be_shared_is_refused_before_ray_starts(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"set train\.clusters"):
        run(config(), workers=2)
    with pytest.raises(InputError, match="3 batches, which 2 workers cannot share evenly"):
        run(config(clusters=6, clusters_per_step=2), workers=2)
    with pytest.raises(InputError, match="at least one"):
        run(config(clusters=6), workers=0)
    with pytest.raises(MissingExtraError, match=r"dissensus\[ray\]"):
        run(config(clusters=6), workers=2)


class Worker:
    """Puts messages into a queue, as the workers do, then fails if it is to."""

    def __init__(self, *messages, failure=None):
        self.messages, self.failure, self.queue = messages, failure, Queue()

    def fit(self):
        for message in self.messages:
            self.queue.put(message)
        if self.failure is not None:
            raise self.failure

    def answer(self, progress=None):
        return _wait_for_result(self, self.queue, progress)


def test_epochs_are_handed_on_and_the_first_error_is_told():
    first, second = (Epoch(number, 1.0, 50.0, 1.0) for number in (1, 2))
    seen = []
    assert Worker(first, second, {"val": 3}).answer(seen.append) == {"val": 3}
    assert seen == [first, second]
    diverged, lost = TrainingError("lower train.lr"), RuntimeError("a worker died")
    assert Worker(first, diverged, failure=lost).answer() is diverged
    assert Worker(first, failure=lost).answer() is lost
    nothing = Worker(first).answer()
    assert isinstance(nothing, DissensusError)
    assert "Ray's logs" in str(nothing)
