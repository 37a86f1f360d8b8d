import os
from pathlib import Path

import numpy as np
import pytest

# What the surrounding environment offers; the tests themselves start from a clean one.
REAL_DATA = os.environ.get("DISSENSUS_DATA")


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
