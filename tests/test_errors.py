import pytest

from dissensus.errors import (
    DissensusError,
    InputError,
    MissingExtraError,
    SolverError,
    one_of,
    optional,
    unknown,
)


def test_unknown_names_the_nearest_and_all() -> None:
    assert (
        str(unknown("model", "bmip", ["bimp", "gcn"])) == "unknown model 'bmip': did you mean 'bimp'? Known: bimp, gcn"
    )
    assert str(unknown("model", "BIMP", ["bimp", "gcn"])).startswith("unknown model 'BIMP': did you mean 'bimp'?")
    assert str(unknown("model", "xyz", ["bimp", "gcn"])) == "unknown model 'xyz'. Known: bimp, gcn"
    assert str(unknown("model", 3, iter(["bimp"]))) == "unknown model 3. Known: bimp"


def test_one_of() -> None:
    assert one_of("kind", "a", iter(["a", "b"])) == "a"
    with pytest.raises(InputError, match=r"unknown kind 'c'\. Known: a, b"):
        one_of("kind", "c", iter(["a", "b"]))
    with pytest.raises(InputError):
        one_of("kind", ["a"], ["a", "b"])  # type: ignore[arg-type]


def test_missing_extra_says_how_to_get_it() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'dissensus\[plot\]'"):
        optional("no_such_package", "plot")
    assert optional("json", "plot", "json.decoder").JSONDecoder


def test_errors_are_also_the_builtin_kinds() -> None:
    for error, kind in ((InputError, ValueError), (MissingExtraError, ImportError), (SolverError, RuntimeError)):
        assert issubclass(error, kind)
        assert issubclass(error, DissensusError)
