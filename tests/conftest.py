"""What every test shares: one thread a worker, folders and a registry of its own, and repeatable Hypothesis runs."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Read when torch is loaded, here and in the processes that tests start: test workers share the cores among themselves.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# What the surrounding environment offers; the tests themselves start from a clean one.
REAL_DATA = os.environ.get("DISSENSUS_DATA")

settings.register_profile(
    "dissensus", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dissensus")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever opens a browser is slow."""
    for item in items:
        if {"browser", "opened"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _models_as_before() -> Iterator[None]:
    """Forget the models that a test registers or loads from a file, so that no test sees another's."""
    from dissensus.nn import _registry  # after the environment variables above

    registered = {cls: list(infos) for cls, infos in _registry._REGISTERED.items()}
    modules = set(sys.modules)
    yield
    _registry._REGISTERED.clear()
    _registry._REGISTERED.update(registered)
    for name in set(sys.modules) - modules:
        if name.startswith("dissensus_model_"):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No raw files, and a cache of the test's own."""
    monkeypatch.delenv("DISSENSUS_DATA", raising=False)
    monkeypatch.setenv("DISSENSUS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real raw files; the test is skipped where there is none."""
    if not REAL_DATA or not Path(REAL_DATA).is_dir():
        pytest.skip("DISSENSUS_DATA names no folder of raw files")
    monkeypatch.setenv("DISSENSUS_DATA", REAL_DATA)
    return Path(REAL_DATA)


@pytest.fixture
def small_texas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for DISSENSUS_DATA that holds a tiny Texas in the layout of the real one; returns its raw folder."""
    import numpy as np  # after the environment variables above

    raw = tmp_path / "data" / "texas" / "raw"
    raw.mkdir(parents=True)
    random = np.random.default_rng(0)
    lines = [f"{i}\t{','.join(map(str, random.integers(0, 2, 4)))}\t{i % 5}" for i in range(20)]
    (raw / "out1_node_feature_label.txt").write_text("node_id\tfeature\tlabel\n" + "\n".join(lines) + "\n")
    edges = [f"{i}\t{(i * 7 + 1) % 20}" for i in range(20)]
    (raw / "out1_graph_edges.txt").write_text("node_id\tnode_id\n" + "\n".join(edges) + "\n")
    for k in range(10):
        order = random.permutation(20)
        masks = {
            name: np.isin(np.arange(20), part)
            for name, part in zip(("train", "val", "test"), np.split(order, [10, 15]), strict=True)
        }
        np.savez(raw / f"texas_split_0.6_0.2_{k}.npz", **{f"{name}_mask": mask for name, mask in masks.items()})
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path / "data"))
    return raw


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: exit code, standard output, standard error."""
    from dissensus import cli

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def answer(call: Callable[..., tuple[int, str, str]]) -> Callable[..., Any]:
    """Run a command with --json that must succeed, and parse what it prints."""

    def run(*arguments: object) -> Any:
        code, out, err = call(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run
