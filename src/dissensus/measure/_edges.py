"""Measures of how much neighbours differ."""

from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph import check_edge_index
from dissensus.measure import _node_similarity
from dissensus.measure._checks import check_state


def dirichlet_energy(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, *, relative: bool = False
) -> Tensor:
    r"""Dirichlet energy :math:`E(X) = \frac1n \sum_i \sum_{j \in N(i)} w_{ij} \|x_i - x_j\|_2^2`.

    Every directed edge counts once, so an undirected edge that is stored in both directions counts twice, as in the
    double sum. Differences are computed in double precision, so the value is also accurate near consensus.

    Args:
        x: state ``[..., n, channels]``; leading dimensions, such as the steps of a trajectory, are kept.
        edge_index: edges ``[2, edges]``.
        edge_weight: w of each edge, ``[edges]``; ones if None.
        relative: divide by the squared Frobenius norm, :math:`E(X) / \|X\|_F^2`. The result does not depend on the
            scale of the state, so it also detects oversmoothing of growing states. It is 0 for a zero state. Multiplied
            by n, it is the Rayleigh quotient of the graph Laplacian (twice that if edges are stored in both
            directions).

    Returns:
        Energy ``[...]`` in the dtype of ``x``, differentiable in ``x`` and in the weights. It is 0 without edges.
    """
    check_edge_index(edge_index, check_state(x).size(-2))
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        shape = list(edge_weight.shape)
        raise InputError(f"edge_weight has shape {shape}: give one weight for each of the {edge_index.size(1)} edges")
    return _node_similarity.dirichlet_energy(x, edge_index, edge_weight, relative=relative)


def mad(x: Tensor, edge_index: Tensor) -> Tensor:
    r"""Mean average distance (MAD): the mean over nodes of the mean cosine distance to their neighbours.

    .. math:: \bar D_i = \frac{1}{|N(i)|} \sum_{j \in N(i)} \Bigl(1 - \frac{x_i \cdot x_j}{\|x_i\| \|x_j\|}\Bigr),
       \qquad \mathrm{MAD} = \frac{1}{|\{i : N(i) \ne \emptyset\}|} \sum_i \bar D_i

    This is the measure of Chen et al., "Measuring and relieving the over-smoothing problem" (AAAI 2020), with the
    edges of the graph as target pairs. They divide by the number of *non-zero* distances. Here every neighbour counts,
    because otherwise the value would jump when a distance rounds to zero. The two agree unless neighbours are parallel.

    N(i) has the sources of the edges into i, without i itself, so self-loops do not count, and neither do nodes without
    neighbours. Without edges the value is 0. The distance of two zero rows is 0, and that of a zero row from any other
    row is 1. MAD only compares directions: it is 0 if all rows are positive multiples of each other, however much their
    norms differ.

    Args:
        x: state ``[..., n, channels]``.
        edge_index: edges ``[2, edges]``.

    Returns:
        Value ``[...]`` in the dtype of ``x``, between 0 and 2; NaN for a state that is not finite.
    """
    check_edge_index(edge_index, check_state(x).size(-2))
    return _node_similarity.mean_average_distance(x, edge_index)
