"""Input checks."""

from torch import Tensor

from dissensus.errors import InputError


def check_state(x: Tensor) -> Tensor:
    """Return ``x`` if it is a floating-point state ``[..., n, channels]`` with at least one node and one channel."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        found = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InputError(
            f"a state must be a floating-point tensor, not {found}: convert it with torch.as_tensor(x).float()"
        )
    if x.dim() < 2:
        raise InputError(f"a state must be [n, channels], not {list(x.shape)}: for one channel pass x[:, None]")
    if 0 in x.shape[-2:]:
        raise InputError(f"a state needs at least one node and one channel, not {list(x.shape)}")
    return x
