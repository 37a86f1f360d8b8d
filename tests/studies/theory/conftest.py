"""A graph of ten agents and three options."""

import pytest

from dissensus.studies import theory
from dissensus.studies.theory._setting import Setting


@pytest.fixture(scope="module")
def medium() -> Setting:
    return theory.settings(10, 3)[1]
