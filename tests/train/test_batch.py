"""Training on clusters of nodes, and on the batches of a loader."""

import sys
from dataclasses import replace
from weakref import ref

import pytest
import torch
from torch_geometric.data import Batch as PyGBatch
from torch_geometric.data import Data

from dissensus import data, nn
from dissensus.errors import InputError, MissingExtraError
from dissensus.train import resolve, run
from dissensus.train._batch import Batch


def quick(model="bimp", **flags):
    flags = {
        "data.nodes": 300,
        "data.noise": 0.5,
        "model.hidden_channels": 8,
        "train.epochs": 3,
        **{key.replace("__", "."): value for key, value in flags.items()},
    }
    return resolve("csbm", model, preset="none", flags=flags)


def graph_of(config):
    return config.data.load().split(config.data.split)


class Batches:
    """A loader in its simplest form."""

    def __init__(self, *batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@pytest.mark.slow
def test_clusters_come_close_to_the_accuracy_of_the_full_batch():
    flags = {"data__nodes": 1000, "train__lr": 0.03, "model__method": "euler", "model__time": 4.0}
    full = run(quick(train__epochs=40, **flags))
    clustered = run(quick(train__epochs=20, train__clusters=12, train__clusters_per_step=4, **flags))
    assert clustered.test > 85.0  # four classes: chance is 25
    assert clustered.test > full.test - 3.0


@pytest.mark.slow
def test_the_same_configuration_gives_the_same_bits():
    config = quick(train__clusters=6, train__clusters_per_step=2)
    first, second = run(config), run(config)
    assert first.history == second.history
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True))
    seed = replace(config, train=replace(config.train, seed=2))
    assert run(seed).history != first.history


def test_one_cluster_is_the_full_batch():
    full, one = run(quick()), run(quick(train__clusters=1))
    assert one.history == full.history
    assert (one.val, one.test) == (full.val, full.test)


def test_an_epoch_is_one_step_for_each_group_of_clusters(monkeypatch):
    sizes = []
    scores = Batch.scores

    def watched(batch, model, forward=None):
        if model.training:
            sizes.append(len(batch.y))
        return scores(batch, model, forward)

    monkeypatch.setattr(Batch, "scores", watched)
    run(quick("gcn", train__clusters=6, train__clusters_per_step=4))
    assert len(sizes) == 3 * 2
    assert sum(sizes) == 3 * 300
    # No tensor of a step has as many rows as the graph: the limit of a cluster is 1.05 times the mean, rounded up.
    assert max(sizes) <= 4 * 53


@pytest.mark.parametrize("model", nn.names())
@pytest.mark.slow
def test_every_model_trains_on_clusters(model):
    result = run(quick(model, data__nodes=60, data__degree=4.0, train__clusters=4, train__epochs=2))
    assert torch.isfinite(result.model(*inputs(result))).all()


def inputs(result):
    graph = result.dataset.split(1)
    return graph.x, graph.edge_index


def test_sources_are_those_of_the_batch_in_training_and_of_the_split_after_it():
    config = quick("grand++-l", train__clusters=4)
    result = run(config)
    assert torch.equal(result.model.sources, graph_of(config).train_mask)


def test_batches_without_training_nodes_are_passed_over():
    graph = graph_of(quick())
    bare = graph.clone()
    bare.train_mask = torch.zeros_like(graph.train_mask)
    assert run(quick("gcn"), loader=Batches(bare, graph, bare)).history == run(quick("gcn")).history
    with pytest.raises(InputError, match="no batch of the epoch has a training node"):
        run(quick("gcn"), loader=Batches(bare))


def test_the_scores_of_a_batch_are_gone_while_the_next_is_made(monkeypatch):
    graph, alive, held = graph_of(quick()), [], []

    class Watching(Batches):
        def __iter__(self):
            for batch in self.batches:
                held.append(sum(scores() is not None for scores in alive))
                yield batch

    def remember(*args):
        scores = given(*args)
        alive.append(ref(scores))
        return scores

    given = Batch.scores
    monkeypatch.setattr(Batch, "scores", remember)
    run(quick(train__epochs=2), loader=Watching(graph, graph, graph))
    assert len(alive) == 6 + 2  # a step each, and the evaluations
    assert held == [0] * 6


