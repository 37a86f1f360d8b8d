"""The open registry: names, files and other packages."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch

from dissensus import nn
from dissensus.errors import InputError

SAVED = Path(__file__).parent / "saved"
EXAMPLE = Path(__file__).parents[2] / "examples" / "my_model.py"
SIZES = {"in_channels": 6, "hidden_channels": 8, "out_channels": 3}
X = 0.3 * torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
EDGES = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])


class Net(torch.nn.Module):
    """A user's module."""

    def __init__(self, i: int, h: int, o: int, num_layers: int = 2, *, flavour: str = "plain") -> None:
        super().__init__()
        self.lin, self.num_layers, self.flavour = torch.nn.Linear(i, o), num_layers, flavour

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.lin(x)


def test_every_name_makes_its_model() -> None:
    for name in nn.names():
        model = nn.create(name, **SIZES)
        assert type(model) is nn.info(name).cls
        for option, value in nn.info(name).options.items():
            assert model.config[option] == value


def test_registry_options() -> None:
    model = nn.create("bimp-aa", in_channels=6, hidden_channels=4, out_channels=3, damping=0.5)
    assert isinstance(model, nn.BIMP)
    assert model.adaptive
    assert model.damping == 0.5
    assert nn.create("bimp-aa", in_channels=6, hidden_channels=4, out_channels=3, adaptive=True).config["adaptive"]


