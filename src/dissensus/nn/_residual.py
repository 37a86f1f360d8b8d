"""Models with skip connections: GCNII, JKNet, and classic layers with residual connections."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Unpack

import torch
from torch import Tensor
from torch_geometric.nn import JumpingKnowledge

from dissensus.errors import one_of
from dissensus.graph import SparseFeatures
from dissensus.kernels import dropout
from dissensus.nn._coders import check_heads
from dissensus.nn._discrete import DiscreteOptions, EncodedModel, LayerOptions, check_share
from dissensus.nn._layers import Attention, Convolution, InitialResidual, Layer, Propagation, Sage, project
from dissensus.nn._registry import register

JUMPS = ("cat", "max", "lstm")
NORMS: dict[str, Any] = {"none": None, "batch": torch.nn.BatchNorm1d, "layer": torch.nn.LayerNorm}
CONVOLUTIONS: dict[str, type[Layer]] = {"gcn": Convolution, "gat": Attention, "sage": Sage}
_TUNED = "Luo et al. 2024, Classic GNNs are Strong Baselines"


@register(
    "gcnii",
    equation="X ← relu(((1-α)ÂX + αX(0))((1-β)I + βW))",
    source="Chen et al. 2020, Simple and Deep Graph Convolutional Networks",
)
class GCNII(EncodedModel):
    r"""`"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_ (Chen et al., 2020).

    .. math::
        X \leftarrow \operatorname{relu}\big(((1 - \alpha) \hat A X + \alpha X(0))
        ((1 - \beta_l) I + \beta_l W_l)\big), \qquad \beta_l = \log(\lambda / l + 1)

    Args:
        alpha: weight of the encoded features in every layer.
        strength: :math:`\lambda`, which sets how much the first layers transform their input.
        num_layers: number of layers.
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        alpha: float = 0.1,
        strength: float = 0.5,
        num_layers: int = 16,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers=num_layers, **options)
        check_share(alpha=alpha)
        self.layers = torch.nn.ModuleList(
            InitialResidual(hidden_channels, alpha, strength, layer=i + 1, normalize=False) for i in range(num_layers)
        )

    def step(self, x: Tensor, x0: Tensor, i: int, propagation: Propagation) -> Tensor:
        return torch.relu(self.layers[i](x, x0, propagation))


@register(
    "jknet",
    equation="W · jump(X_1, …, X_L), X ← relu(ÂXW)",
    source="Xu et al. 2018, Representation Learning on Graphs with Jumping Knowledge Networks",
)
class JKNet(EncodedModel):
    r"""`"Representation Learning on Graphs with Jumping Knowledge Networks" <https://arxiv.org/abs/1806.03536>`_ (Xu et
    al., 2018).

    .. math::
        X_l = \operatorname{relu}(\hat A X_{l-1} W_l^\top + b_l), \qquad
        \text{scores} = W\, \operatorname{jump}(X_1, \dots, X_L) + b

    Args:
        jump: how layers are combined: ``cat`` (concatenation), ``max`` (elementwise) or ``lstm`` (attention over
            layers).
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        jump: str = "cat",
        **options: Unpack[DiscreteOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.layers = torch.nn.ModuleList(Convolution(hidden_channels, hidden_channels) for _ in range(self.num_layers))
        self.jump = JumpingKnowledge(one_of("jump", jump, JUMPS), hidden_channels, self.num_layers)
        if jump == "cat":
            self.decoder = torch.nn.Linear(self.num_layers * hidden_channels, out_channels)

    def step(self, x: Tensor, x0: Tensor, i: int, propagation: Propagation) -> Tensor:
        return torch.relu(self.layers[i](x, propagation))

    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        _, *layers = self.hidden(x, propagation)
        return self.decoder(dropout(self.jump(layers), self.dropout, self.training))


@register("gcn-res", equation="X ← relu(norm(GCN(X) + XR))", source=_TUNED, options={"conv": "gcn"})
@register("gat-res", equation="X ← relu(norm(GAT(X) + XR))", source=_TUNED, options={"conv": "gat"})
@register("sage-res", equation="X ← relu(norm(SAGE(X) + XR))", source=_TUNED, options={"conv": "sage"})
class ResidualModel(EncodedModel):
    r"""Classic layers with residual connections and normalisation, the recipe of `"Classic GNNs are Strong Baselines"
    <https://arxiv.org/abs/2406.08993>`_ (Luo et al., 2024).

    .. math::
        X \leftarrow \operatorname{relu}\big(\operatorname{norm}(\operatorname{conv}(X) + X R^\top)\big)

    with the convolution of GCN, GAT or GraphSAGE. The first layer takes the features, or a linear map of them if
    ``pre_linear`` is set.

    Args:
        conv: ``gcn``, ``gat`` or ``sage``.
        residual: add the term :math:`X R^\top`.
        norm: ``none``, ``batch`` or ``layer``.
        pre_linear: apply a linear map before the first layer.
        heads: number of attention heads of ``gat``; must divide ``hidden_channels``.
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        conv: str = "gcn",
        residual: bool = True,
        norm: str = "batch",
        pre_linear: bool = False,
        heads: int = 1,
        **options: Unpack[DiscreteOptions],
    ) -> None:
        make_norm = NORMS[one_of("norm", norm, NORMS)]
        self.layer = CONVOLUTIONS[one_of("conv", conv, CONVOLUTIONS)]
        check_heads(heads, hidden_channels)
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.pre_linear = self.encoder if pre_linear else None
        del self.encoder
        widths = [hidden_channels if pre_linear else in_channels, *[hidden_channels] * (self.num_layers - 1)]
        make: Any = self.layer if conv != "gat" else partial(Attention, heads=heads)
        out = hidden_channels // heads if conv == "gat" else hidden_channels
        self.layers = torch.nn.ModuleList(make(width, out) for width in widths)
        self.residuals = torch.nn.ModuleList(torch.nn.Linear(width, hidden_channels) for width in widths if residual)
        self.norms = torch.nn.ModuleList(make_norm(hidden_channels) for _ in widths if make_norm is not None)

    def hidden(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Iterator[Tensor]:
        state: Any = x
        if self.pre_linear is not None:
            state = project(self.pre_linear, x) + self.pre_linear.bias
        yield state
        for i, layer in enumerate(self.layers):
            if i or self.pre_linear is not None:
                state = dropout(state, self.dropout, self.training)
            total = layer(state, propagation)
            if self.residuals:
                total = total + project(self.residuals[i], state) + self.residuals[i].bias
            if self.norms:
                total = self.norms[i](total)
            state = torch.relu(total)
            yield state
