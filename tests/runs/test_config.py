"""The identity of a configuration, and grids."""

import json
import subprocess
import sys
from enum import StrEnum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import runs
from dissensus.errors import InputError

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
configs = st.dictionaries(st.text(), _values, max_size=4)


def _reordered(value):
    if isinstance(value, dict):
        return {name: _reordered(value[name]) for name in reversed(list(value))}
    return [_reordered(entry) for entry in value] if isinstance(value, list) else value


@settings(max_examples=50, deadline=None)
@given(configs)
@pytest.mark.slow
def test_key_ignores_the_order_of_keys_and_survives_json(config):
    assert runs.key(_reordered(config)) == runs.key(config)
    assert runs.key(json.loads(json.dumps(config))) == runs.key(config)


def test_different_values_have_different_keys():
    values = [None, True, False, 0, 1, 0.5, 1e300, 10**300, "", "1", "null", [], {}, [1], [[1]], {"a": 1}, {"a": None}]
    assert len({runs.key({"x": value}) for value in values}) == len(values)
    assert runs.key({"a": {"b": 1}}) != runs.key({"a.b": 1})


def test_key_is_a_fixed_function_of_the_configuration():
    # printf '{"model":{"heads":8},"split":3}' | sha256sum
    config = {"split": 3, "model": {"heads": 8.0}}
    assert runs.key(config) == "67663ea0b917b16323615192ccd5bcfff439817a64a505a1f475c2278b4cfeb5"
    code = f"from dissensus import runs; print(runs.key({config!r}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == runs.key(config)


def test_numbers_of_one_value_are_one_number_but_booleans_are_not():
    assert runs.key({"x": 2}) == runs.key({"x": 2.0}) == runs.key({"x": np.float32(2)}) == runs.key({"x": np.int64(2)})
    assert runs.key({"x": 0.0}) == runs.key({"x": -0.0})
    assert runs.key({"x": 1}) != runs.key({"x": True}) != runs.key({"x": "1"})
    assert runs.key({"x": (1, 2)}) == runs.key({"x": [1, 2]}) != runs.key({"x": [2, 1]})
    assert runs.key({"x": StrEnum("Kind", ["tanh"]).tanh}) == runs.key({"x": "tanh"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"a": {"b": float("nan")}}, "a.b is nan"),
        ({"a": [1, float("inf")]}, r"a\[1\] is inf"),
        ({"a": {"b": object()}}, "a.b is of type object"),
        ({"a": np.zeros(2)}, r"\.tolist"),
        ({"a": {1: 2}}, "a has the key 1"),
        ([1], "is a list: give a dictionary"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(config, message):
    with pytest.raises(InputError, match=message):
        runs.key(config)


def test_grid_is_the_product_of_its_axes():
    base = {"model": {"name": "bimp", "heads": 1}, "dataset": "cora"}
    configs = runs.grid(base, {"model.heads": [2, 4], "train.seed": range(3)})
    assert [(config["model"]["heads"], config["train"]["seed"]) for config in configs] == [
        (2, 0), (2, 1), (2, 2), (4, 0), (4, 1), (4, 2),
    ]  # fmt: skip
    assert all(config["model"]["name"] == "bimp" and config["dataset"] == "cora" for config in configs)
    assert base == {"model": {"name": "bimp", "heads": 1}, "dataset": "cora"}
    configs[0]["model"]["heads"] = 99
    assert configs[1]["model"]["heads"] == 2
    assert runs.grid(base, {}) == [base]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"split": []}, "at least one value"),
        ({"model.name": "bimp"}, "needs a list"),
        ({"dataset.name": ["cora"]}, "leads through 'dataset'"),
    ],
)
def test_grid_refuses_axes_that_make_no_sense(axes, message):
    with pytest.raises(InputError, match=message):
        runs.grid({"dataset": "cora"}, axes)
