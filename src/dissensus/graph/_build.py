"""From PyG's ``edge_index`` to the pattern of the communication graph, checked, and built once for each graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph._pattern import Pattern
from dissensus.graph._traced import traced
from dissensus.runtime import Cache, exporting


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph on n nodes as the pattern of its communication matrix: row i holds the sources of the edges into i.

    PyG's edge (j, i), from source j to target i, is the entry (i, j). Duplicate edges are one entry.

    Attributes:
        pattern: n x n.
        slot: the entry of each edge of the given ``edge_index``, [edges].
        added: entries that are self-loops not among the given edges, [entries], boolean.
    """

    pattern: Pattern
    slot: Tensor
    added: Tensor

    @property
    def num_nodes(self) -> int:
        return self.pattern.shape[0]

    def values(self, edge_weight: Tensor | None) -> Tensor | None:
        """Weights of the given edges as values of the pattern, differentiable; added self-loops weigh one.

        Weights of duplicate edges add up: [edges] -> [entries]. None stays None (every entry weighs the same).
        """
        if edge_weight is None:
            return None
        if not isinstance(edge_weight, Tensor):
            raise InputError(f"edge_weight is a {type(edge_weight).__name__}: pass a torch tensor of shape [edges]")
        edge_weight = edge_weight.reshape(-1)
        if edge_weight.numel() != self.slot.numel():
            raise InputError(
                f"edge_weight has {edge_weight.numel()} entries for {self.slot.numel()} edges: give one weight an edge"
            )
        if not edge_weight.is_floating_point():
            raise InputError(f"edge_weight has dtype {edge_weight.dtype}: convert it with edge_weight.float()")
        return self.added.to(edge_weight.dtype).index_add(0, self.slot, edge_weight)


_CACHE: Cache[Graph] = Cache(8)


def check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    """Refuse an ``edge_index`` that is not an integer [2, edges] tensor with entries in [0, num_nodes)."""
    _check_form(edge_index)
    if edge_index.numel() == 0:
        return
    low, high = (int(v) for v in torch.aminmax(edge_index))
    if low < 0 or high >= num_nodes:
        raise InputError(
            f"edge_index names node {low if low < 0 else high}, but there are {num_nodes} nodes: check that x has a "
            "row for every node and that numbering starts at 0"
        )


def _check_form(edge_index: Tensor) -> None:
    if not isinstance(edge_index, Tensor):
        raise InputError(f"edge_index is a {type(edge_index).__name__}: pass a torch tensor of shape [2, edges]")
    if edge_index.layout != torch.strided:
        raise InputError("edge_index is a sparse tensor: pass its coordinates, a [2, edges] tensor")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        cure = "transpose it" if edge_index.dim() == 2 and edge_index.shape[1] == 2 else "it must be [2, edges]"
        raise InputError(f"edge_index has shape {list(edge_index.shape)}: {cure}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise InputError(f"edge_index has dtype {edge_index.dtype}: convert it with edge_index.long()")


# A graph first seen in inference mode must serve training as well, so its tensors are made outside of that mode.
@torch.compiler.disable
@torch.inference_mode(False)
def build(edge_index: Tensor, num_nodes: int, *, self_loops: bool = True) -> Graph:
    """The :class:`Graph` of an ``edge_index``, checked; a graph seen before comes from a cache.

    The cache compares the whole content of ``edge_index``, so it is never wrong when a graph changes, in place or not.

    Args:
        edge_index: [2, edges], from source to target; directed, with duplicates or self-loops, as it comes.
        num_nodes: n.
        self_loops: give every node a self-loop. Without, only nodes without incoming edges get one, so that every row
            of a right-stochastic matrix can sum to one.
    """
    _check_form(edge_index)
    if exporting():
        return Graph(*traced(edge_index, num_nodes, self_loops))
    key = (num_nodes, self_loops)
    known = _CACHE.get(key, (edge_index,))
    if known is not None:
        return known
    check_edge_index(edge_index, num_nodes)
    return _CACHE.put(key, (edge_index,), _build(edge_index.long(), num_nodes, self_loops))


def _build(edge_index: Tensor, n: int, self_loops: bool) -> Graph:
    source, target = edge_index
    nodes = torch.arange(n, device=edge_index.device)
    if not self_loops:
        nodes = nodes[torch.bincount(target, minlength=n) == 0]
    keys = torch.cat([target * n + source, nodes * (n + 1)])
    unique, slot = torch.unique(keys, return_inverse=True)
    edges = slot[: source.numel()]
    added = torch.ones(unique.numel(), dtype=torch.bool, device=edge_index.device)
    added[edges] = False
    row = torch.div(unique, max(n, 1), rounding_mode="floor")
    return Graph(Pattern(row, unique - row * n, (n, n)), edges, added)
