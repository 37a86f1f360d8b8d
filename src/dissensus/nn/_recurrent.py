"""Models whose layers share their weights and stay stable: by antisymmetric weights (A-DGN) or by gates (G2)."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor
from torch_geometric.nn import AntiSymmetricConv

from dissensus.nn._discrete import DiscreteOptions, EncodedModel
from dissensus.nn._layers import Convolution, Propagation
from dissensus.nn._registry import register


@register(
    "adgn", equation="X ← X + ε tanh(X(W - Wᵀ - γI)ᵀ + ÂXV + b)", source="Gravina et al. 2023, Anti-Symmetric DGN"
)
class ADGN(EncodedModel):
    r"""`"Anti-Symmetric DGN: a stable architecture for Deep Graph Networks" <https://arxiv.org/abs/2210.09789>`_
    (Gravina et al., 2023).

    .. math::
        X \leftarrow X + \epsilon \tanh\big(X (W - W^\top - \gamma I)^\top + \hat A X V^\top + b\big)

    All layers share the weights W and V: the model applies one ``AntiSymmetricConv`` of PyG ``num_layers`` times.

    Args:
        epsilon: step size.
        gamma: strength of the diffusion.
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        epsilon: float = 0.1,
        gamma: float = 0.1,
        **options: Unpack[DiscreteOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        phi = Convolution(hidden_channels, hidden_channels, bias=False)
        self.antisymmetric = AntiSymmetricConv(hidden_channels, phi, epsilon=epsilon, gamma=gamma)

    def step(self, x: Tensor, x0: Tensor, i: int, propagation: Propagation) -> Tensor:
        return self.antisymmetric(x, propagation)


@register(
    "g2",
    equation="X ← (1-τ)X + τ relu(ÂXW), τ_i = tanh(mean_j (Y_i - Y_j)²)",
    source="Rusch et al. 2023, Gradient Gating for Deep Multi-Rate Learning on Graphs",
)
class G2(EncodedModel):
    r"""`"Gradient Gating for Deep Multi-Rate Learning on Graphs" <https://arxiv.org/abs/2210.00513>`_ (Rusch et al.,
    2023), with graph convolutions and p = 2.

    .. math::
        \tau_i = \tanh\big(\operatorname{mean}_{j \to i} (Y_i - Y_j)^2\big), \quad Y = \operatorname{relu}(\hat A X
        V^\top + c), \qquad X \leftarrow (1 - \tau) \odot X + \tau \odot \operatorname{relu}(\hat A X W^\top + b)

    The mean is computed as :math:`Y_i^2 - 2 Y_i \operatorname{mean}_j Y_j + \operatorname{mean}_j Y_j^2`, with two
    sparse products. All layers share their weights.

    The arguments are those of :class:`DiscreteModel`.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, **options: Unpack[DiscreteOptions]
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.update = Convolution(hidden_channels, hidden_channels)
        self.gate = Convolution(hidden_channels, hidden_channels)

    def step(self, x: Tensor, x0: Tensor, i: int, propagation: Propagation) -> Tensor:
        y = torch.relu(self.gate(x, propagation))
        pattern = propagation.pattern
        ones = torch.ones(pattern.entries, dtype=x.dtype, device=x.device)
        mean = Propagation(pattern, pattern.row_normalize(ones))
        gate = torch.tanh(y.square() - 2.0 * y * mean(y) + mean(y.square()))
        return (1.0 - gate) * x + gate * torch.relu(self.update(x, propagation))
