"""GREAD: graph neural reaction-diffusion."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from dissensus.dynamics import ReactionDiffusion
from dissensus.errors import one_of
from dissensus.nn._attentive import EQUATIONS, AttentionOptions, AttentiveModel, Gate
from dissensus.nn._continuous import Context, FurtherOptions
from dissensus.nn._registry import register
from dissensus.solve import Field

REACTIONS = ("f", "fb")


_SOURCE = "Choi et al. 2023, GREAD: Graph Neural Reaction-Diffusion Networks"


class _Options(AttentionOptions, FurtherOptions):
    pass


@register(
    "gread-f", equation="X' = σ(a)(A - I)X + σ(b) X(1 - X)", source=_SOURCE, tables="theory", options={"reaction": "f"}
)
@register(
    "gread-fb",
    equation="X' = σ(a)(A - I)X + σ(b)((I - A)X + X)",
    source=_SOURCE,
    tables="theory",
    options={"reaction": "fb"},
)
class GREAD(AttentiveModel):
    r"""Graph neural reaction-diffusion, `"GREAD: Graph Neural Reaction-Diffusion Networks"
    <https://arxiv.org/abs/2211.14208>`_ (Choi et al., 2023).

    .. math::
        \dot X = -\alpha L X + \beta\, r(X), \qquad L = I - A, \quad \alpha = \sigma(a),\; \beta = \sigma(b)

    The reaction is Fisher's, :math:`r(X) = X \odot (1 - X)`, for ``f``, and the filter bank FB*,
    :math:`r(X) = L X + X`, for ``fb``, so that :math:`\dot X = (\alpha - \beta)\, A X + (2\beta - \alpha)\, X`.

    In FB* the published code adds A X where the paper subtracts it, :math:`r(X) = 2 X + A X`; ``equation="code"``
    selects that form.

    Keep ``time`` short: with ``f``, negative entries of X diverge to minus infinity in finite time, and with ``fb`` the
    state grows as :math:`\mathrm{e}^{\beta t}`.

    Args:
        reaction: ``f`` or ``fb``.
        equation: ``paper``, or ``code``; they differ for ``fb``.
        learn_time_scale: learn :math:`\alpha`; otherwise it is 1.
        time: T, the time at which the integration ends.
        method: name of the solver. The default is Euler's method, because adaptive ones fail on diverging entries.
        step_size: step size of the fixed-step methods.
        in_channels, hidden_channels, out_channels, options: see ``AttentiveModel`` and :class:`ContinuousModel`.
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
        **options: Unpack[_Options],
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
