"""All scalar measures of one state."""

from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph import check_edge_index
from dissensus.measure._channels import (
    channel_correlation,
    effective_rank_of,
    numerical_rank_of,
    rank_one_distance_of,
    spectrum,
)
from dissensus.measure._checks import check_state
from dissensus.measure._edges import dirichlet_energy, mad


def summary(x: Tensor, edge_index: Tensor) -> dict[str, float]:
    """All scalar measures of one state ``[n, channels]``, by the name of their function.

    This is faster than calling each function, because the singular values are computed only once.
    ``relative_dirichlet_energy`` is :func:`dirichlet_energy` with ``relative=True``. All values are computed in double
    precision.
    """
    if check_state(x).dim() != 2:
        raise InputError(f"summary takes one state [n, channels], not {list(x.shape)}: call it for each step")
    check_edge_index(edge_index, x.size(0))
    x = x.detach()
    singular = spectrum(x)
    # Double precision, because a small energy of a float32 state would underflow in float32.
    double = x.double()
    # One pass over the edges for both energies.
    relative = float(dirichlet_energy(double, edge_index, relative=True))
    return {
        "dirichlet_energy": relative * float(double.square().sum()),
        "relative_dirichlet_energy": relative,
        "mad": float(mad(double, edge_index)),
        "effective_rank": float(effective_rank_of(singular)),
        "numerical_rank": float(numerical_rank_of(singular)),
        "rank_one_distance": float(rank_one_distance_of(singular)),
        "channel_correlation": float(channel_correlation(x)),
    }
