"""The base class of the continuous baselines, with a learned communication graph."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypedDict, Unpack

import torch
from torch import Tensor

from dissensus.graph import Graph, SparseFeatures
from dissensus.nn._attention import CommunicationAttention
from dissensus.nn._continuous import Context, ContinuousModel, ContinuousOptions
from dissensus.solve import AutogradField, Field

# If a model's paper and its published code differ, the equation of the paper is the default.
EQUATIONS = ("paper", "code")


class Gate(torch.nn.Module):
    """The factor ``sigmoid(a)`` with a learnable a that starts at 0, or the constant 1 if it is not learned."""

    def __init__(self, learned: bool) -> None:
        super().__init__()
        self.logit = torch.nn.Parameter(torch.zeros(())) if learned else None

    def reset_parameters(self) -> None:
        if self.logit is not None:
            torch.nn.init.zeros_(self.logit)

    def forward(self) -> Tensor | float:
        return 1.0 if self.logit is None else torch.sigmoid(self.logit)


def graph_states(communication: CommunicationAttention, graph: Graph, channels: int) -> float:
    """Estimated autograd memory of one evaluation of the field with its attention, in states [n, channels]."""
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
        heads: number of attention heads; must divide ``attention_channels``.
        attention_channels: width of keys and queries.
        attention: attention score of an edge: ``scaled_dot``, ``cosine``, ``pearson`` or ``exp_kernel``.
        normalizer: ``softmax``, ``squareplus`` or ``symmetric``.
        adaptive: recompute the graph from the current state along the solution ("-aa"), instead of once from x(0).
        in_channels, hidden_channels, out_channels, options: see :class:`ContinuousModel`.
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
        """The field on the graph with these ``values`` [entries]; x0 [n, hidden_channels] is the initial state."""

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
        """The learned graph A_a at time 0 as sparse CSR [n, n], and None, because there is no A_o. Rows sum to one."""
        x = self.check_features(x)
        context = self.context(x.shape[0], edge_index, edge_weight, None)
        x0 = self.read(self.start(self.encoder(x)))
        return context.graph.pattern.matrix(self._attend(x0, context)), None
