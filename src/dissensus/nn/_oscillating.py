"""Networks of oscillators: GraphCON and KuramotoGNN."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor

from dissensus.dynamics import Kuramoto, Oscillators
from dissensus.errors import InputError, one_of
from dissensus.nn._attentive import EQUATIONS, AttentiveModel, AttentiveOptions
from dissensus.nn._continuous import Context, ContinuousModel, ContinuousOptions
from dissensus.nn._layers import symmetric_values
from dissensus.nn._registry import register
from dissensus.solve import Field

_GRAPHCON = "Rusch et al. 2022, Graph-Coupled Oscillator Networks"


@register(
    "kuramoto",
    equation="X_i' = X_i(0) + K Σ_j a_ij sin(X_j - X_i)",
    source="Nguyen et al. 2024, From Coupled Oscillators to Graph Neural Networks",
    tables="homophilic, heterophilic, large, depth, energy, runtime",
)
class KuramotoGNN(AttentiveModel):
    r"""Coupled phase oscillators, `"From Coupled Oscillators to Graph Neural Networks: Reducing Over-smoothing via a
    Kuramoto Model-based Approach" <https://arxiv.org/abs/2311.03260>`_ (Nguyen et al., 2024).

    .. math::
        \dot X_i = \omega_i + K \sum_j a_{ij} \sin(X_j - X_i), \qquad \omega = X(0)

    for every channel, where X(0) has the encoded features, clamped to :math:`[0, \pi]`. The published code replaces the
    sum by :math:`R \sin(A X - X)` with :math:`R = \sqrt{(A \cos X)^2 + (A \sin X)^2}` (``equation="code"``) and
    detaches :math:`\omega` (``detach_source``).

    Args:
        coupling: K > 0.
        equation: ``paper`` or ``code``.
        detach_source: block the gradient through X(0) in :math:`\omega`.
        in_channels, hidden_channels, out_channels, options: see ``AttentiveModel`` and :class:`ContinuousModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        coupling: float = 3.0,
        equation: str = "paper",
        detach_source: bool = False,
        **options: Unpack[AttentiveOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        if not coupling > 0.0:
            raise InputError(f"coupling is {coupling}: it must be positive (K > 0)")
        self.coupling, self.detach_source = float(coupling), detach_source
        self.equation = one_of("equation", equation, EQUATIONS)

    def start(self, x0: Tensor) -> Tensor:
        return x0.clamp(0.0, math.pi)

    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        return Kuramoto(
            context.graph.pattern,
            values,
            x0.detach() if self.detach_source else x0,
            coupling=self.coupling,
            mean_phase=self.equation == "code",
        )


@register(
    "graphcon-tran", equation="Y' = V, V' = AY - γY - αV", source=_GRAPHCON, tables="homophilic, depth, energy, runtime"
)
class GraphCONTran(AttentiveModel):
    r"""Graph-coupled oscillators with attention, `"Graph-Coupled Oscillator Networks"
    <https://arxiv.org/abs/2202.02296>`_ (Rusch et al., 2022).

    .. math::
        \dot Y = V, \qquad \dot V = A Y - \gamma Y - \alpha V, \qquad Y(0) = V(0) = \text{encoded features}

    Y is decoded. With ``symplectic``, an Euler step updates V first and then Y with the new V, as in the paper. The
    published code has learnable gates on both equations, which are left out here.

    Args:
        stiffness: :math:`\gamma`.
        damping: :math:`\alpha`.
        symplectic: use symplectic Euler steps; methods other than ``euler`` are not affected.
        in_channels, hidden_channels, out_channels, options: see ``AttentiveModel`` and :class:`ContinuousModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        stiffness: float = 1.0,
        damping: float = 1.0,
        symplectic: bool = True,
        **options: Unpack[AttentiveOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.stiffness, self.damping = _checked(stiffness, damping)
        self.lookahead = _lookahead(self, symplectic)

    def start(self, x0: Tensor) -> Tensor:
        return torch.stack([x0, x0])

    def read(self, state: Tensor) -> Tensor:
        return state[0]

    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        return Oscillators(
            context.graph.pattern, values, stiffness=self.stiffness, damping=self.damping, lookahead=self.lookahead
        )


@register("graphcon-gcn", equation="Y' = V, V' = relu(ÂYWᵀ + b) - γY - αV", source=_GRAPHCON, tables="heterophilic")
class GraphCONGCN(ContinuousModel):
    r"""Graph-coupled oscillators with graph convolution, `"Graph-Coupled Oscillator Networks"
    <https://arxiv.org/abs/2202.02296>`_ (Rusch et al., 2022).

    .. math::
        \dot Y = V, \qquad \dot V = \operatorname{relu}(\hat A Y W^\top + b) - \gamma Y - \alpha V

    with :math:`\hat A = D^{-1/2} (A + I) D^{-1/2}`. Both Y and V start at the encoded features, and Y is decoded. For
    heterophilic graphs the published code adds a linear map of Y inside the ReLU (``residual``).

    Args:
        residual: add :math:`Y R^\top` inside the ReLU.
        stiffness: :math:`\gamma`.
        damping: :math:`\alpha`.
        symplectic: use symplectic Euler steps; methods other than ``euler`` are not affected.
        in_channels, hidden_channels, out_channels, options: see :class:`ContinuousModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        residual: bool = False,
        stiffness: float = 1.0,
        damping: float = 1.0,
        symplectic: bool = True,
        **options: Unpack[ContinuousOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.stiffness, self.damping = _checked(stiffness, damping)
        self.lookahead = _lookahead(self, symplectic)
        self.convolution = torch.nn.Linear(hidden_channels, hidden_channels)
        self.residual = torch.nn.Linear(hidden_channels, hidden_channels, bias=False) if residual else None

    def start(self, x0: Tensor) -> Tensor:
        return torch.stack([x0, x0])

    def read(self, state: Tensor) -> Tensor:
        return state[0]

    def field(self, x0: Tensor, context: Context) -> Field:
        return Oscillators(
            context.graph.pattern,
            symmetric_values(context.graph.pattern, context.weight, x0.dtype),
            weight=self.convolution.weight,
            bias=self.convolution.bias,
            residual=None if self.residual is None else self.residual.weight,
            rectify=True,
            stiffness=self.stiffness,
            damping=self.damping,
            lookahead=self.lookahead,
        )


def _checked(stiffness: float, damping: float) -> tuple[float, float]:
    if not (stiffness >= 0.0 and damping >= 0.0):
        raise InputError(f"stiffness is {stiffness} and damping is {damping}: neither may be negative")
    return float(stiffness), float(damping)


def _lookahead(model: ContinuousModel, symplectic: bool) -> float:
    return model.step_size if symplectic and model.method == "euler" else 0.0
