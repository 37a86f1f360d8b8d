"""``measure.depths`` from a notebook; the command's own tests are in test_measure_cli.py."""

from pathlib import Path

import pytest
from torch_geometric.nn.models import GCN as BasicGCN

from dissensus import data, measure, nn
from dissensus.errors import InputError

MY_NET = f"{Path(__file__).parents[2] / 'examples' / 'my_model.py'}:MyNet"


def test_a_model_by_name_is_made_for_every_depth() -> None:
    said: list[str] = []
    found = measure.depths("gcn", "karate", [1, 4], hidden_channels=8, notify=said.append)
    assert said == ["gcn at depth 1", "gcn at depth 4"]
    assert [row["depth"] for row in found.rows] == [1, 4]
    assert found.rows[1]["dirichlet_energy"] < found.rows[0]["dirichlet_energy"]
    assert found.decay["dirichlet_energy"].rate > 0
    assert {"energy", "rank", "filter"} <= found.charts().keys()
    assert found.as_dict()["hidden"] == 8


def test_a_module_of_ones_own_is_read_at_its_last_hidden_layer() -> None:
    found = measure.depths(MY_NET, "karate", [1, 2], hidden_channels=8)
    assert [row["depth"] for row in found.rows] == [1, 2]
    assert all(1 <= row["effective_rank"] <= 8 and row["gradient_norm"] > 0 for row in found.rows)


def test_a_model_in_hand_is_read_on_a_dataset_in_hand() -> None:
    karate = data.load("karate")
    model = nn.create("bimp", in_channels=34, hidden_channels=8, out_channels=4, time=2.0)
    found = measure.depths(model, karate, [1, 2])
    graph = karate.split(1)
    for row, state in zip(found.rows, measure.watch(model, graph, times=[1, 2]).states, strict=True):
        assert row["mad"] == pytest.approx(float(measure.mad(state, graph.edge_index)), rel=1e-4)
    assert found.whole["gradient_norm"] > 0
    plain = BasicGCN(34, 8, num_layers=3, out_channels=4)
    assert [row["depth"] for row in measure.depths(plain, karate).rows] == [1, 2, 3]
    with pytest.raises(InputError, match="untrained model"):
        measure.depths(model, karate, seed=3)
