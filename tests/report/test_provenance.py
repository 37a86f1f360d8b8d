import getpass
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from dissensus import __version__
from dissensus.report._provenance import command_line, provenance


def test_facts(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/opt/x/bin/dissensus", "demo", "--quick"])
    facts = provenance()
    assert facts["command"] == "dissensus demo --quick"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts["date"])
    assert facts["dissensus"] == __version__
    assert facts["python"] == platform.python_version()
    assert facts["torch"] == version("torch")
    assert int(facts["cores"]) >= 1
    assert facts["cpu"]


def test_nothing_heavy_is_imported():
    code = "import sys; from dissensus.report import Page; Page.provenance(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "dissensus.report" in loaded
    assert not {"torch", "matplotlib", "scipy", "numpy", "rich"} & set(loaded)


def test_a_gpu_is_named_if_torch_is_loaded(monkeypatch):
    cuda = SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "Some GPU")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert provenance()["gpu"] == "Some GPU"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/usr/lib/dissensus/__main__.py", "models"], "dissensus models"),
        (["dissensus", "train", "/home/ann/graph.npz"], "dissensus train graph.npz"),
        (["dissensus", "train", "data/graph.npz", "1/2"], "dissensus train data/graph.npz 1/2"),
        (["dissensus", "train", "~ann/g.pt", "--store=/home/ann/runs.db"], "dissensus train g.pt --store=runs.db"),
        (["dissensus", "train", r"C:\Users\ann\g.npz"], "dissensus train g.npz"),
        (["dissensus", "reproduce", "--executor", "ray://ann-box:10001"], "dissensus reproduce --executor ray://host"),
        (["dissensus", "train", "two words.npz"], "dissensus train 'two words.npz'"),
    ],
)
def test_command_line_tells_neither_user_nor_host(argv, expected):
    assert command_line(argv) == expected


def test_the_user_s_own_folder_is_not_named(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    assert command_line(["dissensus", "train", "cora", "--save", "/home/ann"]) == "dissensus train cora --save user"
    assert command_line(["dissensus", "train", "../ann/g.npz", "annual/x"]) == "dissensus train ../user/g.npz annual/x"
    monkeypatch.setattr(getpass, "getuser", lambda: "cora")
    assert command_line(["dissensus", "train", "cora"]) == "dissensus train cora"


def test_facts_hold_no_host_name():
    assert platform.node() not in " ".join(provenance().values()).split()
    assert str(Path.home()) + "/" not in " ".join(provenance().values())
