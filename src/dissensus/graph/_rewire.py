"""Rewiring by graph diffusion: connect each node to the nodes with the largest personalised PageRank."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph._build import build
from dissensus.graph._pattern import Pattern
from dissensus.runtime import Cache, exporting

# Number of columns of the diffusion matrix computed together, few enough for the processor's cache.
_BLOCK = 64
# Smaller weights are dropped. This is also the truncation error of the series.
_TOLERANCE = 1e-5

_CACHE: Cache[tuple[Tensor, Tensor]] = Cache(4)


@torch.no_grad()
@torch.compiler.disable
def rewire(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    *,
    neighbors: int = 64,
    restart: float = 0.05,
) -> tuple[Tensor, Tensor]:
    r"""The graph of `"Diffusion Improves Graph Learning" <https://arxiv.org/abs/1911.05485>`_ (Gasteiger et al., 2019):
    the largest entries of personalised PageRank.

    .. math::
        \Pi = \alpha\,(I - (1 - \alpha)\, T)^{-1}, \qquad T = D^{-1/2} (A + I)\, D^{-1/2}

    In the column of every node the ``neighbors`` largest entries are kept and scaled to sum to one, like PyG's ``GDC``
    with ``topk``. Unlike there, :math:`\Pi` is never formed: its columns are computed in blocks by a series with an
    error of 1e-5 (a Chebyshev series if T is symmetric), and smaller weights are dropped. Results are cached.

    Args:
        edge_index: [2, edges], from source to target.
        num_nodes: n.
        edge_weight: positive weights, [edges]; ones if None.
        neighbors: number of entries to keep for each node, including the node itself.
        restart: :math:`\alpha` in (0, 1). A larger value makes the new graph more local.

    Returns:
        ``edge_index`` [2, at most n neighbors] and float32 ``edge_weight`` of the new graph.
    """
    if neighbors < 1:
        raise InputError(f"neighbors is {neighbors}: it must be at least 1")
    if not 0.0 < restart < 1.0:
        raise InputError(f"restart is {restart}: it must be between 0 and 1, such as 0.05")
    if exporting():
        raise InputError(
            "torch.export cannot trace the rewiring of a graph: export the model with rewire=False, and pass it the "
            "edges and weights that dissensus.graph.rewire returns"
        )
    key, tensors = (num_nodes, neighbors, restart), (edge_index, edge_weight)
    cached = _CACHE.get(key, tensors)
    if cached is not None:
        return cached
    graph = build(edge_index, num_nodes)
    given = graph.values(edge_weight)
    weight = torch.ones(graph.pattern.entries, device=edge_index.device) if given is None else given.float()
    # A + I: a self-loop of the given graph counts in addition to the one that every node gets.
    loops = graph.pattern.diagonal
    weight = weight.index_add(0, loops, (~graph.added[loops]).float())
    return _CACHE.put(key, tensors, _sparse_pagerank(graph.pattern, weight, neighbors, restart))


def _sparse_pagerank(pattern: Pattern, weight: Tensor, neighbors: int, restart: float) -> tuple[Tensor, Tensor]:
    """The edges and weights that :func:`rewire` returns, from the weights of A + I."""
    n = pattern.shape[0]
    scale = pattern.row_sums(weight).rsqrt()
    values = weight * scale[pattern.row.long()] * scale[pattern.col.long()]
    # The transpose, whose column j has the weights of the edges into node j.
    transition, values = pattern.T, pattern.transposed(values)
    symmetric = _is_symmetric(pattern, values, transition)
    sources, targets, weights = [], [], []
    for start in range(0, n, _BLOCK):
        seeds = torch.arange(start, min(start + _BLOCK, n), device=weight.device)
        unit = torch.zeros(n, len(seeds), device=weight.device)
        unit[seeds, torch.arange(len(seeds), device=weight.device)] = 1.0
        series = _chebyshev_series if symmetric else _neumann_series
        top, index = series(transition, values, unit, restart).topk(min(neighbors, n), dim=0)
        top = top.where(top > _TOLERANCE, 0.0)
        top /= top.sum(0)
        keep = top > 0.0
        sources.append(index[keep])
        targets.append(seeds.expand_as(index)[keep])
        weights.append(top[keep])
    if not sources:
        return torch.empty(2, 0, dtype=torch.int64, device=weight.device), weight.new_empty(0)
    return torch.stack([torch.cat(sources), torch.cat(targets)]), torch.cat(weights)


def _is_symmetric(pattern: Pattern, transposed: Tensor, transition: Pattern) -> bool:
    same_pattern = torch.equal(pattern.rowptr, transition.rowptr) and torch.equal(pattern.col, transition.col)
    return same_pattern and torch.allclose(transposed, transition.transposed(transposed))


def _chebyshev_series(pattern: Pattern, values: Tensor, unit: Tensor, restart: float) -> Tensor:
    # 1/(1 - c x) = (1 + 2 sum_k r^k T_k(x)) / s  on [-1, 1], with s = sqrt(1 - c^2) and r = (1 - s)/c
    c = 1.0 - restart
    s = math.sqrt(1.0 - c * c)
    r = (1.0 - s) / c
    terms = math.ceil(math.log(_TOLERANCE * (1.0 - r) * s / (2.0 * restart)) / math.log(r))
    before, now = unit, pattern.product(values, unit)
    total = unit + 2.0 * r * now
    # T_k = 2 x T_{k-1} - T_{k-2}. Stored with the signs + + - - + + - - ..., this difference is a sum,
    # S_k = +-2 x S_{k-1} + S_{k-2}, which one fused product computes in place.
    doubled = (values * -2.0, values * 2.0)
    for k in range(2, terms + 1):
        before, now = now, pattern.product(doubled[k % 2], now, add=before, out=before)
        total.add_(now, alpha=2.0 * r**k * (1.0 if k % 4 < 2 else -1.0))
    return total.mul_(restart / s)


def _neumann_series(pattern: Pattern, values: Tensor, unit: Tensor, restart: float) -> Tensor:
    # sum_k (1 - a)^k T^k
    now, total = unit, unit.clone()
    for _ in range(math.ceil(math.log(_TOLERANCE) / math.log(1.0 - restart))):
        now = pattern.product(values, now).mul_(1.0 - restart)
        total.add_(now)
    return total.mul_(restart)
