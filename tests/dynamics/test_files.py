from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from dissensus import dynamics
from dissensus.errors import InputError

GRAPH = nx.watts_strogatz_graph(12, 4, 0.2, seed=0)
U = 1.5 * float(dynamics.System(GRAPH).attention)
START = np.random.default_rng(0).uniform(-1, 1, (5, 12, 2))


@pytest.mark.slow
def test_tables_files_and_figures(tmp_path: Path) -> None:
    found = dynamics.simulate(GRAPH, START, attention=U, time=5.0)
    assert len(found.to_dataframe()) == found.states.numel()
    found.save(tmp_path / "a.npz")
    again = dynamics.Simulation.load(tmp_path / "a.npz")
    assert torch.equal(again.states, found.states)
    assert again.outcomes() == found.outcomes()
    found.run(0).plot(tmp_path / "a.png")
    diagram = dynamics.bifurcation(nx.path_graph(4), max_branches=3)
    diagram.save(tmp_path / "b.npz")
    loaded = dynamics.Bifurcation.load(tmp_path / "b.npz")
    assert [p.kind for p in loaded.points] == [p.kind for p in diagram.points]
    assert np.array_equal(loaded["upper"].states, diagram["upper"].states)
    diagram.plot(tmp_path / "b.svg")
    assert len(diagram.to_dataframe()) == sum(len(branch.z) for branch in diagram.branches)
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("a.png", "b.svg"))


def test_files_that_save_did_not_write_are_refused(tmp_path: Path) -> None:
    found = dynamics.simulate(GRAPH, START[0], options=2, attention=U, time=2.0)
    found.save(tmp_path / "a.npz")
    with pytest.raises(InputError, match="holds a simulation"):
        dynamics.Bifurcation.load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.ones(2))
    for name in ("b.npz", "missing.npz"):
        with pytest.raises(InputError, match="save wrote"):
            dynamics.Simulation.load(tmp_path / name)
    with pytest.raises(InputError, match=r"\.npz"):
        found.save(tmp_path / "a.txt")
    found.save(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "time,agent,option,opinion"
    assert len(lines) == 1 + found.states.numel()
