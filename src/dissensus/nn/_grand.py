"""GRAND: graph neural diffusion."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.nn._attentive import AttentiveModel, Gate
from dissensus.nn._continuous import Context
from dissensus.solve import Field


class GRAND(AttentiveModel):
    r"""Graph neural diffusion, `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_ (Chamberlain et
    al., 2021).

    .. math::
        \dot X = s\,(A - I)\,X + b\,X(0), \qquad s = 1,\; b = 0

    with the attention A computed once (GRAND-l), or along the solution with ``adaptive`` (GRAND-nl, "-aa"). The factors
    are those of the paper; its code has :math:`s = \sigma(a)` (``learn_time_scale``) and, for some datasets, a
    learnable b that starts at 0 (``source``), through which no gradient reaches X(0) (``detach_source``).

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the state.
        out_channels: number of classes.
        source: add b X(0), with b learnable.
        detach_source: no gradient through X(0) in the source.
        learn_time_scale: s = sigmoid(a) with a learnable, 1/2 at the start.
        options: of :class:`AttentiveModel` and :class:`ContinuousModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        source: bool = False,
        detach_source: bool = False,
        learn_time_scale: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.detach_source = detach_source
        self.time_scale = Gate(learn_time_scale)
        self.source = torch.nn.Parameter(torch.zeros(())) if source else None

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        super().reset_parameters()
        if self.source is not None:
            torch.nn.init.zeros_(self.source)

    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        scale, source = self.time_scale(), None
        if self.source is not None:
            source = self.source * (x0.detach() if self.detach_source else x0)
        return ReactionDiffusion(context.graph.pattern, scale * values, source, linear=-scale)
