import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from dissensus import data


def test_digits_are_scikit_learns() -> None:
    graph = data.load("digits").graph
    bunch = load_digits()
    assert np.array_equal(graph.x.numpy() * 16, bunch.data)
    assert np.array_equal(graph.y.numpy(), bunch.target)
    assert graph.x.dtype == torch.float32


def test_digits_are_joined_to_their_nearest() -> None:
    graph = data.load("digits").graph
    assert graph.is_undirected()
    assert not graph.has_self_loops()
    points = load_digits().data
    distances, _ = NearestNeighbors(n_neighbors=9).fit(points).kneighbors(points)
    joined = np.zeros((len(points), len(points)), dtype=bool)
    joined[tuple(graph.edge_index.numpy())] = True
    for node in range(0, len(points), 50):
        far = np.linalg.norm(points - points[node], axis=1)
        # All strictly nearer than the eighth neighbour must be joined; ties at its distance may go either way.
        near = (far < distances[node, 8] - 1e-9) & (np.arange(len(points)) != node)
        assert joined[node, near].all()
        reach = distances[:, 8] + 1e-9
        assert (far[joined[node]] <= np.maximum(reach[node], reach)[joined[node]]).all()


def test_digits_train_on_twenty_labels_a_class() -> None:
    split = data.load("digits").split(1)
    assert split.y[split.train_mask].bincount().tolist() == [20] * 10


def test_karate_has_the_published_sizes_and_splits() -> None:
    dataset = data.load("karate")
    assert (dataset.graph.num_nodes, dataset.graph.num_edges, dataset.num_classes) == (34, 156, 4)
    for seed in dataset.default_splits:
        split = dataset.split(seed)
        assert set(split.y[split.train_mask].tolist()) == set(range(4))
