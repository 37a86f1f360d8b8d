r"""Node similarity measures: the Dirichlet energy and the mean average distance.

This file imports nothing but :mod:`torch`, so it can be copied into any project that uses PyG.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

# Number of entries gathered at once. This bounds the memory to tens of megabytes for any number of edges.
_CHUNK = 2**20


def dirichlet_energy(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, *, relative: bool = False
) -> Tensor:
    r"""Computes the Dirichlet energy of node features, a measure of oversmoothing, as in the `"A Survey on
    Oversmoothing in Graph Neural Networks" <https://arxiv.org/abs/2303.10993>`_ paper.

    .. math::
        \mathcal{E}(\mathbf{X}) = \frac{1}{|\mathcal{V}|} \sum_{i \in \mathcal{V}} \sum_{j \in \mathcal{N}(i)}
        w_{ij} {\| \mathbf{x}_i - \mathbf{x}_j \|}_2^2

    Every directed edge counts once. Differences are computed in double precision, so that the value is accurate near
    consensus.

    Args:
        x (torch.Tensor): The node features of shape :obj:`[*, num_nodes, num_features]`.
        edge_index (torch.Tensor): The edge indices.
        edge_weight (torch.Tensor, optional): The edge weights. (default: :obj:`None`)
        relative (bool, optional): If set to :obj:`True`, will divide the energy by
            :math:`{\| \mathbf{X} \|}_F^2`, which makes it independent of the scale of the features; the energy of zero
            features is zero. (default: :obj:`False`)

    :rtype: :class:`torch.Tensor` of shape :obj:`[*]`
    """
    state = scaled(x) if relative else x
    total = x.new_zeros(x.shape[:-2], dtype=torch.float64)
    for chunk in _edge_chunks(x, edge_index):
        source, target = edge_index[:, chunk]
        difference = state.index_select(-2, target).double() - state.index_select(-2, source).double()
        squares = difference.square().sum(-1)
        if edge_weight is not None:
            squares = squares * edge_weight[chunk].double()
        total = total + squares.sum(-1)
    if relative:
        norm = state.square().sum((-2, -1))
        # Replaces only exact zeros, so that NaN stays NaN.
        total = total / torch.where(norm == 0, 1.0, norm)
    return (total / x.size(-2)).to(x.dtype)


def mean_average_distance(x: Tensor, edge_index: Tensor) -> Tensor:
    r"""Computes the mean average distance (MAD) of node features over the edges of a graph, a measure of oversmoothing
    from the `"Measuring and Relieving the Over-smoothing Problem for Graph Neural Networks from the Topological View"
    <https://arxiv.org/abs/1909.03211>`_ paper.

    .. math::
        \bar{D}_i = \frac{1}{|\mathcal{N}(i)|} \sum_{j \in \mathcal{N}(i)} \left( 1 - \frac{\mathbf{x}_i^{\top}
        \mathbf{x}_j}{\| \mathbf{x}_i \| \| \mathbf{x}_j \|} \right), \qquad
        \mathrm{MAD} = \frac{1}{|\{ i : \mathcal{N}(i) \neq \emptyset \}|} \sum_i \bar{D}_i

    Self-loops and nodes without neighbors are left out. The distance of two zero rows is zero, and that of a zero row
    from any other row is one.

    Args:
        x (torch.Tensor): The node features of shape :obj:`[*, num_nodes, num_features]`.
        edge_index (torch.Tensor): The edge indices.

    :rtype: :class:`torch.Tensor` of shape :obj:`[*]`
    """
    num_nodes = x.size(-2)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    directions = scaled(x)
    # Dividing by the largest entry first keeps the squares of very small rows from underflowing.
    largest = directions.abs().amax(-1, keepdim=True)
    directions = directions / torch.where(largest == 0, 1.0, largest)
    length = directions.norm(dim=-1, keepdim=True)
    directions = directions / torch.where(length == 0, 1.0, length)
    is_zero = length.squeeze(-1) == 0

    sums = x.new_zeros(x.shape[:-1], dtype=torch.float64)
    for chunk in _edge_chunks(x, edge_index):
        source, target = edge_index[:, chunk]
        # For unit vectors 1 - cos = |u - v|^2 / 2, which is free of cancellation if they are nearly parallel.
        difference = directions.index_select(-2, target) - directions.index_select(-2, source)
        distance = difference.square().sum(-1) / 2
        one_is_zero = is_zero.index_select(-1, target) != is_zero.index_select(-1, source)
        sums = sums.index_add(-1, target, torch.where(one_is_zero, 1.0, distance))
    degree = torch.bincount(edge_index[1], minlength=num_nodes)
    means = sums / degree.clamp(min=1)
    return where_finite(x, means.sum(-1) / (degree > 0).sum().clamp(min=1)).to(x.dtype)


def scaled(x: Tensor) -> Tensor:
    """``x`` in double precision, with each ``[n, channels]`` matrix divided by its largest absolute entry.

    Ratios of squares then neither overflow nor underflow. A zero matrix stays zero; a matrix with an infinite entry or
    a NaN contains a NaN afterwards.
    """
    x = x.double()
    largest = x.detach().abs().amax((-2, -1), keepdim=True)
    return x / torch.where(largest == 0, 1.0, largest)


def where_finite(x: Tensor, value: Tensor) -> Tensor:
    """``value [...]`` with NaN wherever the state ``x [..., n, channels]`` is not finite."""
    return torch.where(x.isfinite().all(-1).all(-1), value, torch.nan)


def _edge_chunks(x: Tensor, edge_index: Tensor) -> Iterator[slice]:
    """Slices of the edges that are small enough to gather the rows of ``x`` for one slice in little memory."""
    size = max(1, _CHUNK // max(1, x.numel() // x.size(-2)))
    for start in range(0, edge_index.size(1), size):
        yield slice(start, start + size)
