"""Check PyG's ``edge_index`` and turn it into the pattern of the communication graph, once per graph."""

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

    An edge (j, i) of PyG, from source j to target i, is the entry (i, j). Duplicate edges share one entry.

    Attributes:
        pattern: n x n.
        slot: the entry of each edge of the given ``edge_index``, [edges].
        added: boolean [entries], True for added self-loops.
    """

    pattern: Pattern
    slot: Tensor
    added: Tensor

    @property
    def num_nodes(self) -> int:
        return self.pattern.shape[0]

    def values(self, edge_weight: Tensor | None) -> Tensor | None:
        """Turn edge weights [edges] into values of the pattern [entries], differentiably.

        Weights of duplicate edges add up, and added self-loops have weight one. None stays None.
        """
        if edge_weight is None:
            return None
        if not isinstance(edge_weight, Tensor):
            raise InputError(f"edge_weight is a {type(edge_weight).__name__}: pass a torch tensor of shape [edges]")
        edge_weight = edge_weight.reshape(-1)
        if edge_weight.numel() != self.slot.numel():
            raise InputError(
                f"edge_weight has {edge_weight.numel()} entries for {self.slot.numel()} edges: give one weight per edge"
            )
        if not edge_weight.is_floating_point():
            raise InputError(f"edge_weight has dtype {edge_weight.dtype}: convert it with edge_weight.float()")
        return self.added.to(edge_weight.dtype).index_add(0, self.slot, edge_weight)


_CACHE: Cache[Graph] = Cache(8)


def check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    """Raise an error unless ``edge_index`` is an integer [2, edges] tensor with entries in [0, num_nodes)."""
    _check_form(edge_index)
    if edge_index.numel() == 0:
        return
    low, high = (int(v) for v in torch.aminmax(edge_index))
    if low < 0 or high >= num_nodes:
        raise InputError(
            f"edge_index has node {low if low < 0 else high}, but there are {num_nodes} nodes: check that x has a row "
            "for every node and that nodes are numbered from 0"
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


# A graph first used in inference mode must also work in training, so its tensors are created outside of that mode.
@torch.compiler.disable
@torch.inference_mode(False)
def build(edge_index: Tensor, num_nodes: int, *, self_loops: bool = True) -> Graph:
    """Check an ``edge_index`` and build its :class:`Graph`, or take it from a cache.

    The cache compares the whole content of ``edge_index``, so in-place changes are safe.

    Args:
        edge_index: [2, edges], from source to target; directed, possibly with duplicates and self-loops.
        num_nodes: n.
        self_loops: add a self-loop to every node. If False, only nodes without incoming edges get one, so that every
            row of a right-stochastic matrix can sum to one.
    """
    _check_form(edge_index)
    if exporting():
        return Graph(*traced(edge_index, num_nodes, self_loops))
    key = (num_nodes, self_loops)
    cached = _CACHE.get(key, (edge_index,))
    if cached is not None:
        return cached
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
