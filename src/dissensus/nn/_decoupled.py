"""Models that separate propagation from learning: SGC and DGC propagate features, APPNP and GPRGNN scores."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TypedDict, Unpack

import torch
from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph import Graph, SparseFeatures
from dissensus.kernels import dropout
from dissensus.nn._discrete import DiscreteModel, EncodedModel, LayerOptions, check_share
from dissensus.nn._layers import Propagation, project, symmetric_values
from dissensus.nn._model import quarters
from dissensus.nn._registry import register


class LinearOptions(TypedDict, total=False):
    """Keywords of :class:`SGC` other than ``num_layers``."""

    input_dropout: float
    normalize_features: bool | str


@register("sgc", equation="Âᴷ X W", source="Wu et al. 2019, Simplifying Graph Convolutional Networks", tables="theory")
class SGC(DiscreteModel):
    r"""Simple graph convolution, `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_ (Wu
    et al., 2019).

    .. math::
        \hat A^K X W^\top + b

    The model is linear, so the scores are computed as :math:`\hat A^K (X W^\top)`, which propagates out_channels
    instead of in_channels columns. The states of the trajectory are :math:`\hat A^k X`.

    Args:
        in_channels: width of the node features, and of the states.
        hidden_channels: not used, because there is no hidden layer.
        out_channels: number of classes.
        num_layers: K.
        input_dropout: dropout rate of the features.
        normalize_features: see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        input_dropout: float = 0.5,
        normalize_features: bool | str = False,
    ) -> None:
        options: LayerOptions = {
            "dropout": 0.0,
            "input_dropout": input_dropout,
            "normalize_features": normalize_features,
        }
        super().__init__(in_channels, hidden_channels, out_channels, num_layers=num_layers, **options)
        self.linear = torch.nn.Linear(in_channels, out_channels)

    @property
    def milestones(self) -> tuple[float, ...]:
        """At most five layers from 0 to K, evenly spaced."""
        return tuple(quarters(self.num_layers))

    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        scores = project(self.linear, x)
        for _ in range(self.num_layers):
            scores = propagation(scores)
        return scores + self.linear.bias

    def states(
        self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None
    ) -> Iterator[Tensor | SparseFeatures]:
        state = x.to_dense() if isinstance(x, SparseFeatures) else x
        yield state
        for _ in range(self.num_layers):
            state = propagation(state)
            yield state


@register(
    "dgc",
    equation="((1 - T/K) I + (T/K) Â)ᴷ X W",
    source="Wang et al. 2021, Dissecting the Diffusion Process in Linear Graph Convolutional Networks",
    tables="theory",
)
class DGC(SGC):
    r"""Decoupled graph convolution, `"Dissecting the Diffusion Process in Linear Graph Convolutional Networks"
    <https://arxiv.org/abs/2102.10739>`_ (Wang et al., 2021).

    .. math::
        P^K X W^\top + b, \qquad P = (1 - T/K)\, I + (T/K)\, \hat A

    These are K Euler steps of the diffusion :math:`\dot X = (\hat A - I) X` up to time T. T does not depend on K.

    Args:
        in_channels: width of the node features, and of the states.
        hidden_channels: not used, because there is no hidden layer.
        out_channels: number of classes.
        time: T.
        num_layers: K; choose at least T, because steps T/K above 1 overshoot.
        options: ``input_dropout`` and ``normalize_features``, see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        time: float = 5.27,
        num_layers: int = 250,
        **options: Unpack[LinearOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers=num_layers, **options)
        if not (isfinite(time) and time > 0):
            raise InputError(f"time is {time}: it must be positive and finite (T > 0)")
        self.time = float(time)

    def weigh(self, graph: Graph, weight: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        step = self.time / self.num_layers
        values = step * symmetric_values(graph.pattern, weight, dtype)
        return values.index_add(0, graph.pattern.diagonal, values.new_full((graph.num_nodes,), 1.0 - step))


@register("appnp", equation="Z ← (1-α)ÂZ + αH, H = MLP(X)", source="Gasteiger et al. 2019, Predict then Propagate")
class APPNP(EncodedModel):
    r"""`"Predict then Propagate: Graph Neural Networks meet Personalized PageRank"
    <https://arxiv.org/abs/1810.05997>`_ (Gasteiger et al., 2019).

    .. math::
        Z \leftarrow (1 - \alpha) \hat A Z + \alpha H, \qquad H = \operatorname{relu}(X W_1^\top + b_1) W_2^\top + b_2

    The states of the trajectory are those of Z and have out_channels columns.

    Args:
        alpha: restart probability.
        num_layers: number of propagation steps.
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        alpha: float = 0.1,
        num_layers: int = 10,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers=num_layers, **options)
        check_share(alpha=alpha)
        self.alpha = alpha

    def hidden(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Iterator[Tensor]:
        # H is decoded first; the steps have no parameters and no dropout.
        h = state = self.decoder(dropout(self.encode(x), self.dropout, self.training))
        yield state
        for _ in range(self.num_layers):
            state = (1.0 - self.alpha) * propagation(state) + self.alpha * h
            yield state

    def scores(self, x: Tensor | SparseFeatures, propagation: Propagation, batch: Tensor | None) -> Tensor:
        *_, last = self.hidden(x, propagation)
        return last


@register(
    "gprgnn",
    equation="Σ_k γ_k Âᵏ H, H = MLP(X)",
    source="Chien et al. 2021, Adaptive Universal Generalized PageRank Graph Neural Network",
)
class GPRGNN(APPNP):
    r"""`"Adaptive Universal Generalized PageRank Graph Neural Network" <https://arxiv.org/abs/2006.07988>`_ (Chien et
    al., 2021).

    .. math::
        \sum_{k=0}^K \gamma_k \hat A^k H

    with H as in :class:`APPNP`. The learnable weights :math:`\gamma` start at those of personalised PageRank,
    :math:`\alpha (1 - \alpha)^k`. The states of the trajectory are the partial sums.

    Args:
        alpha: restart probability that sets the initial weights.
        num_layers: K.
        in_channels, hidden_channels, out_channels, options: see :class:`DiscreteModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        alpha: float = 0.1,
        num_layers: int = 10,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, alpha=alpha, num_layers=num_layers, **options)
        self.gamma = torch.nn.Parameter(torch.empty(num_layers + 1))
        self._reset_gamma()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._reset_gamma()

    @torch.no_grad()
    def _reset_gamma(self) -> None:
        # alpha (1 - alpha)^k, the last one (1 - alpha)^K, so that they sum to one
        powers = (1.0 - self.alpha) ** torch.arange(self.num_layers + 1, dtype=self.gamma.dtype)
        self.gamma.copy_(self.alpha * powers)
        self.gamma[-1] = powers[-1]

    def hidden(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Iterator[Tensor]:
        h = self.decoder(dropout(self.encode(x), self.dropout, self.training))
        total = self.gamma[0] * h
        yield total
        for k in range(1, self.num_layers + 1):
            h = propagation(h)
            total = total + self.gamma[k] * h
            yield total
