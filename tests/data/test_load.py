import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from dissensus import data
from dissensus.errors import InputError

PROMISED = (
    "digits karate csbm cora citeseer pubmed coauthor-cs computers photo texas wisconsin cornell "
    "cornell-geomgcn2020 chameleon squirrel actor ogbn-arxiv "
    "minesweeper squirrel-filtered ogbn-arxiv-nofeatures shortest-path eccentricity diameter ring-transfer"
)


def test_all_promised_names_are_known() -> None:
    assert set(PROMISED.split()) <= set(data.names())


def test_names_need_no_torch() -> None:
    code = "import sys; from dissensus import data; data.names(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_room_shows_what_it_exports() -> None:
    assert dir(data) == sorted(data.__all__)
    assert all(getattr(data, name) for name in data.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        data.lod  # noqa: B018


@pytest.mark.parametrize("module", ["", "._catalogue", "._dataset", "._load"])
def test_examples_in_docstrings(module: str) -> None:
    target = import_module(f"dissensus.data{module}")
    result = doctest.testmod(target, extraglobs={"load": data.load})
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("corra", {}, "unknown dataset 'corra': did you mean 'cora'.*or give a path"),
        ("csbm", {"homophilly": 0.5}, "unknown option of csbm 'homophilly': did you mean 'homophily'"),
        ("digits", {"k": 3}, "digits has no option 'k': leave it out"),
        ("no/such/file.npz", {}, "does not exist: check the path"),
        (Path("cora"), {}, "cora does not exist"),
    ],
)
def test_load_refuses_what_it_does_not_know(name: str, options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        data.load(name, **options)
