"""Facts about every dataset. This file does not import torch, so that ``dissensus data`` is fast."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from dissensus.errors import one_of


@dataclass(frozen=True)
class Entry:
    """Facts about a dataset.

    ``edges`` is the number of edges; an undirected edge counts once, and self-loops of directed graphs count.
    ``homophily`` is the share of edges between nodes of the same class, or ``None`` if it was never measured.
    ``folder`` and ``files`` locate the raw files below ``DISSENSUS_DATA``; both are empty for embedded and generated
    datasets. ``fixed_splits`` is the number of splits that come with the dataset, or 0 if splits are random.
    ``development`` is the size of the development set of the random split protocol. ``metric`` is the metric of the
    dataset's protocol. ``undirected`` tells whether the protocol adds the reverse of every edge. ``reader`` names what
    reads the raw files: a class of ``torch_geometric.datasets``, with its root folder and its further arguments, or
    ``"ogb"``, ``"ogb degrees"`` or ``"heterophilous"``.
    """

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    homophily: float | None
    licence: str
    about: str
    directed: bool = False
    fixed_splits: int = 0
    folder: str = ""
    files: tuple[str, ...] = ()
    development: int | None = None
    downloadable: bool = True
    metric: str = "accuracy"
    undirected: bool = False
    reader: tuple[str, ...] = ()

    @property
    def built_in(self) -> bool:
        """Whether the dataset is embedded or generated, so that no file is needed."""
        return not self.files

    @property
    def present(self) -> str:
        """Where the dataset is: ``built in``, ``DISSENSUS_DATA``, ``cache`` or ``no`` (not on this machine)."""
        if self.built_in:
            return "built in"
        if raw_folder(self) is not None:
            return "DISSENSUS_DATA"
        return "cache" if download_cache(self).is_file() else "no"


def _planetoid(folder: str, nodes: int, edges: int, features: int, classes: int, homophily: float) -> Entry:
    name = folder.lower()
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return Entry(
        *(name, nodes, edges, features, classes, homophily, "MIT", "citations between papers; words (Planetoid)"),
        folder=f"{folder}/raw",
        files=tuple(f"ind.{name}.{part}" for part in parts),
        development=1500,
        reader=("Planetoid", "", folder),
    )


def _geom_gcn(
    name: str,
    path: str,
    nodes: int,
    edges: int,
    features: int,
    classes: int,
    homophily: float,
    about: str,
    *reader: str,
) -> Entry:
    folder, _, prefix = path.rpartition("/")
    return Entry(
        *(name, nodes, edges, features, classes, homophily, "none stated", about),
        directed=True,
        fixed_splits=10,
        folder=folder,
        files=(
            "out1_node_feature_label.txt",
            "out1_graph_edges.txt",
            *(f"{prefix}_split_0.6_0.2_{i}.npz" for i in range(10)),
        ),
        reader=reader,
    )


def _heterophilous(
    name: str, nodes: int, edges: int, features: int, classes: int, homophily: float | None, about: str
) -> Entry:
    # The datasets of Platonov et al. 2023: one archive each, with ten masks. Tasks with two classes report ROC AUC.
    stem = name.replace("-", "_")
    return Entry(
        *(name, nodes, edges, features, classes, homophily, "MIT", about),
        folder=f"{stem}/raw",
        files=(f"{stem}.npz",),
        fixed_splits=10,
        reader=("heterophilous",),
        metric="roc_auc" if classes == 2 else "accuracy",
    )


def _long_range(name: str, nodes: int, edges: int, features: int, classes: int, about: str, metric: str) -> Entry:
    return Entry(name, nodes, edges, features, classes, None, "generated", f"{about}; sizes by default", metric=metric)


_WEBKB = "links between web pages; words (WebKB)"
_WIKI = "links between Wikipedia pages; nouns"
_GOODS = "goods bought together; words of reviews"

_ENTRIES = (
    Entry("digits", 1797, 9929, 64, 10, 0.961426, "CC BY 4.0", "handwritten digits; 8 nearest neighbours (embedded)"),
    Entry("karate", 34, 78, 34, 4, 0.756410, "MIT", "Zachary's karate club; one-hot features (embedded)"),
    Entry("csbm", 2000, 10_000, 32, 4, 0.8, "generated", "contextual stochastic block model; sizes are its defaults"),
    _planetoid("Cora", 2708, 5278, 1433, 7, 0.809966),
    _planetoid("CiteSeer", 3327, 4552, 3703, 6, 0.735501),
    _planetoid("PubMed", 19717, 44324, 500, 3, 0.802387),
    Entry(
        *("coauthor-cs", 18333, 81894, 6805, 15, 0.808057, "MIT", "joint papers of authors; keywords"),
        folder="CS/raw",
        files=("ms_academic_cs.npz",),
        development=5000,
        reader=("Coauthor", "", "CS"),
    ),
    Entry(
        *("computers", 13752, 245861, 767, 10, 0.777216, "MIT", _GOODS),
        folder="Computers/raw",
        files=("amazon_electronics_computers.npz",),
        development=1500,
        reader=("Amazon", "", "Computers"),
    ),
    Entry(
        *("photo", 7650, 119081, 745, 8, 0.827244, "MIT", _GOODS),
        folder="Photo/raw",
        files=("amazon_electronics_photo.npz",),
        development=1500,
        reader=("Amazon", "", "Photo"),
    ),
    _geom_gcn("texas", "texas/raw/texas", 183, 325, 1703, 5, 0.107692, _WEBKB, "WebKB", "", "texas"),
    _geom_gcn("wisconsin", "wisconsin/raw/wisconsin", 251, 515, 1703, 5, 0.196117, _WEBKB, "WebKB", "", "wisconsin"),
    _geom_gcn(
        *("cornell", "cornell/raw/cornell", 183, 298, 1703, 5, 0.130872, f"{_WEBKB}, as corrected"),
        *("WebKB", "", "cornell"),
    ),
    # Only the corrected files can still be downloaded, so the user must provide these.
    replace(
        _geom_gcn(
            *("cornell-geomgcn2020", "_alt/cornell_geomgcn_2020/cornell/raw/cornell", 183, 298, 1703, 5, 0.305369),
            "Cornell's links with Texas's words and labels, as papers used it",
            *("WebKB", "_alt/cornell_geomgcn_2020", "cornell"),
        ),
        downloadable=False,
    ),
    _geom_gcn(
        *("chameleon", "chameleon/geom_gcn/raw/chameleon", 2277, 36101, 2325, 5, 0.235007, _WIKI),
        *("WikipediaNetwork", "", "chameleon"),
    ),
    _geom_gcn(
        *("squirrel", "squirrel/geom_gcn/raw/squirrel", 5201, 217073, 2089, 5, 0.223943, _WIKI),
        *("WikipediaNetwork", "", "squirrel"),
    ),
    _geom_gcn(
        *("actor", "Actor/raw/film", 7600, 30019, 932, 5, 0.218761, "actors on one Wikipedia page; keywords"),
        *("Actor", "Actor"),
    ),
    _heterophilous("minesweeper", 10_000, 39_402, 7, 2, 0.682783, "mines on a grid; counts around half of the cells"),
    _heterophilous("roman-empire", 22_662, 32_927, 300, 18, None, "words of an article; fastText; syntactic roles"),
    _heterophilous("amazon-ratings", 24_492, 93_050, 300, 5, None, "products bought together; fastText; ratings"),
    _heterophilous("tolokers", 11_758, 519_000, 10, 2, None, "workers on the same tasks; statistics; banned or not"),
    _heterophilous(
        "questions", 48_921, 153_540, 301, 2, None, "users who answered each other; fastText; active or not"
    ),
    _heterophilous("chameleon-filtered", 890, 8854, 2325, 5, None, "chameleon without repeated pages; nouns"),
    _heterophilous("squirrel-filtered", 2223, 46_998, 2089, 5, 0.207179, "squirrel without repeated pages; nouns"),
    Entry(
        *("ogbn-arxiv", 169_343, 1_166_243, 128, 40, None, "ODC-BY", "citations between arXiv papers; words (OGB)"),
        directed=True,
        fixed_splits=1,
        folder="ogbn_arxiv",
        files=(
            "RELEASE_v1.txt",
            *(f"raw/{part}.csv.gz" for part in ("edge", "node-feat", "node-label", "node_year")),
            *(f"raw/num-{part}-list.csv.gz" for part in ("node", "edge")),
            *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
        ),
        undirected=True,
        reader=("ogb", "ogbn-arxiv"),
    ),
    Entry(
        *("ogbn-arxiv-nofeatures", 169_343, 1_166_243, 3, 40, 0.655083, "ODC-BY"),
        "ogbn-arxiv's real graph, labels and split; no words, degrees in their place",
        directed=True,
        fixed_splits=1,
        folder="ogbn_arxiv",
        files=(
            *(f"raw/{part}.csv.gz" for part in ("edge", "node-label")),
            *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
        ),
        downloadable=False,
        undirected=True,
        reader=("ogb degrees",),
    ),
    Entry(
        *("arxiv-synthetic", 169_343, 1_166_243, 128, 40, 0.65, "generated"),
        "NOT real: a generated graph of ogbn-arxiv's sizes, to measure speed and memory",
        fixed_splits=1,
    ),
    _long_range("shortest-path", 7273, 10_888, 2, 0, "hops from the marked node, in 240 graphs; regression", "mae"),
    _long_range("eccentricity", 7332, 10_975, 2, 0, "hops to the furthest node, in 240 graphs; regression", "mae"),
    _long_range("diameter", 7332, 10_975, 2, 0, "largest distance in each of 240 graphs; regression", "mae"),
    _long_range("ring-transfer", 6000, 6000, 7, 5, "the class at the opposite node, in 300 rings", "accuracy"),
)

# The split files of the protocol ``tunedgnn``, below ``tunedgnn`` in the data folder.
TUNED_FILES = {
    "coauthor-cs": "coauthor-cs_split.npz",
    "computers": "amazon-computer_split.npz",
    "photo": "amazon-photo_split.npz",
}

CATALOGUE = {entry.name: entry for entry in _ENTRIES}


def names() -> list[str]:
    """The names of all datasets that :func:`dissensus.data.load` accepts, embedded ones first.

    >>> names()[:3]
    ['digits', 'karate', 'csbm']
    """
    return list(CATALOGUE)


def info(name: str) -> Entry:
    """Facts about a dataset, without loading it: sizes, homophily, licence, splits and where its files are.

    >>> info("cora").nodes
    2708
    """
    return CATALOGUE[one_of("dataset", name, CATALOGUE)]


def folders() -> tuple[Path | None, Path]:
    """The folder of raw files (``DISSENSUS_DATA``, or None if unset) and the folder of processed files."""
    return data_folder(), cache_folder()


def data_folder() -> Path | None:
    """The folder of raw files, ``DISSENSUS_DATA``, or ``None`` if that is unset or empty."""
    value = os.environ.get("DISSENSUS_DATA")
    return Path(value).expanduser() if value else None


def cache_folder() -> Path:
    """The folder of processed datasets: ``DISSENSUS_CACHE``, or by default the user's cache directory."""
    value = os.environ.get("DISSENSUS_CACHE")
    if value:
        return Path(value).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "dissensus"


def raw_folder(entry: Entry) -> Path | None:
    """The folder below ``DISSENSUS_DATA`` with all raw files of ``entry``, or ``None`` if one is missing."""
    root = data_folder()
    if root is None or entry.built_in:
        return None
    folder = root / entry.folder
    return folder if all((folder / file).is_file() for file in entry.files) else None


def download_cache(entry: Entry) -> Path:
    """The cache file of a dataset that was downloaded instead of read from ``DISSENSUS_DATA``."""
    return cache_folder() / f"{entry.name}-upstream.pt"
