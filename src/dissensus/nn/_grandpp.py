"""GRAND++: graph neural diffusion with a source at the labelled nodes."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor
from torch_geometric.data import Data

from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import InputError
from dissensus.nn._attentive import AttentiveModel, AttentiveOptions, Gate
from dissensus.nn._continuous import REWIRING, Context
from dissensus.nn._registry import register
from dissensus.solve import Field

_SOURCE = "Thorpe et al. 2022, GRAND++: Graph Neural Diffusion with A Source Term"


@register(
    "grand++-l",
    equation="X' = (A - I)X + B, B = X(0) minus its mean at the training nodes, 0 elsewhere",
    source=_SOURCE,
    tables="homophilic, heterophilic, depth, energy, runtime",
)
@register(
    "grand++-aa",
    equation="GRAND++ with A(X) recomputed along the solution",
    source=_SOURCE,
    tables="homophilic, heterophilic, depth",
    options={"adaptive": True},
)
@register(
    "grand++-aa-rw",
    equation="GRAND++-aa on the rewired graph",
    source=f"{_SOURCE}; {REWIRING}",
    tables="homophilic, heterophilic, depth",
    options={"adaptive": True, "rewire": True},
)
class GRANDPlusPlus(AttentiveModel):
    r"""Graph neural diffusion with a source, `"GRAND++: Graph Neural Diffusion with A Source Term"
    <https://openreview.net/forum?id=EMxu-dzvJk>`_ (Thorpe et al., 2022).

    .. math::
        \dot X = s\,(A - I)\,X + B, \qquad
        B_i = c\,\big(X_i(0) - \operatorname{mean}_{j \in S} X_j(0)\big) \text{ for } i \in S, \quad 0 \text{ elsewhere}

    The sources S are the training nodes of the split. :meth:`prepare` or :meth:`set_sources` sets them before training,
    and they are saved with the model. Until they are set, every node is a source. In a batch, each graph has its own
    mean.

    The paper has s = 1. The published code learns :math:`s = \sigma(a)` (``learn_time_scale``) and blocks the gradient
    through X(0) in B (``detach_source``).

    Args:
        source_scale: c.
        detach_source: block the gradient through X(0) in the source.
        learn_time_scale: make s = sigmoid(a) with a learnable a; it starts at 1/2.
        in_channels, hidden_channels, out_channels, options: see ``AttentiveModel`` and :class:`ContinuousModel`.
    """

    graph_buffers = ("sources",)
    sources: Tensor | None

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        source_scale: float = 1.0,
        detach_source: bool = False,
        learn_time_scale: bool = False,
        **options: Unpack[AttentiveOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.source_scale, self.detach_source = float(source_scale), detach_source
        self.time_scale = Gate(learn_time_scale)
        self.register_buffer("sources", None)

    def prepare(self, data: Data) -> None:
        """Set the sources to the nodes of ``data.train_mask``, or to all nodes if the mask is empty."""
        self.set_sources(data.train_mask if bool(data.train_mask.any()) else None)

    @property
    def bound_nodes(self) -> int | None:
        """Number of nodes of the graph whose sources were set; None if every node is a source."""
        return None if self.sources is None else self.sources.numel()

    def set_sources(self, mask: Tensor | None) -> None:
        """Set the sources to the nodes of a boolean ``mask`` [n], such as ``data.train_mask``; None for all nodes."""
        if mask is not None and (mask.dtype != torch.bool or mask.dim() != 1 or not bool(mask.any())):
            raise InputError("sources must be a boolean mask [n] with at least one True: give data.train_mask")
        self.sources = None if mask is None else mask.clone().to(self.decoder.linear.weight.device)

    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        scale = self.time_scale()
        source = self.source_scale * self._deviation(x0.detach() if self.detach_source else x0, context)
        return ReactionDiffusion(context.graph.pattern, scale * values, source, linear=-scale)

    def _deviation(self, x0: Tensor, context: Context) -> Tensor:
        """Rows of the sources minus their mean over the graph, and zero elsewhere: [n, hidden_channels]."""
        n = x0.shape[0]
        if self.sources is not None and self.sources.numel() != n:
            raise InputError(
                f"the sources were set for {self.sources.numel()} nodes, but the graph has {n}: use the graph of "
                "training, or call model.set_sources with the training mask of this graph, or with None for all nodes"
            )
        mask = x0.new_ones(n, 1) if self.sources is None else self.sources.view(-1, 1).to(x0.dtype)
        sizes = torch.tensor(context.sizes or (n,), device=x0.device)
        graph = torch.repeat_interleave(torch.arange(len(sizes), device=x0.device), sizes)
        count = x0.new_zeros(len(sizes), 1).index_add(0, graph, mask)
        total = x0.new_zeros(len(sizes), x0.shape[1]).index_add(0, graph, x0 * mask)
        return (x0 - (total / count.clamp_min(1.0)).index_select(0, graph)) * mask
