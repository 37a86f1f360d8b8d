"""Measures of how much a state differs along the edges of its graph."""

from collections.abc import Iterable, Iterator
from itertools import repeat

import torch
from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph import check_edge_index
from dissensus.measure._checks import check_state, scaled, where_finite

# Entries of the state gathered at once. It bounds the memory of a measure to some tens of megabytes beside the state.
_CHUNK = 2**20


def _chunk(x: Tensor) -> int:
    """So few edges that gathering the rows of ``x`` for them needs little memory."""
    return max(1, _CHUNK // max(1, x.numel() // x.size(-2)))


def _chunks(x: Tensor, edge_index: Tensor) -> Iterator[Tensor]:
    """``edge_index`` in small pieces."""
    yield from edge_index.split(_chunk(x), dim=1)


def dirichlet_energy(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, *, relative: bool = False
) -> Tensor:
    r"""Dirichlet energy :math:`E(X) = \frac1n \sum_i \sum_{j \in N(i)} w_{ij} \|x_i - x_j\|_2^2`.

    Every directed edge counts once, so an undirected edge stored in both directions counts twice, as in the double sum.
    Differences are taken row by row in double precision, so the value is accurate near consensus as well.

    Args:
        x: state ``[..., n, channels]``; leading dimensions, such as the steps of a trajectory, are kept.
        edge_index: edges ``[2, edges]``.
        edge_weight: w of each edge, ``[edges]``; one where absent.
        relative: divide by the squared Frobenius norm, :math:`E(X) / \|X\|_F^2`. This does not depend on the scale of
            the state, so it also shows oversmoothing in a state that grows. It is 0 for a zero state. Times n it is the
            Rayleigh quotient of the graph's Laplacian (twice that if edges are stored in both directions).

    Returns:
        Energy ``[...]`` in the dtype of ``x``; differentiable in ``x`` and in the weights. Without edges it is 0.
    """
    nodes = check_state(x).size(-2)
    check_edge_index(edge_index, nodes)
    weights: Iterable[Tensor | None] = repeat(None)
    if edge_weight is not None:
        if edge_weight.shape != edge_index.shape[1:]:
            shape = list(edge_weight.shape)
            raise InputError(
                f"edge_weight has shape {shape}: give one weight for each of the {edge_index.size(1)} edges"
            )
        weights = edge_weight.double().split(_chunk(x))
    state = scaled(x) if relative else x
    total = x.new_zeros(x.shape[:-2], dtype=torch.float64)
    for (source, target), weight in zip(_chunks(state, edge_index), weights, strict=False):
        difference = state.index_select(-2, target).double() - state.index_select(-2, source).double()
        squares = difference.square().sum(-1)
        total = total + (squares if weight is None else squares * weight).sum(-1)
    if relative:
        norm = state.square().sum((-2, -1))
        # Written so that an undefined norm stays undefined: only an exact zero is replaced.
        total = total / torch.where(norm == 0, 1.0, norm)
    return (total / nodes).to(x.dtype)


def mad(x: Tensor, edge_index: Tensor) -> Tensor:
    r"""Mean average distance over edges: the mean over nodes of the mean cosine distance to their neighbours.

    .. math:: \bar D_i = \frac{1}{|N(i)|} \sum_{j \in N(i)} \Bigl(1 - \frac{x_i \cdot x_j}{\|x_i\| \|x_j\|}\Bigr),
       \qquad \mathrm{MAD} = \frac{1}{|\{i : N(i) \ne \emptyset\}|} \sum_i \bar D_i

    This is the measure of Chen et al., "Measuring and relieving the over-smoothing problem" (AAAI 2020), with the
    graph's edges as target pairs. They divide by the number of *non-zero* distances; here every neighbour counts, since
    otherwise the value would jump when a distance rounds to zero. The two agree unless two neighbours are parallel.

    N(i) are the sources of the edges into i, without i itself: self-loops are left out, and so are nodes without
    neighbours. Without any edge the value is 0. Two zero rows are at distance 0, a zero row is at distance 1 from any
    other. MAD sees directions only: with one channel, or for rows that are multiples of each other, it is 0 however
    much the rows differ in length.

    Args:
        x: state ``[..., n, channels]``.
        edge_index: edges ``[2, edges]``.

    Returns:
        Value ``[...]`` in the dtype of ``x``, between 0 and 2; NaN for a state that is not finite.
    """
    nodes = check_state(x).size(-2)
    check_edge_index(edge_index, nodes)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    directions = scaled(x)
    # Divided by the largest entry first, the squares of a very short row do not underflow.
    largest = directions.abs().amax(-1, keepdim=True)
    directions = directions / torch.where(largest == 0, 1.0, largest)
    length = directions.norm(dim=-1, keepdim=True)
    directions = directions / torch.where(length == 0, 1.0, length)
    is_zero = length.squeeze(-1) == 0

    sums = x.new_zeros(x.shape[:-1], dtype=torch.float64)
    for source, target in _chunks(x, edge_index):
        # For unit vectors 1 - cos = |u - v|^2 / 2, which does not cancel when the two are nearly parallel.
        gap = directions.index_select(-2, target) - directions.index_select(-2, source)
        distance = gap.square().sum(-1) / 2
        one_is_zero = is_zero.index_select(-1, target) != is_zero.index_select(-1, source)
        sums = sums.index_add(-1, target, torch.where(one_is_zero, 1.0, distance))
    degree = torch.bincount(edge_index[1], minlength=nodes)
    means = sums / degree.clamp(min=1)
    return where_finite(x, means.sum(-1) / (degree > 0).sum().clamp(min=1)).to(x.dtype)
