"""GREAD: graph neural reaction-diffusion."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import one_of
from dissensus.nn._attentive import EQUATIONS, AttentiveModel, Gate
from dissensus.nn._continuous import Context
from dissensus.solve import Field

REACTIONS = ("f", "fb")


class GREAD(AttentiveModel):
    r"""Graph neural reaction-diffusion, `"GREAD: Graph Neural Reaction-Diffusion Networks"
    <https://arxiv.org/abs/2211.14208>`_ (Choi et al., 2023).

    .. math::
        \dot X = -\alpha L X + \beta\, r(X), \qquad L = I - A, \quad \alpha = \sigma(a),\; \beta = \sigma(b)

    with Fisher's reaction :math:`r(X) = X \odot (1 - X)` for ``f``, and the filter bank :math:`r(X) = L X + X` for
    ``fb`` (FB*), so that :math:`\dot X = (\alpha - \beta)\, A X + (2\beta - \alpha)\, X`.

    The code adds A X where the paper subtracts it in FB*, :math:`r(X) = 2 X + A X`; ``equation="code"`` gives that.

    Entries of X below zero run away to minus infinity in finite time under ``f``, and ``fb`` grows as
    :math:`\mathrm{e}^{\beta t}`: keep ``time`` short.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the state.
        out_channels: number of classes.
        reaction: ``f`` or ``fb``.
        equation: ``paper``, or ``code``; they differ for ``fb``.
        learn_time_scale: learn :math:`\alpha`; without, it is 1.
        time: T.
        method: solver. Euler's by default: an adaptive one follows runaway entries until it gives up.
        step_size: of fixed-step methods.
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
        reaction: str = "f",
        equation: str = "paper",
        learn_time_scale: bool = True,
        time: float = 1.0,
        method: str = "euler",
        step_size: float = 0.25,
        **options: Any,
    ) -> None:
        super().__init__(
            in_channels, hidden_channels, out_channels, time=time, method=method, step_size=step_size, **options
        )
        self.reaction = one_of("reaction", reaction, REACTIONS)
        self.equation = one_of("equation", equation, EQUATIONS)
        self.time_scale, self.strength = Gate(learn_time_scale), Gate(True)

    def dynamics(self, x0: Tensor, values: Tensor, context: Context) -> Field:
        pattern, alpha, beta = context.graph.pattern, self.time_scale(), self.strength()
        if self.reaction == "f":
            return ReactionDiffusion(pattern, alpha * values, linear=beta - alpha, quadratic=-beta)
        exchange = alpha - beta if self.equation == "paper" else alpha + beta
        return ReactionDiffusion(pattern, exchange * values, linear=2.0 * beta - alpha)
