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
# What each room may import; the modules in OPEN are open to all. `report` draws plain numbers, so it stands left of
# whatever shows tables; `data` and `nn` know nothing of each other.
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
OPEN = {"errors", "files", "ray_cluster", "runtime", "__version__"}

# How many public names a room may have: 120 in all, those of `studies.theory` among them.
MOST_PUBLIC_NAMES = {
    "kernels": 4,
    "graph": 6,
    "solve": 15,
    "dynamics": 18,
    "nn": 12,
    "measure": 12,
    "data": 9,
    "train": 12,
    "runs": 7,
    "tune": 4,
    "studies": 8,
    "studies.theory": 4,
    "report": 6,
    "runtime": 3,
}

# Names that other rooms may import although they are not public, with the reason. They may change at any time.
HOUSE = {
    "kernels": {
        "csr_matrix": "a pattern shows its matrix as a tensor",
        "dense_product": "the opinion field mixes options by a matrix",
        "is_large": "the opinion field writes large products to memory that it has",
    },
    "graph": {
        "check_edge_index": "measures and dynamics check their graphs in the same way",
        "check_normalize": "models check their option before there is a graph",
    },
    "runtime": {
        "Cache": "graphs, rewired graphs and filled-in features are kept",
        "memoized": "datasets and weights of solver steps are kept",
        "on_reset": "checked features are kept with the tensor that they are of",
        "exporting": "nothing is checked or kept while a model is traced",
    },
    "data": {
        "Clusters": "training on clusters takes its batches from them",
        "PARTITIONERS": "the choices of a setting",
    },
    "train": {
        "fields_of": "measures call a model as training does",
        "inputs": "the same",
        "Epoch": "what progress is called with",
        "Run": "what a run gives, which runs and studies keep",
        "Saved": "a saved model can be measured",
        "prepare": "a graph is prepared for a saved model in one way",
        "order_unknown": "the same",
        "TARGET": "what a grid of trainings calls",
        "execute": "the function that it names",
        "is_error": "whether a smaller value of a metric is better",
        "merge": "flags of the command line are merged like other settings",
        "located": "a model from a file is known by its path",
        "preset_names": "the choices of a flag",
        "read_preset": "studies compare presets",
        "presets": "tune reads and writes files in the layout of presets",
    },
    "runs": {
        "Attempt": "what progress is called with",
        "RunConfig": "the type of what studies make runs of",
        "key": "studies and searches look for runs that are stored",
        "as_table": "the command line prints runs",
        "flat": "the laboratory shows runs",
        "listing": "the command line prints runs",
    },
    "report": {
        "Panel": "what opinion dynamics draws",
        "Diagram": "the same",
        "drawing": "studies draw figures in the same style",
        "LIGHT": "the colours of that style",
        "lab": "the page that studies.lab fills with runs",
    },
    "studies": {"BENCHMARKS": "the choices of an argument"},
}

# Names that several rooms define, with the one meaning that they have everywhere.
SAME_MEANING = {
    "names": "list what can be had by name",
    "info": "tell about one of them",
    "load": "read from a file or by name",
    "equilibrium": "where a vector field is zero",
    "execute": "make the runs that are asked for",
    "lab": "write the page of the laboratory",
}

# Type aliases that several files define alike.
SAME_TYPE = {"Array", "Cell", "Row"}


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


def uses(path: Path) -> set[tuple[str, str]]:
    """(room, name) of everything that a file imports from a room, or takes as an attribute of an imported room."""
    found: set[tuple[str, str]] = set()

    def visit(body: ast.AST, outer: dict[str, str]) -> None:
        """Names bound in a function hide those of the file, so `data` may be a room or a parameter."""
        inner: dict[str, str] = {}
        nested = []
        names = list(ast.iter_child_nodes(body))
        attributes = []
        while names:
            node = names.pop()
            if isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef):
                nested.append(node)
                continue
            names += ast.iter_child_nodes(node)
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dissensus":
                _, *rest = node.module.split(".")
                for alias in node.names:
                    room, *inside = [*rest, alias.name]
                    if inside:
                        found.add((room, inside[0]))
                    elif room in MOST_PUBLIC_NAMES:
                        inner[alias.asname or alias.name] = room
            elif isinstance(node, ast.arg):
                inner[node.arg] = ""
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                inner[node.id] = ""
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                attributes.append((node.value.id, node.attr))
        known = outer | inner
        found.update((known[name], attribute) for name, attribute in attributes if known.get(name))
        for node in nested:
            visit(node, known)

    visit(ast.parse(path.read_text(encoding="utf-8")), {})
    return found


