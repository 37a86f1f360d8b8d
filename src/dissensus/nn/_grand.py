"""GRAND: graph neural diffusion."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.nn._attentive import AttentiveModel, AttentiveOptions, Gate
from dissensus.nn._continuous import REWIRING, Context
from dissensus.nn._registry import register
from dissensus.solve import Field

_SOURCE = "Chamberlain et al. 2021, GRAND: Graph Neural Diffusion"


@register(
    "grand-l",
    equation="X' = (A - I)X, optionally σ(a)(A - I)X + bX(0)",
    source=_SOURCE,
    tables="homophilic, heterophilic, large, depth, energy, runtime",
)
@register(
    "grand-aa",
    equation="X' = (A(X) - I)X, recomputed along the solution",
    source=_SOURCE,
    tables="homophilic, heterophilic, depth",
    options={"adaptive": True},
)
@register(
    "grand-aa-rw",
    equation="GRAND-aa on the rewired graph",
    source=f"{_SOURCE}; {REWIRING}",
    tables="homophilic, heterophilic, depth",
    options={"adaptive": True, "rewire": True},
)
class GRAND(AttentiveModel):
    r"""Graph neural diffusion, `"GRAND: Graph Neural Diffusion" <https://arxiv.org/abs/2106.10934>`_ (Chamberlain et
    al., 2021).

    .. math::
        \dot X = s\,(A - I)\,X + b\,X(0), \qquad s = 1,\; b = 0

    The attention A is computed once (GRAND-l), or along the solution if ``adaptive`` is set (GRAND-nl, "-aa"). By
    default s and b are those of the paper. The published code learns :math:`s = \sigma(a)` (``learn_time_scale``), and
    for some datasets also b, starting at 0 (``source``), without a gradient through X(0) (``detach_source``).

    Args:
        source: add b X(0) with a learnable b.
        detach_source: block the gradient through X(0) in the source.
        learn_time_scale: make s = sigmoid(a) with a learnable a; it starts at 1/2.
        in_channels, hidden_channels, out_channels, options: see ``AttentiveModel`` and :class:`ContinuousModel`.
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
        **options: Unpack[AttentiveOptions],
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
