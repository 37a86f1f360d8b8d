"""GRAND++: graph neural diffusion with a source at the labelled nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import InputError
from dissensus.nn._attentive import AttentiveModel, Gate
from dissensus.nn._continuous import Context
from dissensus.solve import Field


class GRANDPlusPlus(AttentiveModel):
    r"""Graph neural diffusion with a source, `"GRAND++: Graph Neural Diffusion with A Source Term"
    <https://openreview.net/forum?id=EMxu-dzvJk>`_ (Thorpe et al., 2022).

    .. math::
        \dot X = s\,(A - I)\,X + B, \qquad
        B_i = c\,\big(X_i(0) - \operatorname{mean}_{j \in S} X_j(0)\big) \text{ for } i \in S, \quad 0 \text{ elsewhere}

    The sources S are the training nodes of the split in use: name them with :meth:`set_sources` before training. They
    are saved with the model. Without, every node is a source, and in a batch each graph has its own mean.

    The paper's equation has s = 1; its code has :math:`s = \sigma(a)` (``learn_time_scale``) and no gradient through
    X(0) in B (``detach_source``).

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the state.
        out_channels: number of classes.
        source_scale: c.
        detach_source: no gradient through X(0) in the source.
        learn_time_scale: s = sigmoid(a) with a learnable, 1/2 at the start.
        options: of :class:`AttentiveModel` and :class:`ContinuousModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

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
        **options: Any,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.source_scale, self.detach_source = float(source_scale), detach_source
        self.time_scale = Gate(learn_time_scale)
        self.register_buffer("sources", None)

    def set_sources(self, mask: Tensor | None) -> None:
        """Name the sources: a boolean ``mask`` [n] with at least one of them, as ``data.train_mask``; None for all."""
        if mask is not None and (mask.dtype != torch.bool or mask.dim() != 1 or not bool(mask.any())):
            raise InputError("the sources are a boolean mask [nodes] with at least one True: give data.train_mask")
        self.sources = None if mask is None else mask.clone().to(self.decoder.linear.weight.device)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        # The mask has a size only once it is set: take it as it was saved.
        saved = state_dict.get(f"{prefix}sources")
        self.sources = None if saved is None else torch.empty_like(saved, device=self.decoder.linear.weight.device)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        scale = self.time_scale()
        source = self.source_scale * self._deviation(x0.detach() if self.detach_source else x0, context)
        return ReactionDiffusion(context.graph.pattern, scale * values, source, linear=-scale)

    def _deviation(self, x0: Tensor, context: Context) -> Tensor:
        """Each source's row minus the mean of its graph's sources; zero elsewhere: [n, hidden_channels]."""
        n = x0.shape[0]
        if self.sources is not None and self.sources.numel() != n:
            raise InputError(
                f"the sources were set for {self.sources.numel()} nodes, the graph has {n}: take the graph trained on, "
                "or call model.set_sources with the training mask of this graph, or with None for all nodes"
            )
        mask = x0.new_ones(n, 1) if self.sources is None else self.sources.view(-1, 1).to(x0.dtype)
        sizes = torch.tensor(context.sizes or (n,), device=x0.device)
        graph = torch.repeat_interleave(torch.arange(len(sizes), device=x0.device), sizes)
        count = x0.new_zeros(len(sizes), 1).index_add(0, graph, mask)
        total = x0.new_zeros(len(sizes), x0.shape[1]).index_add(0, graph, x0 * mask)
        return (x0 - (total / count.clamp_min(1.0)).index_select(0, graph)) * mask
