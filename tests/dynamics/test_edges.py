from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from dissensus import dynamics
from dissensus.errors import InputError

MATRIX = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, -1.0], [0.0, -1.0, 0.0]])


def test_tuples_are_an_edge_list_and_lists_a_matrix() -> None:
    assert np.array_equal(dynamics.as_matrix([("a", "b", 2.0), ("b", "c", -1.0)]).toarray(), MATRIX)
    assert np.array_equal(dynamics.as_matrix([(2, 1, -1), (1, 0, 2)]).toarray(), MATRIX)  # by their numbers
    one_way = dynamics.as_matrix([("a", "b", 2.0), ("b", "c", -1.0)], directed=True)
    assert np.array_equal(one_way.toarray(), np.tril(MATRIX))
    assert np.array_equal(dynamics.as_matrix([(0, 1), (1, 0)]).toarray(), [[0, 1], [1, 0]])
    assert np.array_equal(dynamics.as_matrix([[0, 1], [1, 0]]).toarray(), [[0, 1], [1, 0]])
    # The way back may have a weight of its own.
    assert np.array_equal(dynamics.as_matrix([(0, 1, 2.0), (1, 0, 3.0)]).toarray(), [[0, 3], [2, 0]])


def test_a_csv_file_is_a_graph_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "friends.csv"
    path.write_text("source,target,weight\nann,bob,2\nbob,cat,-1\n")
    assert np.array_equal(dynamics.as_matrix(path).toarray(), MATRIX)
    expected = dynamics.critical_attention(MATRIX)
    assert dynamics.critical_attention(str(path)) == pytest.approx(expected)
    run = dynamics.simulate(path, [0.1, 0.2, 0.3], attention=0.5, times=[1.0])
    assert run.final.allclose(dynamics.simulate(MATRIX, [0.1, 0.2, 0.3], attention=0.5, times=[1.0]).final)


def test_nodes_number_the_agents(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\nb,a\n")
    (tmp_path / "nodes.csv").write_text("name,id\nAnn,a\nCat,c\nBob,b\n")
    expected = np.zeros((3, 3))
    expected[0, 2] = expected[2, 0] = 1.0
    for path in (tmp_path, tmp_path / "edges.csv"):
        assert np.array_equal(dynamics.as_matrix(path).toarray(), expected)
    (tmp_path / "edges.csv").write_text("source,target\nb,d\n")
    with pytest.raises(InputError, match="'d' is an end of an edge, but not in"):
        dynamics.as_matrix(tmp_path)


@pytest.mark.parametrize(
    ("edges", "cure"),
    [([(0,)], "give \\(source, target\\)"), ([(0, 1, "much")], "not a number"), ([(0, 1, np.inf)], "infinite")],
)
def test_bad_edges_are_refused(edges: list[tuple[object, ...]], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        dynamics.as_matrix(edges)


def test_networkx_reads_weights_and_the_data_set_has_none() -> None:
    assert dynamics.as_matrix(nx.karate_club_graph()).data.max() == 7.0
