"""What CONTRIBUTING asks of somebody who adds a model, a dataset or a study is enough."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from dissensus import data, nn, studies, train
from dissensus.data import _catalogue, _load
from dissensus.nn import _registry
from dissensus.studies._accuracy import accuracy_views
from dissensus.studies._study import Training

NAME = "added"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(_registry, "_REGISTERED", {**_registry._REGISTERED})

    @nn.register(NAME, equation="X ← SAGE(X)", source="this test")
    class Added(torch.nn.Module):
        def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
            super().__init__()
            self.conv = SAGEConv(in_channels, out_channels)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    return NAME


@pytest.fixture
def dataset(monkeypatch: pytest.MonkeyPatch) -> str:
    def two_cliques() -> data.Dataset:
        kind = torch.arange(20) % 2
        edge_index = (kind[:, None] == kind[None, :]).fill_diagonal_(False).nonzero().T.contiguous()
        return data.from_pyg(Data(x=torch.eye(20), edge_index=edge_index, y=kind), name=NAME)

    entry = _catalogue.Entry(NAME, 20, 90, 20, 2, 1.0, "generated", "two cliques")
    monkeypatch.setitem(_catalogue.CATALOGUE, NAME, entry)
    monkeypatch.setitem(_load._MADE, NAME, two_cliques)
    return NAME


def test_an_added_model_trains_by_its_name(model: str) -> None:
    assert model in nn.names()
    result = train.run(train.resolve("karate", model, flags={"train.epochs": 3}))
    assert 0 <= result.test <= 100


def test_an_added_dataset_is_found_and_learned(dataset: str) -> None:
    assert dataset in data.names()
    assert data.info(dataset).nodes == data.load(dataset).graph.num_nodes
    result = train.run(train.resolve(dataset, "sgc", flags={"train.epochs": 30}))
    assert result.test == 100.0


def test_an_added_study_writes_its_table(
    model: str, dataset: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study = Training(
        name=NAME,
        title="Added",
        about="A test.",
        models=(model, "gcn"),
        datasets=(dataset,),
        views=accuracy_views("Added"),
    )
    monkeypatch.setitem(studies.STUDIES, NAME, study)
    done = studies.reproduce(
        NAME, quick=True, models=[model, "gcn"], datasets=[dataset], splits=[1, 2], output=tmp_path
    )
    assert [row["error"] for row in done.studies[NAME].rows] == [None] * 4
    lines = (tmp_path / NAME / "tables" / "accuracy.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in lines] == ["model", model, "gcn"]