def public(room: str) -> set[str]:
    return set(importlib.import_module(f"dissensus.{room}").__all__)


def test_a_name_used_outside_its_room_is_public_or_declared() -> None:
    undeclared, unused = set(), {(room, name) for room, names in HOUSE.items() for name in names}
    allowed = {room: public(room) | set(HOUSE.get(room, {})) for room in MOST_PUBLIC_NAMES if "." not in room}
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for room, name in uses(path):
            if room == own or room not in allowed:
                continue
            unused.discard((room, name))
            if name not in allowed[room]:
                undeclared.add((path.name, room, name))
    assert undeclared == set(), "make these names public in their room, or declare them in HOUSE"
    assert unused == set(), "no other room uses these names: take them from HOUSE"


def test_examples_use_public_names_alone() -> None:
    for path in (ROOT.parents[1] / "examples").glob("*.py"):
        for room, name in uses(path):
            assert room in ("errors", "__version__") or name in public(room), f"{path.name}: {room}.{name}"


def test_declared_names_are_not_public() -> None:
    for room, names in HOUSE.items():
        assert not public(room) & set(names)
        module = importlib.import_module(f"dissensus.{room}")
        assert all(hasattr(module, name) for name in names)


def test_no_name_has_two_meanings() -> None:
    rooms: dict[str, set[str]] = {}
    for room in MOST_PUBLIC_NAMES:
        for name in public(room) | set(HOUSE.get(room, {})):
            rooms.setdefault(name, set()).add(room)
    shared = {name for name, where in rooms.items() if len(where) > 1}
    assert shared == SAME_MEANING.keys()
    # Classes and type aliases, those of private modules too, except helpers of one file.
    types: dict[str, str] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for name in type_names(path) - SAME_TYPE:
            assert name not in types, f"{name} is a type of {types[name]} and of {path}"
            types[name] = str(path)


def type_names(path: Path) -> set[str]:
    """The classes and type aliases of a module that do not begin with an underscore."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.add(node.targets[0].id)
    return {name for name in found if name[0].isupper() and not name.isupper()}


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
    assert rooms | {"studies.theory"} == MOST_PUBLIC_NAMES.keys()
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


def test_attributes_are_declared_when_an_object_is_made() -> None:
    late = set()
    for path in sorted(ROOT.rglob("*.py")):
        for cls in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(cls, ast.ClassDef):
                late |= {(path.name, cls.name, name) for name in late_attributes(cls)}
    assert late == {("__init__.py", "_Command", "description")}  # of argparse's class


def late_attributes(cls: ast.ClassDef) -> set[str]:
    """What methods assign to ``self`` that neither the class declares nor its constructor, or ``_reset``, assigns."""
    declared, assigned = set(), set()
    for node in cls.body:
        if isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            declared |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef):
            first = node.name in ("__init__", "__post_init__", "_reset")
            stored = (part for part in ast.walk(node) if isinstance(part, ast.Attribute))
            stored = (part for part in stored if isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == "self")
            (declared if first else assigned).update(part.attr for part in stored)
    return assigned - declared


def test_the_command_line_is_thin() -> None:
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "cli").glob("*.py")) < 1200


@pytest.mark.slow
def test_importing_dynamics_does_not_import_pyg() -> None:
    code = "import sys, dissensus.dynamics; sys.exit('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert len(dynamics.__all__) <= 20
