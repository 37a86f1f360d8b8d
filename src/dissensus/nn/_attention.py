"""The learned communication graph and the learned option graph, right stochastic by default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dissensus.dynamics import Opinion
from dissensus.errors import InputError, one_of
from dissensus.graph import Pattern
from dissensus.nn._coders import check_heads

ATTENTIONS = ("scaled_dot", "cosine", "pearson", "exp_kernel")
NORMALIZERS = ("softmax", "squareplus", "symmetric")
OPTION_ATTENTIONS = ("node", "gram", "identity")


def both(x: Tensor, first: torch.nn.Linear, second: torch.nn.Linear) -> tuple[Tensor, Tensor]:
    """Apply two linear maps to the same input with one matrix product: [..., in] -> two of [..., out]."""
    weight = torch.cat([first.weight, second.weight])
    bias = None if first.bias is None or second.bias is None else torch.cat([first.bias, second.bias])
    left, right = torch.nn.functional.linear(x, weight, bias).split([first.out_features, second.out_features], -1)
    return left, right


class CommunicationAttention(torch.nn.Module):
    r"""Multi-head attention on the edges of a graph, averaged over heads.

    .. math::
        a_{ik} = \operatorname{mean}_h \operatorname{softmax}_k s(W_K x_i, W_Q x_k)

    The score s(a, b) depends on ``kind``: ``scaled_dot`` is :math:`\langle a, b\rangle/\sqrt{d_k}`; ``cosine`` the
    cosine similarity; ``pearson`` the cosine similarity of the centred vectors; ``exp_kernel`` is
    :math:`\sigma^2 \exp(-\|a-b\|^2 / 2\ell^2)` with learnable :math:`\sigma` and :math:`\ell`.

    Args:
        channels: width of the node states.
        heads: number of heads; must divide ``attention_channels``.
        attention_channels: width of the keys, summed over heads.
        kind: the score function.
        normalizer: ``softmax``; ``squareplus``, which is :math:`(s + \sqrt{s^2 + 4})/2` divided by its row sum; or
            ``symmetric``, the geometric mean of the softmax over rows and the softmax over columns,
            :math:`e^{s_{ik}} / \sqrt{\sum_l e^{s_{il}} \sum_l e^{s_{lk}}}`. With equal scores, ``symmetric`` gives
            :math:`D^{-1/2} A D^{-1/2}`; its spectral norm is at most one.
    """

    def __init__(
        self, channels: int, heads: int, attention_channels: int, kind: str = "scaled_dot", normalizer: str = "softmax"
    ) -> None:
        super().__init__()
        self.kind = one_of("attention", kind, ATTENTIONS)
        self.normalizer = one_of("normalizer", normalizer, NORMALIZERS)
        check_heads(heads, attention_channels, "attention_channels")
        self.heads, self.head_channels = int(heads), int(attention_channels // heads)
        self.key = torch.nn.Linear(channels, attention_channels)
        self.query = torch.nn.Linear(channels, attention_channels)
        if kind == "exp_kernel":
            self.variance = torch.nn.Parameter(torch.ones(heads))
            self.length = torch.nn.Parameter(torch.ones(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset to small weights, so that attention starts close to uniform."""
        for layer in (self.key, self.query):
            torch.nn.init.normal_(layer.weight, std=1e-2)
            torch.nn.init.uniform_(layer.bias, -1.0, 1.0)
        if self.kind == "exp_kernel":
            torch.nn.init.ones_(self.variance)
            torch.nn.init.ones_(self.length)

    def scores(self, x: Tensor, pattern: Pattern) -> Tensor:
        """[entries, heads]"""
        keys, queries = (v.unflatten(-1, (self.heads, self.head_channels)) for v in both(x, self.key, self.query))
        if self.kind == "pearson":
            keys, queries = (v - v.mean(-1, keepdim=True) for v in (keys, queries))
        if self.kind in ("cosine", "pearson"):
            keys, queries = (torch.nn.functional.normalize(v, dim=-1, eps=1e-5) for v in (keys, queries))
        dots = self._dots(keys, queries, pattern)
        if self.kind == "scaled_dot":
            return dots / math.sqrt(self.head_channels)
        if self.kind == "exp_kernel":
            # ||a - b||^2 = ||a||^2 + ||b||^2 - 2 <a, b>
            squares = [v.square().sum(-1) for v in (keys, queries)]
            rows, columns = squares[0].index_select(0, pattern.row), squares[1].index_select(0, pattern.col)
            distance = (rows + columns - 2.0 * dots).clamp_min(0.0)
            return self.variance.square() * torch.exp(-distance / (2.0 * self.length.square()))
        return dots

    def _dots(self, keys: Tensor, queries: Tensor, pattern: Pattern) -> Tensor:
        # [n, heads, head_channels] twice -> [entries, heads]
        if self.heads == 1 or self.head_channels >= 8:
            return torch.stack([pattern.sddmm(keys[:, h], queries[:, h]) for h in range(self.heads)], 1)
        # For narrow heads, products at full width with the keys of other heads set to zero are faster than slices.
        own = torch.eye(self.heads, dtype=keys.dtype, device=keys.device).repeat_interleave(self.head_channels, 1)
        each, queries = keys.flatten(1) * own.unsqueeze(1), queries.flatten(1)
        return torch.stack([pattern.sddmm(each[h], queries) for h in range(self.heads)], 1)

    def forward(self, x: Tensor, pattern: Pattern, weight: Tensor | None = None) -> Tensor:
        """The entries of A_a on the pattern, [entries]. Edge weights multiply the attention before normalisation."""
        scores = self.scores(x, pattern)
        if self.normalizer == "softmax":
            return pattern.row_softmax(scores, weight).mean(1)
        if self.normalizer == "symmetric":
            return _symmetric_softmax(pattern, scores, weight).mean(1)
        # (s + r)/2 with r = sqrt(s^2 + 4); for negative s the equal 2/(r - s), which is free of cancellation
        larger = 0.5 * (scores.abs() + torch.sqrt(scores.square() + 4.0))
        positive = torch.where(scores < 0, 1.0 / larger, larger)
        return pattern.row_normalize(positive if weight is None else positive * weight.unsqueeze(1)).mean(1)


