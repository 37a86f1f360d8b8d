import errno
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
import torch
from torch_geometric import datasets

from dissensus import data
from dissensus.data import _benchmarks
from dissensus.data._catalogue import CATALOGUE, cache_folder, download_cache, raw_folder
from dissensus.errors import InputError, MissingExtraError
from published_splits import as_sets, literal_split

REAL = [name for name, entry in CATALOGUE.items() if not entry.built_in and not name.startswith("ogbn")]
BUILT_IN = [name for name, entry in CATALOGUE.items() if entry.built_in]


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def check_facts(dataset: data.Dataset) -> None:
    entry, graph = CATALOGUE[dataset.name], dataset.graph
    assert graph.is_undirected() != entry.directed
    edges = graph.num_edges if entry.directed else graph.num_edges // 2
    assert (graph.num_nodes, edges, graph.num_features) == (entry.nodes, entry.edges, entry.features)
    assert dataset.num_classes == entry.classes
    assert dataset.metric == entry.metric
    if entry.classes:
        assert len(graph.y[graph.y >= 0].unique()) == entry.classes
    if entry.homophily is not None:
        assert dataset.homophily == pytest.approx(entry.homophily, abs=1e-6)
    of_targets = torch.int64 if entry.classes else torch.float32
    assert (graph.x.dtype, graph.edge_index.dtype, graph.y.dtype) == (torch.float32, torch.int64, of_targets)
    assert graph.edge_weight is None
    for seed in dataset.default_splits[:2]:
        split = dataset.split(seed)
        masks = (split.train_mask, split.val_mask, split.test_mask)
        assert bool(sum(mask.int() for mask in masks).le(1).all())
        assert all(mask.shape == graph.y.shape and mask.any() for mask in masks)


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.slow
def test_facts_of_the_built_in_datasets(name: str) -> None:
    check_facts(data.load(name))
    assert CATALOGUE[name].present == "built in"


@pytest.mark.parametrize("name", REAL)
@pytest.mark.slow
def test_real_dataset_has_the_published_facts_and_splits(name: str, real_data: Path) -> None:
    entry = CATALOGUE[name]
    if raw_folder(entry) is None:
        pytest.skip(f"the files of {name} are not there")
    before = listing(real_data / entry.folder)
    dataset = data.load(name)
    assert listing(real_data / entry.folder) == before
    assert not list(cache_folder().glob("*/"))
    assert entry.present == "DISSENSUS_DATA"
    check_facts(dataset)
    again = data.load(name)
    assert again.fingerprint == dataset.fingerprint
    if entry.development is None:
        assert dataset.default_splits == tuple(range(10))
        if entry.directed:
            assert dataset.protocol == "ten fixed geom-gcn splits 0-9"
            train = np.load(real_data / entry.folder / entry.files[2 + 3])["train_mask"]
        else:
            assert dataset.protocol == "ten fixed splits 0-9"
            train = np.load(real_data / entry.folder / entry.files[0])["train_masks"][3]
        assert np.array_equal(dataset.split(3).train_mask.numpy(), train.astype(bool))
        with pytest.raises(InputError, match="no split 10, only the fixed splits 0-9"):
            dataset.split(10)
    else:
        assert dataset.protocol == f"random 20 per class of {entry.development} development nodes"
        split = dataset.split(5)
        masks = as_sets((split.train_mask, split.val_mask, split.test_mask))
        assert masks == literal_split(split.y.tolist(), entry.classes, entry.development, 5)


def test_two_classes_of_the_heterophilous_family_report_roc_auc(real_data: Path) -> None:
    assert data.load("minesweeper").metric == "roc_auc"
    assert data.load("squirrel-filtered").metric == "accuracy"


def write_heterophilous(folder: Path, name: str, classes: int) -> None:
    """A tiny file in the layout of the family: a path of nodes, its edges in one direction."""
    random, nodes = np.random.default_rng(0), 5 * classes
    part = (np.arange(nodes)[None, :] + np.arange(10)[:, None]) % 5
    path = folder / name / "raw" / f"{name}.npz"
    path.parent.mkdir(parents=True)
    np.savez(
        path,
        node_features=random.random((nodes, 3), dtype=np.float32),
        node_labels=np.arange(nodes) % classes,
        edges=np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1),
        train_masks=part < 3,
        val_masks=part == 3,
        test_masks=part == 4,
    )


@pytest.mark.parametrize(
    ("name", "classes", "metric"),
    [
        ("roman-empire", 18, "accuracy"),
        ("amazon-ratings", 5, "accuracy"),
        ("tolokers", 2, "roc_auc"),
        ("questions", 2, "roc_auc"),
        ("chameleon-filtered", 5, "accuracy"),
    ],
)
def test_every_file_of_the_heterophilous_family(
    name: str, classes: int, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path))
    write_heterophilous(tmp_path, name.replace("-", "_"), classes)
    assert CATALOGUE[name].present == "DISSENSUS_DATA"
    dataset = data.load(name)
    assert (dataset.metric, dataset.num_classes, dataset.default_splits) == (metric, classes, tuple(range(10)))
    assert (dataset.graph.num_nodes, dataset.graph.num_edges) == (5 * classes, 2 * (5 * classes - 1))
    split = dataset.split(4)
    assert split.val_mask.nonzero().view(-1)[:2].tolist() == [4, 9]
    assert int(split.train_mask.sum()) == 3 * classes


