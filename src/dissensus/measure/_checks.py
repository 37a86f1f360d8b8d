"""Refuse what cannot be measured, before any work starts."""

import torch
from torch import Tensor

from dissensus.errors import InputError


def check_state(x: Tensor) -> Tensor:
    """``x`` itself if it is a floating-point state ``[..., n, channels]`` with at least one node and one channel."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        found = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InputError(
            f"a state must be a floating-point tensor, not {found}; convert it with torch.as_tensor(x).float()"
        )
    if x.dim() < 2:
        raise InputError(f"a state must be [n, channels], not {list(x.shape)}; for one channel pass x[:, None]")
    if 0 in x.shape[-2:]:
        raise InputError(f"a state needs at least one node and one channel, not {list(x.shape)}")
    return x


def scaled(x: Tensor) -> Tensor:
    """``x`` in double precision, each ``[n, channels]`` matrix divided by its largest absolute entry.

    Ratios of squares are then free of overflow and underflow, whatever the scale of the state. A zero matrix stays
    zero; one with an infinite or undefined entry has an undefined entry afterwards.
    """
    x = x.double()
    largest = x.detach().abs().amax((-2, -1), keepdim=True)
    return x / torch.where(largest == 0, 1.0, largest)


def where_finite(x: Tensor, value: Tensor) -> Tensor:
    """``value [...]``, NaN where the state ``x [..., n, channels]`` is not finite."""
    return torch.where(x.isfinite().all(-1).all(-1), value, torch.nan)
