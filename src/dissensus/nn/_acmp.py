"""ACMP: Allen-Cahn message passing."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import InputError, one_of
from dissensus.graph import row_sums
from dissensus.nn._attentive import EQUATIONS, AttentiveModel, Gate
from dissensus.nn._continuous import Context
from dissensus.solve import Field


class ACMP(AttentiveModel):
    r"""Message passing with attraction, repulsion and a double well, `"ACMP: Allen-Cahn Message Passing with Attractive
    and Repulsive Forces for Graph Neural Networks" <https://arxiv.org/abs/2206.05437>`_ (Wang et al., 2023).

    .. math::
        \dot X_i = \alpha \sum_j (a_{ij} - \beta)(X_j - X_i) + \delta\, X_i \odot (1 - X_i \odot X_i), \qquad
        \alpha = \sigma(a),\; \delta = \sigma(d)

    over the neighbours j of i. The code leaves the repulsion out of the outflow,
    :math:`\alpha\,(\sum_j (a_{ij} - \beta) X_j - X_i)`; ``equation="code"`` gives that.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the state.
        out_channels: number of classes.
        repulsion: :math:`\beta \ge 0`; neighbours whose attention is below repel each other. As it acts on every edge,
            nodes of many edges then need small steps.
        equation: ``paper`` or ``code``.
        learn_time_scale: learn :math:`\alpha`; without, it is 1.
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
        repulsion: float = 0.0,
        equation: str = "paper",
        learn_time_scale: bool = True,
        **options: Any,
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
        outflow = row_sums(pattern, signed).unsqueeze(1) if self.equation == "paper" and self.repulsion else 1.0
        return ReactionDiffusion(pattern, alpha * signed, linear=delta - alpha * outflow, cubic=-delta)
