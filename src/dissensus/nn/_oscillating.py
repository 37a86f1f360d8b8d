"""Networks of oscillators: GraphCON and KuramotoGNN."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from dissensus.dynamics import Kuramoto, Oscillators
from dissensus.errors import InputError, one_of
from dissensus.nn._attentive import EQUATIONS, AttentiveModel
from dissensus.nn._continuous import Context, ContinuousModel
from dissensus.nn._propagation import symmetric_values
from dissensus.solve import Field


class GraphCONTran(AttentiveModel):
    r"""Graph-coupled oscillators with attention, `"Graph-Coupled Oscillator Networks"
    <https://arxiv.org/abs/2202.02296>`_ (Rusch et al., 2022).

    .. math::
        \dot Y = V, \qquad \dot V = A Y - \gamma Y - \alpha V, \qquad Y(0) = V(0) = \text{encoded features}

    Y is decoded. With ``method="euler"`` a step moves V first and Y with the new V, as the paper's does
    (``symplectic``). The code also has learnable gates on both equations, which are left out here.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of Y and of V.
        out_channels: number of classes.
        stiffness: :math:`\gamma`.
        damping: :math:`\alpha`.
        symplectic: Euler's method in its symplectic form; no other method is touched.
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
        stiffness: float = 1.0,
        damping: float = 1.0,
        symplectic: bool = True,
        **options: Any,
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
            context.graph.pattern,
            values,
            stiffness=self.stiffness,
            damping=self.damping,
            lookahead=self.lookahead,
        )


class GraphCONGCN(ContinuousModel):
    r"""Graph-coupled oscillators with graph convolution, `"Graph-Coupled Oscillator Networks"
    <https://arxiv.org/abs/2202.02296>`_ (Rusch et al., 2022).

    .. math::
        \dot Y = V, \qquad \dot V = \operatorname{relu}(\hat A Y W^\top + b) - \gamma Y - \alpha V

    with :math:`\hat A = D^{-1/2} (A + I) D^{-1/2}` and both Y and V starting at the encoded features; Y is decoded. The
    code for heterophilic graphs adds a linear map of Y inside relu (``residual``).

    Args:
        in_channels: width of the node features.
        hidden_channels: width of Y and of V.
        out_channels: number of classes.
        residual: add :math:`Y R^\top` inside relu.
        stiffness: :math:`\gamma`.
        damping: :math:`\alpha`.
        symplectic: Euler's method in its symplectic form; no other method is touched.
        options: of :class:`ContinuousModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]
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
        **options: Any,
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
        raise InputError(f"stiffness = {stiffness}, damping = {damping}: neither may be negative")
    return float(stiffness), float(damping)


def _lookahead(model: ContinuousModel, symplectic: bool) -> float:
    return model.step_size if symplectic and model.method == "euler" else 0.0


class KuramotoGNN(AttentiveModel):
    r"""Coupled phase oscillators, `"From Coupled Oscillators to Graph Neural Networks: Reducing Over-smoothing via a
    Kuramoto Model-based Approach" <https://arxiv.org/abs/2311.03260>`_ (Nguyen et al., 2024).

    .. math::
        \dot X_i = \omega_i + K \sum_j a_{ij} \sin(X_j - X_i), \qquad \omega = X(0)

    entry by entry, with X(0) the encoded features clamped to :math:`[0, \pi]`. The code replaces the sum by
    :math:`R \sin(A X - X)`, :math:`R = \sqrt{(A \cos X)^2 + (A \sin X)^2}`, and detaches :math:`\omega`;
    ``equation="code"`` and ``detach_source`` give that.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the state.
        out_channels: number of classes.
        coupling: K > 0.
        equation: ``paper`` or ``code``.
        detach_source: no gradient through X(0) in :math:`\omega`.
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
        coupling: float = 3.0,
        equation: str = "paper",
        detach_source: bool = False,
        **options: Any,
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
