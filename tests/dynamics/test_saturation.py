import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dissensus.dynamics import saturation
from dissensus.dynamics._saturation import SATURATIONS
from dissensus.errors import InputError

LITERAL = {
    "tanh": torch.tanh,
    "softsign": F.softsign,
    "arctan": torch.atan,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "gelu": F.gelu,
    "linear": lambda z: z,
}
FORMS = [*((name, torch.float64) for name in LITERAL), ("tanh", torch.float32)]


def points() -> Tensor:
    return torch.tensor([-30.0, -3.0, -1.0, -0.1, 0.1, 0.5, 2.0, 30.0], dtype=torch.float64)


def test_all_are_known() -> None:
    assert set(SATURATIONS) == set(LITERAL)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_value_and_slope(name: str, form: torch.dtype) -> None:
    s = saturation(name, form)
    z = points().requires_grad_()
    torch.testing.assert_close(s(z), LITERAL[name](z), rtol=1e-12, atol=1e-14)
    (slope,) = torch.autograd.grad(LITERAL[name](z).sum(), z)
    argument = s.inner * z.detach()
    value = s.kernel(argument.clone())
    pulled = (
        s.outer
        * s.inner
        * s.pull(torch.ones_like(value), value, argument if s.keeps_argument else None, torch.empty_like(value))
    )
    torch.testing.assert_close(pulled, slope, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_odd_ones_satisfy_the_conditions_of_opinion_dynamics(name: str, form: torch.dtype) -> None:
    s = saturation(name, form)
    assert s.odd == (name in ("tanh", "softsign", "arctan"))
    if not s.odd:
        return
    z = points()
    torch.testing.assert_close(s(-z), -s(z), rtol=1e-12, atol=1e-14)
    # S(h) = h + S'''(0) h^3/6 for tanh and arctan; softsign bends already at second order, on either side of zero.
    h = torch.tensor([1e-3], dtype=torch.float64)
    assert s(0.0 * h).item() == 0.0
    assert (s(h) / h).item() == pytest.approx(1.0, abs=2e-3)
    assert s(h) < h
    assert s(torch.tensor([1e6], dtype=torch.float64)).item() < 2.0


def test_fast_form_only_in_float32_on_a_cpu() -> None:
    assert saturation("tanh", torch.float32).kernel is torch.sigmoid
    assert saturation("tanh", torch.float32, torch.device("cuda")).kernel is torch.tanh
    assert saturation("tanh", torch.float64).kernel is torch.tanh


def test_unknown() -> None:
    with pytest.raises(InputError, match="unknown saturation 'tahn': did you mean 'tanh'"):
        saturation("tahn")
