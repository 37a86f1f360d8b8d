"""Graph operations that ``torch.export`` can trace for graphs of any size."""

from __future__ import annotations

import torch
from torch import Tensor

from dissensus.graph._pattern import Pattern


class TracedPattern(Pattern):
    """A square :class:`Pattern` that computes by gather and scatter. Entries can be in any order. Not differentiable.

    Args:
        row: row of each entry, [entries].
        col: column of each entry, [entries].
        n: number of rows and of columns.
        has_diagonal: whether every diagonal entry is stored.
    """

    def __init__(self, row: Tensor, col: Tensor, n: int, has_diagonal: bool) -> None:
        self.row, self.col, self.shape, self.has_diagonal = row, col, (n, n), has_diagonal
        self.entries, self.device = row.shape[0], row.device

    @property
    def T(self) -> TracedPattern:
        return TracedPattern(self.col, self.row, self.shape[0], self.has_diagonal)

    def transposed(self, values: Tensor) -> Tensor:
        return values

    def product(
        self, values: Tensor, x: Tensor, *, add: Tensor | None = None, scale: float = 1.0, out: Tensor | None = None
    ) -> Tensor:
        total = torch.zeros_like(x).index_add(0, self.row, values.unsqueeze(1) * x.index_select(0, self.col))
        total = (total if add is None else total + add) * scale
        return total if out is None else out.copy_(total)

    def spmm(self, values: Tensor, x: Tensor) -> Tensor:
        return self.product(values, x)

    def sddmm(self, a: Tensor, b: Tensor) -> Tensor:
        return (a.index_select(0, self.row) * b.index_select(0, self.col)).sum(-1)

    def reduced(self, values: Tensor, how: str) -> Tensor:
        index = self.row.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
        target = values.new_zeros(self.shape[0], *values.shape[1:])
        return target.scatter_reduce(0, index, values, "amax" if how == "max" else how, include_self=False)


def traced(edge_index: Tensor, n: int, self_loops: bool) -> tuple[TracedPattern, Tensor, Tensor]:
    """The attributes ``pattern``, ``slot`` and ``added`` of a :class:`Graph` with a symbolic number of entries."""
    source, target = edge_index.long()
    nodes = torch.arange(n, device=edge_index.device)
    if not self_loops:
        in_degree = torch.zeros_like(nodes).index_add(0, target, torch.ones_like(target))
        nodes = nodes[in_degree == 0]
    # Even keys for edges and odd ones for added self-loops, so that an equal self-loop among the edges sorts first.
    marked, order = torch.cat([2 * (target * n + source), 2 * nodes * (n + 1) + 1]).sort()
    keys = torch.div(marked, 2, rounding_mode="floor")
    first = torch.cat([torch.ones_like(keys[:1], dtype=torch.bool), keys[1:] != keys[:-1]])
    slot = torch.zeros_like(order).scatter(0, order, first.long().cumsum(0) - 1)
    unique = keys[first]
    row = torch.div(unique, n, rounding_mode="floor")
    pattern = TracedPattern(row, unique - row * n, n, self_loops)
    return pattern, slot[: target.shape[0]], marked[first] % 2 == 1