@pytest.mark.slow
def test_arxiv_without_features_is_the_real_graph_with_its_time_split(real_data: Path) -> None:
    entry, dataset = CATALOGUE["ogbn-arxiv-nofeatures"], data.load("ogbn-arxiv-nofeatures", undirected=False)
    assert (dataset.graph.num_nodes, dataset.graph.num_edges) == (entry.nodes, entry.edges)
    assert dataset.homophily == pytest.approx(entry.homophily, abs=1e-6)
    split = dataset.split(0)
    counts = [int(mask.sum()) for mask in (split.train_mask, split.val_mask, split.test_mask)]
    assert counts == [90_941, 29_799, 48_603]
    # Nothing but degrees: two nodes of the same degrees have the same features.
    source, target = (torch.bincount(end, minlength=entry.nodes) for end in dataset.graph.edge_index)
    same = ((source == 1) & (target == 1)).nonzero().view(-1)
    assert len(same) > 1
    assert bool((split.x[same] == split.x[same[0]]).all())
    assert data.load("ogbn-arxiv-nofeatures").graph.is_undirected()


def test_the_two_cornells_differ_in_features_and_links(real_data: Path) -> None:
    corrected, mixed, texas = (data.load(name).graph for name in ("cornell", "cornell-geomgcn2020", "texas"))
    assert torch.equal(mixed.x, texas.x)
    assert torch.equal(mixed.y, texas.y)
    assert not torch.equal(corrected.x, mixed.x)
    assert not torch.equal(corrected.edge_index, mixed.edge_index)


def test_largest_component_of_photo_has_the_size_papers_print(real_data: Path) -> None:
    assert data.load("photo", largest_component=True).graph.num_nodes == 7487


def test_raw_files_are_read_and_never_written(small_texas: Path) -> None:
    root = small_texas.parents[1]
    before = listing(root)
    dataset = data.load("texas")
    assert (dataset.graph.num_nodes, dataset.graph.num_features) == (20, 4)
    assert listing(root) == before
    assert [path.suffix for path in cache_folder().iterdir()] == [".pt"]


def test_edges_stay_directed_unless_asked(small_texas: Path) -> None:
    assert not data.load("texas").graph.is_undirected()
    assert data.load("texas", undirected=True).graph.is_undirected()


