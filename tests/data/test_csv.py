from pathlib import Path

import pytest
import torch

from dissensus import data
from dissensus.errors import InputError

NODES = """id,height,label,weight
ann,1.5,red,3
bob,2,,4
"c, d",1e-3,blue,5
"""


def tables(folder: Path, nodes: str = NODES, edges: str = 'source,target\nann,bob\nbob,"c, d"\n') -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    return folder


# --- csv


def test_csv_folder_is_read(tmp_path: Path) -> None:
    dataset = data.load(tables(tmp_path / "people"))
    assert dataset.name == "people"
    assert dataset.node_ids == ("ann", "bob", "c, d")
    assert dataset.feature_names == ("height", "weight")
    assert dataset.class_names == ("blue", "red")
    assert dataset.graph.y.tolist() == [1, -1, 0]
    assert torch.equal(dataset.graph.x, torch.tensor([[1.5, 3], [2, 4], [1e-3, 5]]))
    assert dataset.graph.edge_index.tolist() == [[0, 1], [1, 2]]
    assert dataset.graph.edge_weight is None


@pytest.mark.parametrize("name", ["town-edges.csv", "town-nodes.csv"])
def test_csv_is_found_from_either_table(tmp_path: Path, name: str) -> None:
    folder = tables(tmp_path)
    for kind in ("edges", "nodes"):
        (folder / f"{kind}.csv").rename(folder / f"town-{kind}.csv")
    assert data.load(folder / name).graph.num_nodes == 3


def test_csv_columns_are_found_by_name_and_other_edge_columns_left_out(tmp_path: Path) -> None:
    nodes = "\ufeffy,f,id\n3,1,a\n-1,1,b\n10,1,c\n\n"
    dataset = data.load(tables(tmp_path, nodes, "weight,target,since,source\n0.5,b,May,a\n"))
    assert dataset.graph.edge_index.tolist() == [[0], [1]]
    assert dataset.graph.edge_weight.tolist() == [0.5]
    assert dataset.class_names == ("3", "10")
    assert dataset.graph.y.tolist() == [0, -1, 1]


def test_csv_without_labels_or_edges_is_allowed(tmp_path: Path) -> None:
    dataset = data.load(tables(tmp_path, "id,f\na,1\n", "source,target\n"))
    assert dataset.num_classes == 0
    assert dataset.graph.edge_index.shape == (2, 0)


def test_csv_mask_columns_are_masks_and_no_features(tmp_path: Path) -> None:
    nodes = "id,f,y,train_mask,val_mask,test_mask\na,1,0,1,0,0\nb,1,1,false,TRUE,\nc,1,0,0,0,1\nd,1,,,,\n"
    dataset = data.load(tables(tmp_path, nodes, "source,target\na,b\n"))
    assert dataset.graph.num_features == 1
    split = dataset.split(0)
    assert [mask.nonzero().item() for mask in (split.train_mask, split.val_mask, split.test_mask)] == [0, 1, 2]


def test_csv_largest_component_keeps_the_ids(tmp_path: Path) -> None:
    dataset = data.load(tables(tmp_path, edges='source,target\nbob,"c, d"\n'), largest_component=True)
    assert dataset.node_ids == ("bob", "c, d")


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("", None, "nodes.csv is empty: start it with a header line"),
        ("id,f\n", None, "has a header but no nodes: add"),
        ("id,label\na,red\n", None, "line 1: there is no feature column"),
        ("id,f,f\na,1,1\n", None, "line 1: two columns have the name 'f': rename one"),
        ("id,f,label,y\na,1,1,1\n", None, "both 'label' and 'y'"),
        ("id,f\na,1\nb\n", None, "nodes.csv, line 3: 1 cells, but the first line has 2"),
        ("id,f\na,1\na,2\n", None, "nodes.csv, line 3: node 'a' is already in line 2: drop one"),
        ("id,f\n,1\n", None, "line 2: the node has no id: fill column 'id'"),
        ("id,f\na,1\nb,tall\n", None, "line 3, column 'f': 'tall' is not a finite number: fill it in, encode"),
        ("id,f\na,\n", None, "line 2, column 'f': '' is not a finite number"),
        ("id,f\na,nan\n", None, "'nan' is not a finite number"),
        ("id,f\na,1e300\n", None, "'1e300' is not a finite number"),
        ("id,f\na," + "9" * 400 + "\n", None, r"'9{40}\.\.\.' is not a finite number"),
        ("id,f,train_mask\na,1,2\n", None, "column 'train_mask': '2' is neither 0 nor 1"),
        ("id,f,train_mask\na,1,1\n", None, "there is train_mask but no val_mask"),
        ('id,f\na,"1\n', None, "cannot be read as CSV"),
        (None, "", "edges.csv is empty"),
        (None, "source\n", "an edge needs two columns"),
        (None, "ann,bob\nbob,ann\n", "line 1 is an edge, not a header: put the line 'source,target'"),
        (None, "source,target\nann,bob\nann,eve\n", "edges.csv, line 3: node 'eve' is not in nodes.csv: add it"),
        (
            None,
            "source,target,weight\nann,bob,-1\n",
            "edges.csv, line 2, column 'weight': '-1' is not a positive number",
        ),
        (None, "source,target,weight\nann,bob,\n", "'' is not a positive number: correct it, drop the edge, or rename"),
        (None, "source,target,weight\nann,bob,nan\n", "'nan' is not a positive number"),
        (None, "source,target,weight\nann,bob,1e-60\n", "'1e-60' is not a positive number"),
    ],
)
def test_csv_faults_name_file_line_and_cure(tmp_path: Path, nodes: str | None, edges: str | None, message: str) -> None:
    folder = tables(tmp_path, nodes=NODES if nodes is None else nodes)
    (folder / "edges.csv").write_text("source,target\n" if edges is None else edges)
    with pytest.raises(InputError, match=message):
        data.load(folder)


def test_csv_in_another_encoding(tmp_path: Path) -> None:
    folder = tables(tmp_path)
    (folder / "nodes.csv").write_bytes("id,f\nJosé,1\n".encode("latin-1"))
    with pytest.raises(InputError, match="save it as comma-separated text in UTF-8"):
        data.load(folder)