@pytest.mark.parametrize(
    ("name", "options", "cure"),
    [
        ("bmip", {}, r"unknown model 'bmip': did you mean 'bimp.*Known: bimp, "),
        ("bimp", {"dampin": 0.5}, "unknown option of bimp 'dampin': did you mean 'damping'"),
        ("bimp-aa", {"adaptive": False}, "bimp-aa always has adaptive=True: choose another model"),
    ],
)
def test_registry_refuses(name: str, options: dict[str, Any], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        nn.create(name, in_channels=6, hidden_channels=4, out_channels=3, **options)


def test_register() -> None:
    decorated = nn.register("net", equation="X W", source="here", tables="none")(Net)
    assert decorated is Net
    assert nn.names()[-1] == "net"
    info = nn.info("net")
    assert (info.cls, info.equation, info.source, info.tables) == (Net, "X W", "here", "none")
    model = nn.create("net", **SIZES, flavour="sour")
    assert type(model) is Net
    assert model.flavour == "sour"
    assert not info.continuous
    assert info.complete({"flavour": "sour"}, num_nodes=5) == {"flavour": "sour"}
    with pytest.raises(InputError, match="unknown option of net 'flavuor': did you mean 'flavour'"):
        nn.create("net", **SIZES, flavuor="sour")


def test_decorators_stack_and_names_fix_options() -> None:
    nn.register("net")(nn.register("net-sour", options={"flavour": "sour"})(Net))
    assert nn.names()[-2:] == ["net", "net-sour"]
    assert nn.create("net-sour", **SIZES).flavour == "sour"
    assert nn.create("net", **SIZES).flavour == "plain"
    with pytest.raises(InputError, match="net-sour always has flavour='sour': choose another model"):
        nn.create("net-sour", **SIZES, flavour="plain")
    with pytest.raises(InputError, match="unknown option of bad 'flavuor': did you mean 'flavour'"):
        nn.register("bad", options={"flavuor": "sour"})(Net)


def test_a_taken_name_is_refused_and_a_class_may_be_defined_again() -> None:
    with pytest.raises(InputError, match=r"'bimp' is taken by dissensus\.nn\._bimp\.BIMP: choose another"):
        nn.register("bimp")(Net)
    assert nn.info("bimp").cls is nn.BIMP

    def define() -> type[torch.nn.Module]:
        @nn.register("cell")
        class Cell(Net):
            pass

        return Cell

    define()
    again = define()
    assert nn.info("cell").cls is again
    assert nn.names().count("cell") == 1


@pytest.mark.parametrize("name", ["", "a:b"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="give a name without a colon"):
        nn.register(name)


def test_what_cannot_be_registered() -> None:
    with pytest.raises(InputError, match=r"not a model class: derive it from torch\.nn\.Module"):
        nn.register("dict")(dict)  # type: ignore[type-var]
    with pytest.raises(InputError, match="must begin with in_channels, hidden_channels, out_channels"):
        nn.register("linear")(torch.nn.Flatten)


def test_depth_is_the_constructor_s() -> None:
    class Timed(torch.nn.Module):
        def __init__(self, i: int, h: int, o: int, *, time: float = 1.0) -> None:
            super().__init__()

    class Own(torch.nn.Module):
        def __init__(self, i: int, h: int, o: int, *, rounds: int = 1) -> None:
            super().__init__()

    class Open(torch.nn.Module):
        def __init__(self, *sizes: int, **options: Any) -> None:
            super().__init__()

    for cls, depth in ((Net, ""), (Timed, ""), (Own, "rounds"), (Open, "k")):
        nn.register(cls.__name__, depth=depth)(cls)
    assert nn.info("Net").at_depth(3) == {"num_layers": 3}
    assert nn.info("Timed").at_depth(3) == {"time": 3.0}
    assert nn.info("Own").at_depth(3) == {"rounds": 3}
    assert nn.info("Open").at_depth(3) == {"k": 3}
    nn.create("Open", **SIZES, anything=1)
    nn.register("flat")(Own)
    with pytest.raises(InputError, match=r"flat has no option for its depth: .*num_layers or time.*depth="):
        nn.info("flat").at_depth(3)
    with pytest.raises(InputError, match="unknown option of wrong 'layers': did you mean 'num_layers'"):
        nn.register("wrong", depth="layers")(Net)


@pytest.mark.parametrize("name", [name for name in nn.names() if name != "label-propagation"])
def test_our_models_at_a_depth(name: str) -> None:
    info = nn.info(name)
    options = info.at_depth(3)
    if info.continuous:
        scaled = {"learn_time_scale": False} if name.startswith(("grand", "gread", "acmp")) else {}
        assert options == {"time": 3.0, "method": "euler", "step_size": 1.0, **scaled}
    else:
        assert options == {"num_layers": 3}
    model = nn.create(name, **SIZES, **options)
    assert model.continuous is info.continuous is isinstance(model, nn.ContinuousModel)
    assert model(X, EDGES).shape == (5, 3)


def test_options_from_the_graph() -> None:
    info = nn.info("bimp")
    assert info.complete({"option_attention": "node"}, num_nodes=5) == {"option_attention": "node", "num_nodes": 5}
    assert info.complete({"option_attention": "node", "num_nodes": 3}, num_nodes=5)["num_nodes"] == 3
    assert info.complete({"heads": 2}, num_nodes=5) == {"heads": 2}


def write(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


PLAIN = """
import torch
class Mine(torch.nn.Module):
    def __init__(self, i, h, o, *, num_layers=2):
        super().__init__()
        self.lin = torch.nn.Linear(i, o)
    def forward(self, x, edge_index): return self.lin(x)
helper = 3
"""


def make_in_worker(name: str) -> str:
    return type(nn.create(name, **SIZES)).__name__


@pytest.mark.slow
def test_a_class_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{write(tmp_path, PLAIN)}:Mine"
    info = nn.info(name)
    assert (info.name, info.cls.__name__, info.depth) == (name, "Mine", "num_layers")
    assert nn.create(name, **SIZES)(X, EDGES).shape == (5, 3)
    assert sys.modules[info.cls.__module__].Mine is info.cls
    monkeypatch.chdir(tmp_path)
    assert nn.info("mine.py:Mine").cls is info.cls  # imported once, whatever the spelling
    assert nn.info("./mine.py:Mine").name == "./mine.py:Mine"
    with pytest.raises(InputError, match=r"unknown option of mine\.py:Mine 'num_layer': did you mean 'num_layers'"):
        nn.create("mine.py:Mine", **SIZES, num_layer=3)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(make_in_worker, "mine.py:Mine").result(timeout=120) == "Mine"


def test_two_files_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = nn.info(f"{write(tmp_path, PLAIN)}:Mine").cls
    assert nn.info(f"{write(tmp_path / 'other', PLAIN)}:Mine").cls is not first


@pytest.mark.parametrize(
    ("text", "target", "cure"),
    [
        (None, "Mine", r"no file .*mine\.py: give the path"),
        (PLAIN, "Mien", r"unknown class of .*mine\.py 'Mien': did you mean 'Mine'\?"),
        (PLAIN, "helper", r"mine\.py:helper is 3, not a model class: derive it from torch\.nn\.Module"),
        ("class Mine: pass", "Mine", r"derive it from torch\.nn\.Module"),
        ("import no_such_package", "Mine", r"cannot be imported \(ModuleNotFoundError: .*no_such_package"),
        ("def broken(", "Mine", r"cannot be imported \(SyntaxError"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str | None, target: str, cure: str) -> None:
    path = str(tmp_path / "mine.py") if text is None else write(tmp_path, text)
    for _ in range(2):  # a failed import leaves nothing behind
        with pytest.raises(InputError, match=cure):
            nn.info(f"{path}:{target}")
    with pytest.raises(InputError, match=r"mine\.py is a file: add the name of the class"):
        nn.info(path)


def test_a_mended_file_is_imported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be imported"):
        nn.info(f"{write(tmp_path, 'def broken(')}:Mine")
    assert nn.info(f"{write(tmp_path, PLAIN + '# mended')}:Mine").cls.__name__ == "Mine"


def test_the_example() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    name = f"{EXAMPLE}:MyNet"
    info = nn.info(name)
    assert (info.name, info.equation) == (name, "X ← relu(ÂXW) + X")  # its declaration, found by this name
    assert info.at_depth(5) == {"num_layers": 5}
    model = nn.create(name, **SIZES, **info.at_depth(5))
    assert len(model.layers) == 5
    assert model(X, EDGES).shape == (5, 3)
    assert nn.info("my-net").cls is info.cls


def package(folder: Path, name: str, value: str, text: str) -> None:
    """An installed package, as pip leaves it, with one entry point."""
    (folder / f"{name}.py").write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dissensus.models]\n{name} = {value}\n")


@pytest.mark.slow
def test_models_of_other_packages(tmp_path: Path) -> None:
    package(tmp_path, "broken", "broken:Mine", "raise RuntimeError('out of order')")
    package(tmp_path, "plain", "plain:Mine", PLAIN)
    registering = PLAIN + "\nfrom dissensus import nn\nnn.register('several-a')(nn.register('several-b')(Mine))\n"
    package(tmp_path, "several", "several", registering)
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        "from dissensus import nn\n"
        "import json; print(json.dumps(nn.names()[-3:])); nn.info('plain').at_depth(2); nn.info('bimp')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert sorted(json.loads(done.stdout)) == ["plain", "several-a", "several-b"]
    assert "the model 'broken', an entry point of another package, cannot be loaded from broken:Mine" in done.stderr
    assert "RuntimeError: out of order" in done.stderr


@pytest.mark.parametrize("name", ["bimp", "grand++-l", "gread-fb"])
def test_models_saved_by_version_0_1_0_load(name: str) -> None:
    model = nn.load(SAVED / f"{name}.safetensors")
    assert type(model) is nn.info(name).cls
    expected = torch.tensor(json.loads((SAVED / "scores.json").read_text())[name])
    torch.testing.assert_close(model(X, EDGES), expected)


def test_typed_options_are_those_of_the_constructors() -> None:
    from dissensus.nn._attentive import AttentiveModel, AttentiveOptions
    from dissensus.nn._continuous import ContinuousOptions
    from dissensus.nn._discrete import DiscreteOptions
    from dissensus.nn._model import constructor

    for cls, options in (
        (nn.ContinuousModel, ContinuousOptions),
        (AttentiveModel, AttentiveOptions),
        (nn.DiscreteModel, DiscreteOptions),
    ):
        assert set(list(constructor(cls).parameters)[3:]) == options.__annotations__.keys()
    # Whatever takes **options shows them spelled out.
    shown = inspect.signature(nn.info("grand-l").cls).parameters
    assert shown["time"].default == 8.0
    assert not any(p.kind is p.VAR_KEYWORD for p in shown.values())
    assert "x" in inspect.signature(nn.BIMP(2, 4, 2).forward).parameters
    # BIMP repeats the keywords of its base, so that editors show them: with the same defaults.
    own, base = (inspect.signature(cls).parameters for cls in (nn.BIMP, nn.ContinuousModel))
    assert {name: own[name].default for name in base} == {name: p.default for name, p in base.items()}
    assert not any(p.kind is p.VAR_KEYWORD for p in own.values())