def test_the_second_load_comes_from_the_cache(small_texas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = data.load("texas")
    monkeypatch.setattr(_benchmarks, "_process", lambda *_: pytest.fail("processed again"))
    assert data.load("texas").fingerprint == first.fingerprint


def test_changed_raw_files_are_noticed(small_texas: Path) -> None:
    first = data.load("texas")
    edges = small_texas / "out1_graph_edges.txt"
    edges.write_text(edges.read_text() + "3\t4\n")
    assert data.load("texas").graph.num_edges == first.graph.num_edges + 1


def test_a_damaged_cache_is_made_anew(small_texas: Path) -> None:
    first = data.load("texas")
    (cached,) = cache_folder().iterdir()
    cached.write_bytes(cached.read_bytes()[:100])
    assert data.load("texas").fingerprint == first.fingerprint
    assert len(cached.read_bytes()) > 100


def test_files_are_copied_where_links_are_not_allowed(small_texas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no privilege")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert data.load("texas").graph.num_nodes == 20


def test_a_full_disk_costs_the_cache_alone(small_texas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save = torch.save

    def full(content: object, target: Path | BytesIO, *more: object, **options: object) -> None:
        if not isinstance(target, Path):
            return save(content, target, *more, **options)
        target.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    assert data.load("texas").graph.num_nodes == 20
    assert not list(cache_folder().iterdir())


def test_a_disk_too_full_to_process_at_all_is_named(small_texas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(datasets.WebKB, "process", full)
    with pytest.raises(InputError, match=r"no space left in .*set DISSENSUS_CACHE"):
        data.load("texas")


def test_a_cache_that_cannot_be_written_says_so(
    small_texas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DISSENSUS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"cannot write to the cache .*: set DISSENSUS_CACHE"):
        data.load("texas")


def test_damaged_raw_files_are_named(small_texas: Path) -> None:
    (small_texas / "out1_node_feature_label.txt").write_text("node_id\tfeature\tlabel\n0\tx,y\t0\n")
    with pytest.raises(InputError, match=r"texas: the files in .*raw cannot be read \(ValueError.*download them again"):
        data.load("texas")


def test_several_may_load_the_same_dataset_at_once(small_texas: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        prints = set(pool.map(lambda _: data.load("texas").fingerprint, range(8)))
    assert prints == {data.load("texas").fingerprint}
    assert [path.suffix for path in cache_folder().iterdir()] == [".pt"]


@pytest.mark.parametrize(
    "failure",
    [
        URLError("no route to host"),
        TimeoutError(),
        ConnectionResetError(),
        FileNotFoundError("404"),
        SystemExit(-1),
    ],
    ids=lambda failure: type(failure).__name__,
)
@pytest.mark.parametrize(("name", "kind"), [("cora", "Planetoid"), ("photo", "Amazon"), ("texas", "WebKB")])
def test_offline_the_error_says_which_files_to_place_where(
    name: str, kind: str, failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise failure

    monkeypatch.setattr(getattr(datasets, kind), "download", fail)
    entry = CATALOGUE[name]
    with pytest.raises(InputError, match=f"{name} is not on this machine and could not be downloaded") as caught:
        data.load(name)
    assert f"Place these files in {entry.folder} below the folder that DISSENSUS_DATA names" in str(caught.value)
    assert all(file in str(caught.value) for file in entry.files)
    assert not list(cache_folder().iterdir())


def test_incomplete_raw_files_are_downloaded_elsewhere(small_texas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (small_texas / "texas_split_0.6_0.2_4.npz").unlink()
    before = listing(small_texas)

    def download(dataset: datasets.WebKB) -> None:
        for path in map(Path, dataset.raw_paths):
            assert not path.exists()
            source = small_texas / path.name.replace("_4.npz", "_5.npz")
            path.write_bytes(source.read_bytes())

    monkeypatch.setattr(datasets.WebKB, "download", download)
    entry = CATALOGUE["texas"]
    assert entry.present == "no"
    assert data.load("texas").graph.num_nodes == 20
    assert listing(small_texas) == before
    assert entry.present == "cache"
    assert [path.name for path in cache_folder().iterdir()] == [download_cache(entry).name]
    monkeypatch.delenv("DISSENSUS_DATA")
    monkeypatch.setattr(datasets.WebKB, "download", lambda _: pytest.fail("downloaded again"))
    assert data.load("texas").graph.num_nodes == 20


def test_the_mixed_up_cornell_is_never_replaced_by_the_corrected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.WebKB, "download", lambda _: pytest.fail("downloaded"))
    with pytest.raises(InputError, match=r"can no longer be downloaded. Place .* _alt/cornell_geomgcn_2020"):
        data.load("cornell-geomgcn2020")


def _ogb_that_holds(graph: dict[str, Any], labels: np.ndarray, split: dict[str, np.ndarray]) -> dict[str, ModuleType]:
    """Stand-ins for OGB's modules; the class prints and writes as OGB's does."""

    class NodePropPredDataset:
        def __init__(self, name: str, root: str) -> None:
            assert name == "ogbn-arxiv"
            print("Loading necessary files...")
            folder = Path(root) / "ogbn_arxiv"
            assert all((folder / file).is_file() for file in CATALOGUE[name].files)
            (folder / "processed" / "data_processed").write_text("written beside the raw files")

        def __getitem__(self, index: int) -> tuple[dict[str, Any], np.ndarray]:
            return graph, labels

        def get_idx_split(self) -> dict[str, np.ndarray]:
            return split

    package, module = ModuleType("ogb"), ModuleType("ogb.nodeproppred")
    module.NodePropPredDataset = NodePropPredDataset  # type: ignore[attr-defined]
    package.nodeproppred = module  # type: ignore[attr-defined]
    return {"ogb": package, "ogb.nodeproppred": module}


def test_ogbn_arxiv_comes_from_ogb_undirected_with_its_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = CATALOGUE["ogbn-arxiv"]
    for file in entry.files:
        (tmp_path / "data" / entry.folder / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / entry.folder / file).write_text(file)
    monkeypatch.setenv("DISSENSUS_DATA", str(tmp_path / "data"))
    graph = {"node_feat": np.ones((80, 3), dtype=np.float32), "edge_index": np.array([[0, 1, 2], [1, 0, 5]])}
    split = {"train": np.arange(40), "valid": np.arange(40, 60), "test": np.arange(60, 80)}
    for name, module in _ogb_that_holds(graph, np.arange(80)[:, None] % 40, split).items():
        monkeypatch.setitem(sys.modules, name, module)
    before = listing(tmp_path / "data")
    dataset = data.load("ogbn-arxiv")
    assert listing(tmp_path / "data") == before
    assert capsys.readouterr().out == ""
    assert dataset.graph.edge_index.tolist() == [[0, 1, 2, 5], [1, 0, 5, 2]]
    assert (dataset.protocol, dataset.default_splits) == ("OGB's", (0,))
    found = dataset.split(0)
    masks = (found.train_mask, found.val_mask, found.test_mask)
    assert as_sets(masks) == tuple(set(part.tolist()) for part in split.values())
    assert data.load("ogbn-arxiv", undirected=False).graph.num_edges == 3
    with pytest.raises(InputError, match="no split 1, only one fixed split, 0"):
        dataset.split(1)


def test_without_ogb_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ogb", None)
    with pytest.raises(MissingExtraError, match=r"dissensus\[ogb\]"):
        data.load("ogbn-arxiv")
