import importlib
import inspect

import pytest

import dissensus

ROOMS = dissensus._ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_are_documented(room: str) -> None:
    module = importlib.import_module(f"dissensus.{room}")
    assert module.__doc__
    public = module.__all__
    assert len(set(public)) == len(public)
    for name in public:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert own_doc(thing), f"{room}.{name} has no docstring"


def own_doc(thing: object) -> str | None:
    """A docstring of its own: dataclasses make one up from the signature."""
    doc = thing.__doc__
    name = getattr(thing, "__name__", "")
    return None if doc is None or doc.startswith(f"{name}(") else doc


def test_rooms_are_attributes() -> None:
    assert {*ROOMS, "__version__"} == set(dissensus.__all__)
    for room in ROOMS:
        assert getattr(dissensus, room) is importlib.import_module(f"dissensus.{room}")
    with pytest.raises(AttributeError, match="no attribute 'rooms'"):
        dissensus.rooms  # noqa: B018
