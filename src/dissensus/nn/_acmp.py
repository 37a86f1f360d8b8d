"""ACMP: Allen-Cahn message passing."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import InputError, one_of
from dissensus.nn._attentive import EQUATIONS, AttentiveModel, AttentiveOptions, Gate
from dissensus.nn._continuous import Context
from dissensus.nn._registry import register
from dissensus.solve import Field


@register(
    "acmp",
    equation="X_i' = σ(a) Σ_j (a_ij - β)(X_j - X_i) + σ(d) X_i(1 - X_i²)",
    source="Wang et al. 2023, ACMP: Allen-Cahn Message Passing with Attractive and Repulsive Forces",
)
class ACMP(AttentiveModel):
    r"""Message passing with attraction, repulsion and a double well, `"ACMP: Allen-Cahn Message Passing with Attractive
    and Repulsive Forces for Graph Neural Networks" <https://arxiv.org/abs/2206.05437>`_ (Wang et al., 2023).

    .. math::
        \dot X_i = \alpha \sum_j (a_{ij} - \beta)(X_j - X_i) + \delta\, X_i \odot (1 - X_i \odot X_i), \qquad
        \alpha = \sigma(a),\; \delta = \sigma(d)

    with sums over the neighbours j of i. In the published code the repulsion does not appear in the outflow,
    :math:`\alpha\,(\sum_j (a_{ij} - \beta) X_j - X_i)`; ``equation="code"`` selects that form.

    Args:
        repulsion: :math:`\beta \ge 0`. Neighbours whose attention is below it repel each other. It acts on every edge,
            so nodes of high degree need small time steps.
        equation: ``paper`` or ``code``.
        learn_time_scale: learn :math:`\alpha`; otherwise it is 1.
        in_channels, hidden_channels, out_channels, options: see ``AttentiveModel`` and :class:`ContinuousModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        repulsion: float = 0.0,
        equation: str = "paper",
        learn_time_scale: bool = True,
        **options: Unpack[AttentiveOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        if not repulsion >= 0.0:
            raise InputError(f"repulsion is {repulsion}: it must not be negative; 0 turns it off")
        self.repulsion, self.equation = float(repulsion), one_of("equation", equation, EQUATIONS)
        self.time_scale, self.well = Gate(learn_time_scale), Gate(True)

    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        pattern, alpha, delta = context.graph.pattern, self.time_scale(), self.well()
        signed = values - self.repulsion
        # The outflow is 1 - beta degree where the rows of A sum to one.
        outflow = pattern.row_sums(signed).unsqueeze(1) if self.equation == "paper" and self.repulsion else 1.0
        return ReactionDiffusion(pattern, alpha * signed, linear=delta - alpha * outflow, cubic=-delta)