def _symmetric_softmax(pattern: Pattern, scores: Tensor, weight: Tensor | None) -> Tensor:
    """The geometric mean of the softmax over rows and the softmax over columns, [entries, heads]."""
    rows = pattern.row_softmax(scores, weight)
    weight_t = None if weight is None else pattern.transposed(weight)
    columns = pattern.T.transposed(pattern.T.row_softmax(pattern.transposed(scores), weight_t))
    # The square root has no derivative at zero, and a softmax can underflow to zero.
    return (rows * columns).clamp_min(torch.finfo(scores.dtype).tiny).sqrt()


class OptionAttention(torch.nn.Module):
    r"""Multi-head attention between options, averaged over heads. Row j has the weights with which option j attends.

    .. math::
        A_o = \operatorname{mean}_h \operatorname{softmax}(K Q^\top / \sqrt{d_k} + \beta I)

    - ``node``, as in the paper: keys and queries come from the n opinions on an option, :math:`K = X^\top W_K`. This
      ties the model to one graph and the order of its nodes.
    - ``gram``: keys and queries come from a row of the Gram matrix, :math:`K = (X^\top X / n) W_K`. This works on any
      graph and does not depend on the order of nodes. In a batch, each graph has its own matrix.
    - ``identity``: :math:`A_o = I`.

    The learnable bias :math:`\beta` is added to the score of each option with itself, and so decides how close
    :math:`A_o` is to the identity. If :math:`A_o` is nearly uniform, only the mean over options is critical; the closer
    it is to the identity, the more directions are.

    Args:
        kind: one of the above.
        channels: number of options o.
        heads: number of heads.
        attention_channels: width of the keys, summed over heads.
        own_score: initial value of :math:`\beta`; zero means no bias.
        num_nodes: n, needed for ``node``.
    """

    def __init__(
        self,
        kind: str,
        channels: int,
        heads: int,
        attention_channels: int,
        own_score: float,
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        self.kind = one_of("option_attention", kind, OPTION_ATTENTIONS)
        self.initial_own_score, self.num_nodes = own_score, num_nodes
        self.heads, self.head_channels = int(heads), int(attention_channels // heads)
        if kind == "identity":
            return
        if kind == "node" and (num_nodes is None or num_nodes < 1):
            raise InputError(
                f"option_attention='node' needs num_nodes, but it is {num_nodes}: give the number of nodes of your "
                "graph, or use 'gram'"
            )
        width = num_nodes if kind == "node" and num_nodes else channels
        self.key = torch.nn.Linear(width, attention_channels, bias=False)
        self.query = torch.nn.Linear(width, attention_channels, bias=False)
        self.own_score = torch.nn.Parameter(torch.empty(())) if own_score else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weights (Glorot) and the bias."""
        if self.kind != "identity":
            torch.nn.init.xavier_uniform_(self.key.weight)
            torch.nn.init.xavier_uniform_(self.query.weight)
        if self.kind != "identity" and self.own_score is not None:
            torch.nn.init.constant_(self.own_score, self.initial_own_score)

    def forward(self, x: Tensor, sizes: Sequence[int] = ()) -> Tensor | float:
        """A_o [o, o]; for a batch of graphs of these ``sizes`` [graphs, o, o]; the number 1 for ``identity``."""
        if self.kind == "identity":
            return 1.0
        self.check(x.shape[0], sizes)
        if self.kind == "node":
            return self._attend(x.t())
        if not sizes:
            return self._attend(x.t() @ x / max(x.shape[0], 1))
        return self._attend(torch.stack([part.t() @ part / max(part.shape[0], 1) for part in x.split(list(sizes))]))

    def check(self, n: int, sizes: Sequence[int]) -> None:
        """Raise an error if ``node`` was created for another graph than one of n nodes, or for no batch."""
        if self.kind == "node" and type(n) is not int:
            raise InputError(
                f"option_attention='node' only works on one graph, of {self.num_nodes} nodes: export the model without "
                "a dynamic number of nodes, or use option_attention='gram'"
            )
        if self.kind == "node" and (n != self.num_nodes or sizes):
            raise InputError(
                f"the graph has {n} nodes" + (f" in {len(sizes)} graphs" if sizes else "") + ", but "
                f"option_attention='node' only works on one graph, of {self.num_nodes} nodes: use "
                "option_attention='gram', which works on any graph"
            )

    def _attend(self, vectors: Tensor) -> Tensor:
        # [..., options, width] -> [..., options, options]
        keys, queries = (
            v.unflatten(-1, (self.heads, self.head_channels)).transpose(-2, -3)
            for v in both(vectors, self.key, self.query)
        )
        scores = keys @ queries.mT / math.sqrt(self.head_channels)
        if self.own_score is not None:
            scores = scores + self.own_score * torch.eye(scores.shape[-1], dtype=scores.dtype, device=scores.device)
        return scores.softmax(-1).mean(-3)


def opinion_field(
    layer: Any, x: Tensor, source: Tensor, pattern: Pattern, weight: Tensor | None, sizes: Sequence[int]
) -> Opinion:
    """The opinion dynamics of a model or layer, with both of its attentions computed from x [n, options].

    ``layer`` has ``communication``, ``options``, ``damping``, ``attention_strength``, ``self_reinforcement`` and
    ``saturation``.
    """
    return Opinion(
        pattern,
        layer.communication(x, pattern, weight),
        layer.options(x, sizes),
        source,
        damping=layer.damping,
        attention=layer.attention_strength,
        self_reinforcement=layer.self_reinforcement,
        saturation=layer.saturation,
        sizes=sizes,
    )
