import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch
from torch_geometric.data import Data

from dissensus import dynamics
from dissensus.errors import InputError


def test_nested_lists_are_one_matrix() -> None:
    assert dynamics.simulate([[0, 1], [1, 0]], [1.0, -1.0], attention=0.2, times=[1.0]).states.shape == (1, 2, 1)


KARATE = nx.to_numpy_array(nx.karate_club_graph())


def kinds() -> dict[str, object]:
    graph = nx.karate_club_graph()
    row, col = KARATE.nonzero()
    edge_index, weight = torch.from_numpy(np.stack([col, row])), torch.from_numpy(KARATE[row, col])
    return {
        "networkx": graph,
        "pyg": Data(edge_index=edge_index, edge_weight=weight, num_nodes=34),
        "pyg from networkx": Data(edge_index=edge_index, weight=weight, num_nodes=34),
        "numpy": KARATE,
        "scipy": scipy.sparse.coo_matrix(KARATE),
        "scipy array": scipy.sparse.csr_array(KARATE),
        "torch": torch.from_numpy(KARATE),
        "torch sparse": torch.from_numpy(KARATE).to_sparse(),
        "torch csr": torch.from_numpy(KARATE).to_sparse_csr(),
    }


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_graph_is_the_same_matrix(kind: str) -> None:
    assert np.array_equal(dynamics.as_matrix(kinds()[kind]).toarray(), KARATE)


def test_edges_run_from_source_to_listener() -> None:
    edge_index = torch.tensor([[0, 0, 2], [1, 1, 1]])  # 0 -> 1 twice, 2 -> 1
    expected = np.zeros((4, 4))
    expected[1, 0] = expected[1, 2] = 1.0
    assert np.array_equal(dynamics.as_matrix(edge_index, num_nodes=4).toarray(), expected)
    assert dynamics.as_matrix(edge_index).shape == (3, 3)
    data = Data(edge_index=edge_index, edge_weight=torch.tensor([2.0, 3.0, -1.0]), num_nodes=3)
    assert dynamics.as_matrix(data).toarray()[1].tolist() == [5.0, 0.0, -1.0]
    arrow = nx.DiGraph()
    arrow.add_nodes_from(range(3))
    arrow.add_edge(0, 1)
    assert dynamics.as_matrix(arrow).toarray()[1].tolist() == [1.0, 0.0, 0.0]


def test_rows_are_normalised_by_absolute_sums_without_touching_the_input() -> None:
    given = scipy.sparse.csr_array(np.array([[1.0, -3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 5.0, 5.0]]))
    before = given.toarray()
    found = dynamics.as_matrix(given, normalize=True).toarray()
    assert np.allclose(found, [[0.25, -0.75, 0.0], [0.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    assert np.allclose(dynamics.as_matrix(given, self_loops=False, normalize=True).toarray()[0], [0.0, -1.0, 0.0])
    assert np.array_equal(given.toarray(), before)


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ("karate", "networkx graph"),
        ([[0, 1], [1]], "square"),
        ([["a", "b"], ["c", "d"]], "not real numbers"),
        (nx.Graph([(0, 1, {"weight": "strong"})]), "not a number"),
        (np.zeros((2, 3)), "square"),
        (np.array([[0.0, np.nan], [1.0, 0.0]]), "NaN"),
        (nx.Graph(), "no nodes"),
        (torch.tensor([[0, -1], [1, 0]]), "node -1"),
        (Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.ones(3), num_nodes=2), "edge_weight"),
    ],
)
def test_bad_graphs_are_refused(wrong: object, cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        dynamics.as_matrix(wrong)
