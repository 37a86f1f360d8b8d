"""Runs on real Ray clusters, on the loopback interface only."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from dissensus import runs
from dissensus.errors import MissingExtraError

HERE = Path(__file__).parents[1] / "support"
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="the extra 'ray' is not installed")


def _answer(*command):
    """What a program prints: one JSON object and nothing else."""
    environment = os.environ | {
        "PYTHONPATH": str(HERE),
        # Loopback, and none of Ray's warnings.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@needs_ray
@pytest.mark.slow
def test_a_killed_node_costs_only_its_unfinished_runs(tmp_path):
    answer = _answer(str(HERE / "runs_cluster.py"), str(tmp_path / "runs.db"))
    assert answer["squares"] == [x * x for x in range(12)]
    assert answer["calls"] == 12
    # Both nodes had a part in it, and one of them died before the end.
    assert answer["processes"] >= 2
    assert 4 <= answer["killed"][0] < 12
    assert answer["failing"] == [None, "ValueError: 1 is odd"]
    assert answer["dying"] == [None, "the Ray worker died (WorkerCrashedError), 4 times in a row"]
    assert answer["again"] == 0


@needs_ray
@pytest.mark.slow
def test_without_an_address_ray_starts_here():
    code = (
        "import json; from dissensus import runs\n"
        "configs = runs.grid({}, {'x': range(4)})\n"
        "summary = runs.execute(configs, 'runs_targets:square', executor='ray', workers=1)\n"
        "import ray\n"
        "print(json.dumps([[record.result['square'] for record in summary.records], ray.is_initialized()]))"
    )
    assert _answer("-c", code) == [[0, 1, 4, 9], False]


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dissensus\[ray\]'"):
        runs.execute([{"x": 1}], "runs_targets:square", executor="ray")
