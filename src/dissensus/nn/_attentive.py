"""The base of the continuous baselines: a learned communication graph, fixed along the solution or recomputed."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypedDict, Unpack

import torch
from torch import Tensor

from dissensus.graph import Graph, SparseFeatures
from dissensus.nn._attention import CommunicationAttention
from dissensus.nn._continuous import Context, ContinuousModel, ContinuousOptions
from dissensus.solve import AutogradField, Field

# Where a model's paper and its published code differ, the paper's equation is the default.
EQUATIONS = ("paper", "code")


class Gate(torch.nn.Module):
    """A learnable factor ``sigmoid(a)`` with a = 0 at the start; the number 1 where it is not learned."""

    def __init__(self, learned: bool) -> None:
        super().__init__()
        self.logit = torch.nn.Parameter(torch.zeros(())) if learned else None

    def reset_parameters(self) -> None:
        if self.logit is not None:
            torch.nn.init.zeros_(self.logit)

    def forward(self) -> Tensor | float:
        return 1.0 if self.logit is None else torch.sigmoid(self.logit)


def graph_states(communication: CommunicationAttention, graph: Graph, channels: int) -> float:
    """Estimated memory of one field evaluation and its attention for autograd, in units of states [n, channels]."""
    edges = 4.0 * communication.heads * graph.pattern.entries
    keys = 4.0 * communication.heads * communication.head_channels * graph.num_nodes
    return 5.0 + (edges + keys) / max(graph.num_nodes * channels, 1)


class AttentionOptions(TypedDict, total=False):
    """Keywords that :class:`AttentiveModel` adds to those of :class:`ContinuousModel`."""

    heads: int
    attention_channels: int
    attention: str
    normalizer: str
    adaptive: bool


class AttentiveOptions(AttentionOptions, ContinuousOptions):
    """All keywords of :class:`AttentiveModel`."""


class AttentiveModel(ContinuousModel):
    """A continuous model on the communication graph that :class:`~dissensus.nn.CommunicationAttention` learns.

    Args:
        heads: attention heads; divides ``attention_channels``.
        attention_channels: width of keys and queries.
        attention: score on edges: ``scaled_dot``, ``cosine``, ``pearson`` or ``exp_kernel``.
        normalizer: ``softmax``, ``squareplus`` or ``symmetric``.
        adaptive: recompute the graph from the state along the solution ("-aa"), rather than once from x(0).
        in_channels, hidden_channels, out_channels, options: of :class:`ContinuousModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = 4,
        attention_channels: int = 16,
        attention: str = "scaled_dot",
        normalizer: str = "softmax",
        adaptive: bool = False,
        **options: Unpack[ContinuousOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.adaptive = adaptive
        self.communication = CommunicationAttention(hidden_channels, heads, attention_channels, attention, normalizer)

    @abstractmethod
    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        """The field on the graph with the values ``values`` [entries], from the state x0 [n, hidden_channels]."""

    def field(self, x0: Tensor, context: Context) -> Field:
        x0 = self.read(self.start(x0))
        if not self.adaptive:
            return self.dynamics(x0, self._attend(x0, context), context)
        learned = [p for name, p in self.named_parameters() if not name.startswith(("encoder.", "decoder."))]
        return AutogradField(
            lambda t, x: self.dynamics(x0, self._attend(self.read(x), context), context).differentiable(t, x),
            [*learned, x0],
            pullback_states=graph_states(self.communication, context.graph, self.hidden_channels),
        )

    def _attend(self, x: Tensor, context: Context) -> Tensor:
        return self.communication(x, context.graph.pattern, context.weight)

    @torch.no_grad()
    def graphs(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, None]:
        """The learned graph at time 0: A_a, sparse CSR [n, n], every row sums to one; and None, as there is no A_o."""
        x = self.check_features(x)
        context = self.context(x.shape[0], edge_index, edge_weight, None)
        x0 = self.read(self.start(self.encoder(x)))
        return context.graph.pattern.matrix(self._attend(x0, context)), None