def test_the_loss_of_an_epoch_is_the_mean_over_its_training_nodes():
    graph = graph_of(quick())
    config = quick("mlp", train__epochs=1, train__lr=1e-12, model__dropout=0.0, model__input_dropout=0.0)
    # Without a graph, and with a step too small to matter, pieces add up to the whole.
    whole, pieces = run(config), run(config, loader=data.clusters(graph, 5))
    assert pieces.history[0].loss == pytest.approx(whole.history[0].loss, abs=1e-6)


def test_a_batch_of_two_graphs_counts_as_two():
    graph = graph_of(quick())
    parts = list(data.clusters(graph, 2, seed=3))
    both = Batch.of(PyGBatch.from_data_list(parts), torch.device("cpu"), torch.float32)
    assert both.graph.tolist() == sorted(both.graph.tolist())
    assert len(both.train) == int(graph.train_mask.sum())
    torch.manual_seed(0)
    model = nn.BIMP(32, 8, 4, method="euler").eval()
    apart = [Batch.of(part, torch.device("cpu"), torch.float32).scores(model) for part in parts]
    assert torch.allclose(both.scores(model), torch.cat(apart), atol=1e-5)


def test_a_neighbor_loaders_loss_is_that_of_its_first_nodes():
    graph = graph_of(quick())
    batch = graph.clone()
    batch.batch_size = 100
    found = Batch.of(batch, torch.device("cpu"), torch.float32)
    assert torch.equal(found.train, graph.train_mask[:100].nonzero().view(-1))
    assert torch.equal(found.known, graph.train_mask)
    first = run(quick("gcn"), loader=Batches(batch)).history
    masked = graph.clone()
    masked.train_mask = graph.train_mask & (torch.arange(300) < 100)
    assert first == run(quick("gcn"), loader=Batches(masked)).history
    assert first != run(quick("gcn")).history


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"train.clusters": 0}, "at least 1"),
        ({"train.clusters": 2.5}, "give an integer"),
        ({"train.clusters": 4, "train.clusters_per_step": 5}, "at most the 4"),
        ({"train.clusters": 4, "train.clusters_per_step": 0}, "at least 1"),
        ({"train.clusters_per_step": 2}, r"set train\.clusters"),
        ({"train.partitioner": "greedy"}, r"set train\.clusters"),
        ({"train.clusters": 4, "train.partitioner": "mets"}, "did you mean 'metis'"),
        ({"train.clusters": 4, "model.option_attention": "node"}, "to gram or identity"),
    ],
)
def test_wrong_settings_are_refused(flags, message):
    with pytest.raises(InputError, match=message):
        resolve("karate", preset="none", flags=flags).check()


def test_a_run_in_full_batch_says_nothing_of_clusters():
    assert "clusters" not in str(resolve("cora").as_dict())
    config = quick(train__clusters=4, train__partitioner="greedy")
    assert config.as_dict()["train"]["clusters"] == 4


def test_wrong_loaders_are_refused():
    graph = graph_of(quick())
    with pytest.raises(InputError, match="used up after one epoch"):
        run(quick(), loader=iter([graph]))
    with pytest.raises(InputError, match="has no train_mask"):
        run(quick(), loader=Batches(Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)))
    with pytest.raises(InputError, match="to gram or identity"):
        run(quick(model__option_attention="node"), loader=Batches(graph))
    with pytest.raises(InputError, match="give one of them"):
        run(quick(train__clusters=2), loader=Batches(graph))


def test_more_clusters_than_nodes_are_refused():
    with pytest.raises(InputError, match="from 1 to 300"):
        run(quick(train__clusters=301))


def test_a_missing_partitioner_is_noticed_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MissingExtraError, match=r"dissensus\[partition\]"):
        quick(train__clusters=2, train__partitioner="metis").check()


def test_clusters_have_flags(answer):
    found = answer(
        "train", "karate", "--model", "gcn", "--epochs", 2, "--splits", 1, "--clusters", 4, "--clusters-per-step", 2,
    )  # fmt: skip
    settings = found["config"]["train"]
    assert (settings["clusters"], settings["clusters_per_step"]) == (4, 2)
