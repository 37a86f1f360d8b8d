"""Measures of how many dimensions a state uses. They need no graph."""

from typing import NamedTuple

import torch
from torch import Tensor

from dissensus.measure._checks import check_state
from dissensus.measure._node_similarity import scaled, where_finite

# All singular values are computed if the smaller of the two dimensions (nodes, channels) is at most this. The cost is
# linear in the larger one. Otherwise only the `_SKETCH` largest are computed.
_EXACT = 2048
_SKETCH = 96
_POWER_ITERATIONS = 4


class Spectrum(NamedTuple):
    """Singular values of a state scaled to a largest entry of 1.

    ``values [..., k]`` are the k largest ones in descending order. The ``missing`` smaller ones are not computed; only
    their sum of squares, ``tail [...]``, is known. ``finite [...]`` is False for a state that is not finite, whose
    values are those of a zero state.
    """

    values: Tensor
    tail: Tensor
    missing: int
    finite: Tensor

    @property
    def energy(self) -> Tensor:
        """Squared Frobenius norm ``[...]``."""
        return self.values.square().sum(-1) + self.tail


def spectrum(x: Tensor) -> Spectrum:
    """Singular values of ``x [..., n, channels]``: all of them if a dimension is small, otherwise the leading ones."""
    x = scaled(check_state(x))
    finite = x.isfinite().all(-1).all(-1)
    x = torch.where(finite[..., None, None], x, 0.0)
    smaller = min(x.shape[-2:])
    if smaller <= _EXACT:
        values = torch.linalg.svdvals(x)
        return Spectrum(values, torch.zeros_like(values[..., 0]), 0, finite)
    values = _leading(x)
    tail = (x.square().sum((-2, -1)) - values.square().sum(-1)).clamp(min=0)
    return Spectrum(values, tail, smaller - values.size(-1), finite)


def _leading(x: Tensor) -> Tensor:
    """Leading singular values by a randomised range finder with power iterations (Halko, Martinsson & Tropp 2011)."""
    generator = torch.Generator(x.device).manual_seed(0)
    sketch = torch.randn(x.size(-1), _SKETCH, dtype=x.dtype, device=x.device, generator=generator)
    basis = torch.linalg.qr(x @ sketch).Q
    for _ in range(_POWER_ITERATIONS):
        basis = torch.linalg.qr(x @ torch.linalg.qr(x.mT @ basis).Q).Q
    return torch.linalg.svdvals(basis.mT @ x)


def effective_rank_of(s: Spectrum) -> Tensor:
    # The missing singular values are taken to be equal.
    small = (s.tail / max(1, s.missing)).sqrt()
    total = s.values.sum(-1) + s.missing * small
    divisor = torch.where(total == 0, 1.0, total)
    entropy = torch.special.entr(s.values / divisor[..., None]).sum(-1)
    entropy = entropy + s.missing * torch.special.entr(small / divisor)
    return _where_defined(s, torch.where(total == 0, 0.0, entropy.exp()))


def numerical_rank_of(s: Spectrum) -> Tensor:
    leading = s.values[..., 0].square()
    return _where_defined(s, s.energy / torch.where(leading == 0, 1.0, leading))


def rank_one_distance_of(s: Spectrum) -> Tensor:
    rest = s.values[..., 1:].square().sum(-1) + s.tail
    return _where_defined(s, (rest / torch.where(s.energy == 0, 1.0, s.energy)).sqrt())


def _where_defined(s: Spectrum, value: Tensor) -> Tensor:
    return torch.where(s.finite, value, torch.nan)


def effective_rank(x: Tensor) -> Tensor:
    r"""Effective rank :math:`\exp\bigl(-\sum_k p_k \log p_k\bigr)`, :math:`p_k = \sigma_k / \sum_l \sigma_l`.

    From Roy & Vetterli, "The effective rank" (EUSIPCO 2007). It lies between 1 and min(n, channels). It is 1 for a
    rank-one state, and the number of channels if these are orthogonal and have equal norms. It is 0 for a zero state
    and NaN for a state that is not finite.

    If both n and channels exceed 2048, the 96 leading singular values come from a randomised SVD with a fixed seed, and
    the remaining energy is distributed evenly over the others. This is exact up to rank 96 and an upper estimate
    otherwise (20% too large for Cora's word counts, whose spectrum decays slowly).

    Args:
        x: state ``[..., n, channels]``.

    Returns:
        Value ``[...]`` in the dtype of ``x``.
    """
    return effective_rank_of(spectrum(x)).to(x.dtype)


def numerical_rank(x: Tensor) -> Tensor:
    r"""Numerical rank :math:`\|X\|_F^2 / \|X\|_2^2`, also called the stable rank.

    It lies between 1 and the rank, and counts smoothly how many directions have an energy comparable to the largest; it
    is not the number of singular values above a tolerance. It is 0 for a zero state and NaN for a state that is not
    finite. The spectral norm is computed like the singular values in :func:`effective_rank`; if these are randomised,
    it is slightly too small.

    Args:
        x: state ``[..., n, channels]``.

    Returns:
        Value ``[...]`` in the dtype of ``x``.
    """
    return numerical_rank_of(spectrum(x)).to(x.dtype)


def rank_one_distance(x: Tensor) -> Tensor:
    r"""Relative distance to the nearest rank-one matrix, :math:`\min_{uv'} \|X - uv'\|_F / \|X\|_F`.

    By the Eckart-Young theorem this is :math:`\sqrt{1 - \sigma_1^2 / \|X\|_F^2}`. It is computed from the other
    singular values, so it is accurate near 0. A distance that tends to 0 means that the state collapses to a single
    direction, such as consensus or another dominant eigenvector. The value is 0 for a zero state and NaN for a state
    that is not finite.

    Args:
        x: state ``[..., n, channels]``.

    Returns:
        Value ``[...]`` in the dtype of ``x``, between 0 and 1.
    """
    return rank_one_distance_of(spectrum(x)).to(x.dtype)


def channel_correlation(x: Tensor) -> Tensor:
    r"""Mean absolute Pearson correlation over pairs of channels, :math:`\frac{2}{c(c-1)} \sum_{k<l} |\rho_{kl}|`.

    Pairs with a channel that is constant over the nodes (up to four times its rounding error) are left out. If no
    pair is left (consensus, a single node, a single channel), the value is 0. It is NaN for a state that is not finite.

    Args:
        x: state ``[..., n, channels]``.

    Returns:
        Value ``[...]`` in the dtype of ``x``, between 0 and 1.
    """
    rounding = 4 * torch.finfo(check_state(x).dtype).eps
    dtype, x = x.dtype, scaled(x)
    # Subtracting a row first makes a constant channel exactly zero, however its mean is rounded.
    centred = x - x[..., :1, :]
    centred = centred - centred.mean(-2, keepdim=True)
    spread = centred.square().mean(-2).sqrt()
    varies = spread > rounding * x.abs().amax(-2)
    unit = centred / (torch.where(varies, spread, 1.0)[..., None, :] * x.size(-2) ** 0.5)
    unit = unit * varies[..., None, :]
    correlation = (unit.mT @ unit).abs()
    pairs = varies.sum(-1) * (varies.sum(-1) - 1)
    off_diagonal = correlation.sum((-2, -1)) - correlation.diagonal(dim1=-2, dim2=-1).sum(-1)
    value = off_diagonal / pairs.clamp(min=1)
    return where_finite(x, value).to(dtype)
