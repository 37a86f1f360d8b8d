"""Edge weights of a user's graph, from the file to the prediction."""

import pytest
import torch

from dissensus import nn, train
from dissensus.errors import InputError
from dissensus.train import resolve, run
from train_graphs import write_graph, write_weighted


@pytest.fixture
def weighted(tmp_path):
    path = tmp_path / "weighted.npz"
    write_weighted(path)
    return path


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.npz"
    write_weighted(path, weights=False)
    return path


def quick(path, model="gcn", **flags):
    flags = {key.replace("__", "."): value for key, value in flags.items()}
    return resolve(str(path), model, preset="none", flags={"train.epochs": 4, "model.hidden_channels": 8, **flags})


class Batches:
    def __init__(self, *batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def test_a_model_learns_from_weights(weighted, plain):
    with_weights, without = (run(quick(path, train__epochs=60)).test for path in (weighted, plain))
    assert with_weights > 90.0
    assert without < 80.0


@pytest.mark.slow
@pytest.mark.parametrize("model", nn.names())
def test_every_model_trains_with_weights(model, weighted):
    result = run(quick(weighted, model, train__epochs=2))
    graph = result.dataset.graph
    with torch.no_grad():
        scores = result.model(graph.x, graph.edge_index, graph.edge_weight)
    mask = result.dataset.split(1).test_mask
    assert 100.0 * (scores.argmax(1) == graph.y)[mask].double().mean().item() == pytest.approx(result.test)


def test_selection_over_time_sees_the_weights(weighted):
    result = run(quick(weighted, "grand-l", train__select_time=True, model__method="euler", train__epochs=20))
    graph = result.dataset.graph
    with torch.no_grad():
        seen, unseen = (result.model(graph.x, graph.edge_index, w) for w in (graph.edge_weight, None))
    mask = result.dataset.split(1).test_mask
    accuracies = [100.0 * (s.argmax(1) == graph.y)[mask].double().mean().item() for s in (seen, unseen)]
    assert accuracies[0] == pytest.approx(result.test)
    assert accuracies[1] < accuracies[0]


def test_a_loader_that_loses_the_weights_is_refused(weighted, plain):
    unweighted = run(quick(plain)).dataset.split(1)
    with pytest.raises(InputError, match=r"no edge_weight.*keep it in the batches"):
        run(quick(weighted), loader=Batches(unweighted))


def test_clusters_and_loaders_carry_the_weights(weighted, plain):
    full = run(quick(weighted))
    assert full.history != run(quick(plain)).history
    assert run(quick(weighted, train__clusters=1)).history == full.history
    assert run(quick(weighted), loader=Batches(full.dataset.split(1))).history == full.history
    pieces = list(train._batch.clusters_of(quick(weighted, train__clusters=4).train, full.dataset.split(1), 0, 1))
    index = {
        tuple(ends): w
        for ends, w in zip(full.dataset.graph.edge_index.T.tolist(), full.dataset.graph.edge_weight, strict=True)
    }
    for piece in pieces:
        ends = piece.n_id[piece.edge_index]
        assert [index[tuple(pair)] for pair in ends.T.tolist()] == piece.edge_weight.tolist()


@pytest.mark.parametrize("undirected", [False, True])
def test_what_is_predicted_is_weighted_too(weighted, tmp_path, undirected):
    result = run(quick(weighted, "bimp", data__undirected=undirected, train__dtype="float64"))
    train.save(result, tmp_path / "model")
    saved = train.load_saved(tmp_path / "model")
    found = train.predict(saved, train.prepare(saved, weighted))
    graph = result.dataset.graph
    with torch.no_grad():
        scores = result.model(graph.x.double(), graph.edge_index, graph.edge_weight)
    assert torch.equal(found.values, scores.softmax(1))


def test_a_graph_without_weights_has_none(tmp_path):
    write_graph(tmp_path / "graph.npz")
    split = train._batch.WholeGraph.of(
        run(quick(tmp_path / "graph.npz", train__epochs=1)).dataset.split(1), torch.device("cpu"), torch.float64
    )
    assert "edge_weight" not in split.fields
