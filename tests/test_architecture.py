"""The import contract of the rooms, and the size of the public interface."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dissensus
from dissensus import dynamics

ROOT = Path(dissensus.__file__).parent
# What each room may import; `errors` and the package's version are open to all. `report` draws plain numbers, so it
# stands left of whatever shows tables; `data` and `nn` know nothing of each other.
ALLOWED = {
    "kernels": set(),
    "graph": {"kernels"},
    "solve": {"kernels"},
    "report": set(),
    "dynamics": {"kernels", "graph", "solve", "report"},
    "nn": {"kernels", "graph", "solve", "dynamics"},
    "data": {"graph"},
    "train": {"kernels", "graph", "solve", "nn", "data"},
    "measure": {"graph", "nn", "data", "train", "report"},
    "runs": {"train", "report"},
    "tune": {"nn", "data", "train", "runs"},
    "studies": {"graph", "solve", "dynamics", "nn", "measure", "data", "train", "runs", "tune", "report"},
}
ALLOWED["cli"] = set(ALLOWED)
OPEN = {"errors", "ray_cluster", "runtime", "__version__"}
# How many public names a room may have: 120 in all.
MOST_PUBLIC_NAMES = {
    "kernels": 4,
    "graph": 8,
    "solve": 15,
    "dynamics": 20,
    "nn": 12,
    "measure": 12,
    "data": 9,
    "train": 12,
    "runs": 7,
    "tune": 4,
    "studies": 8,
    "report": 6,
    "runtime": 3,
}


def imports() -> list[tuple[str, str, str]]:
    """(room, imported room or module, private name or "") of every import in the package, inside functions too."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        room = parts[0].removesuffix(".py")
        if len(parts) == 1 and room in ("__init__", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                package, *rest = name.split(".")
                if package != "dissensus" or not rest or rest[0] == room:
                    continue
                private = next((part for part in rest if part.startswith("_") and not part.startswith("__")), "")
                found.append((room, rest[0], f"{'.'.join(rest)}" if private else ""))
    return found


def test_rooms_import_only_rooms_to_their_left() -> None:
    wrong = {
        (room, other)
        for room, other, _ in imports()
        if room in ALLOWED and other not in OPEN and not other.startswith("_") and other not in ALLOWED[room]
    }
    assert wrong == set()


def test_no_private_name_is_imported_across_rooms() -> None:
    assert {(room, private) for room, _, private in imports() if room in ALLOWED and private} == set()


def test_the_contract_has_no_cycle() -> None:
    left = dict(ALLOWED)
    while left:
        free = [room for room, needs in left.items() if not needs & set(left) - {room}]
        assert free, f"these rooms import each other: {sorted(left)}"
        for room in free:
            del left[room]


@pytest.mark.parametrize("room", MOST_PUBLIC_NAMES)
def test_a_room_has_few_public_names(room: str) -> None:
    module = importlib.import_module(f"dissensus.{room}")
    assert len(module.__all__) <= MOST_PUBLIC_NAMES[room]
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing):
            assert thing.__doc__, f"{room}.{name} has no docstring"


def test_every_room_has_a_limit_and_their_sum_is_120() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"cli"}
    assert rooms == MOST_PUBLIC_NAMES.keys()
    assert sum(MOST_PUBLIC_NAMES.values()) == 120


def test_no_room_decides_by_the_name_of_a_model() -> None:
    """What a model can do is declared on its class; only studies, whose subject models are, may ask for their names."""
    from dissensus import nn

    named = {*nn.names(), "option_attention", "reaction"}
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] in ("nn", "studies"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                words = {leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)}
                assert not named & words, f"{path}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.slow
def test_importing_dynamics_does_not_import_pyg() -> None:
    code = "import sys, dissensus.dynamics; sys.exit('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert len(dynamics.__all__) <= 20
