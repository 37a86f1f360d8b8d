"""What every test shares: one thread a worker, a registry of its own, and repeatable, unhurried Hypothesis runs."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Read when torch is loaded, here and in the processes that tests start: test workers share the cores among themselves.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

settings.register_profile(
    "dissensus", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dissensus")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever opens a browser is slow."""
    for item in items:
        if {"browser", "opened"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _models_as_before() -> Iterator[None]:
    """Forget the models that a test registers or loads from a file, so that no test sees another's."""
    from dissensus.nn import _registry  # after the environment variables above

    registered = {cls: list(infos) for cls, infos in _registry._REGISTERED.items()}
    modules = set(sys.modules)
    yield
    _registry._REGISTERED.clear()
    _registry._REGISTERED.update(registered)
    for name in set(sys.modules) - modules:
        if name.startswith("dissensus_model_"):
            del sys.modules[name]
