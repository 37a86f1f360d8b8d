import pytest
import torch

from dissensus import measure
from dissensus.errors import InputError
from measured_states import RING, every_measure, random_state


def test_summary_holds_every_scalar_measure():
    x = random_state(9, 4, dtype=torch.float32)
    summary = measure.summary(x, RING)
    expected = every_measure(x.double(), RING)
    assert summary.keys() == expected.keys()
    for name, value in summary.items():
        assert type(value) is float
        assert value == pytest.approx(expected[name].item(), rel=1e-6), name


def test_summary_keeps_energies_that_single_precision_cannot_hold():
    assert measure.summary(random_state(9, 4, dtype=torch.float32) * 1e-25, RING)["dirichlet_energy"] > 1e-51


def test_summary_refuses_a_trajectory():
    with pytest.raises(InputError, match="each step"):
        measure.summary(torch.ones(2, 9, 3), RING)
