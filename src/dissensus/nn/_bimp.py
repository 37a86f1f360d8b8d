"""BIMP: behaviour-inspired message passing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dissensus.dynamics import Opinion, critical_attention
from dissensus.dynamics import saturation as saturation_named
from dissensus.errors import InputError, one_of
from dissensus.graph import SparseFeatures
from dissensus.nn._attention import CommunicationAttention, OptionAttention, opinion_field
from dissensus.nn._attentive import graph_states
from dissensus.nn._continuous import REWIRING, Context, ContinuousModel
from dissensus.nn._registry import register
from dissensus.runtime import exporting
from dissensus.solve import AutogradField, Equilibrium, Field, equilibrium

DEPTHS = ("time", "equilibrium")
ITERATIONS = ("anderson", "picard")
_SOURCE = "Wang et al. 2025, Resolving Oversmoothing with Opinion Dissensus"


@register(
    "bimp",
    equation="X' = -dX + tanh[u((α-1)X + (A_a+I) X (A_o+I)ᵀ)] + X(0)",
    source=_SOURCE,
    tables="homophilic, heterophilic, large, depth, energy, nonlinearity, runtime",
)
@register(
    "bimp-aa",
    equation="BIMP with A_a(X), A_o(X) recomputed along the solution",
    source=_SOURCE,
    tables="homophilic, heterophilic, depth",
    options={"adaptive": True},
)
@register(
    "bimp-aa-rw",
    equation="BIMP-aa on the rewired graph",
    source=f"{_SOURCE}; {REWIRING}",
    tables="homophilic, heterophilic, depth",
    options={"adaptive": True, "rewire": True},
)
class BIMP(ContinuousModel):
    r"""The behaviour-inspired message passing network of `"Resolving Oversmoothing with Opinion Dissensus"
    <https://arxiv.org/abs/2501.19089>`_ (Wang et al., 2025).

    .. math::
        \dot X = -d X + \tanh\big[u\,((\alpha - 1) X + (A_a + I)\, X\, (A_o + I)^\top)\big] + X(0), \qquad
        u = r u^*,\; u^* = \frac{d}{\alpha + 3}

    Nodes are agents, channels are options. The communication graph :math:`A_a` and the option graph :math:`A_o` are
    learned and right stochastic, so r = 1 puts the attention u exactly at the bifurcation point. There the equilibrium
    is unique, two nodes have equal opinions only if their inputs are equal, and an Euler step of size at most 1/d never
    expands a perturbation (in the sup-norm). For r < 1 solutions converge to the equilibrium at a rate of at least
    :math:`d (1 - r)`, and each Picard iteration reduces the distance to it by at least the factor r.

    If features are missing at most nodes, three options let these nodes receive information from distant ones:

    - ``encoder_bias=False`` gives nodes without features no input of their own.
    - ``normalizer="symmetric"`` normalises the graph symmetrically, which reduces the influence of hubs. Its spectral
      norm is at most one, so opinions still vanish below the same :math:`u^*`.
    - ``attention_ratio`` of at least 1 lets opinions travel far. On a long path, the input of one node causes an
      opinion of :math:`\sqrt{6/(\alpha + 3)}/l` at distance l if r = 1, however strong the input is. For r < 1 it
      decays as :math:`e^{-\kappa l}` with :math:`\cosh \kappa = ((\alpha + 3)/r - \alpha - 1)/2`. For r > 1 it grows
      with the distance until the saturation bounds it.

    Args:
        in_channels: width of the node features.
        hidden_channels: number of options.
        out_channels: number of classes.
        heads: number of attention heads of both graphs; must divide ``attention_channels``.
        attention_channels: width of keys and queries.
        attention: attention score of an edge: ``scaled_dot``, ``cosine``, ``pearson`` or ``exp_kernel``.
        normalizer: ``softmax``, ``squareplus`` or ``symmetric``.
        option_attention: ``gram`` (works on any graph), ``node`` (as in the paper; works on one graph only and needs
            ``num_nodes``) or ``identity``.
        own_score: initial value of the learnable bias that is added to the score of each option with itself. A large
            bias makes :math:`A_o` close to the identity; zero means no bias, as in the paper.
        num_nodes: number of nodes of the graph, for ``option_attention="node"``.
        damping: d > 0.
        self_reinforcement: :math:`\alpha \ge 0`. Above 1 it also sharpens differences between neighbours, which suits
            heterophilic graphs.
        attention_ratio: r > 0. Above 1 there may be several equilibria, so ``depth="equilibrium"`` needs r of at most
            1.
        saturation: ``tanh``, or any other name that :func:`dissensus.dynamics.saturation` accepts.
        adaptive: recompute both graphs from X(t) along the solution ("-aa"); only with ``depth="time"``.
        detach_source: block the gradient through the input X(0) on the right-hand side. This regularises models of
            moderate depth, but makes gradients vanish at great depth.
        depth: which state is decoded. ``time``: the state at time T. ``equilibrium``: the limit of infinite depth (see
            :meth:`equilibrium`), which needs the memory of a single state. :meth:`integrate` and :meth:`trajectory`
            return the transient in both cases, by default up to T.
        iteration: solver of the equilibrium: ``anderson``, or ``picard``, which is Euler's method with step 1/d.
        tol: tolerance for the residual of the equilibrium and of the adjoint equation for its gradient.
        max_iter: maximum number of iterations for each of the two; not converging by then is an error.
        time: T, the time at which the integration ends.
        method: name of the solver (see :func:`dissensus.solve.solve`).
        step_size: step size of the fixed-step methods.
        rtol: relative tolerance of the adaptive methods.
        atol: absolute tolerance of the adaptive methods.
        gradient: ``discrete``, ``autograd`` or ``adjoint``.
        adjoint_method: solver of the continuous adjoint; None means the same as ``method``.
        adjoint_step_size: its step size; None means the same as ``step_size``.
        encoder: ``linear``, or ``mlp`` with two residual layers.
        encoder_bias: whether the encoder's linear map has a bias. Without a bias, nodes whose features are all zero
            (missing) have no input and only listen to others.
        decoder: ``linear``; ``relu``, with a ReLU before the linear map; or ``mlp``, with two residual layers.
        dropout: dropout rate before the decoder and within residual layers.
        input_dropout: dropout rate of the features.
        normalize_features, self_loops, rewire, rewire_neighbors, rewire_restart: see :class:`ContinuousModel`.

    Shapes:
        node features [n, in_channels], ``edge_index`` [2, edges] -> scores [n, out_channels]

    Example:
        >>> model = BIMP(dataset.num_features, 64, dataset.num_classes)  # doctest: +SKIP
        >>> scores = model(data.x, data.edge_index)  # doctest: +SKIP
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = 4,
        attention_channels: int = 16,
        attention: str = "scaled_dot",
        normalizer: str = "softmax",
        option_attention: str = "gram",
        own_score: float = 8.0,
        num_nodes: int | None = None,
        damping: float = 1.0,
        self_reinforcement: float = 1.0,
        attention_ratio: float = 1.0,
        saturation: str = "tanh",
        adaptive: bool = False,
        detach_source: bool = False,
        depth: str = "time",
        iteration: str = "anderson",
        tol: float = 1e-5,
        max_iter: int = 1000,
        time: float = 8.0,
        method: str = "dopri5",
        step_size: float = 1.0,
        rtol: float = 1e-3,
        atol: float = 1e-3,
        gradient: str = "discrete",
        adjoint_method: str | None = None,
        adjoint_step_size: float | None = None,
        encoder: str = "linear",
        encoder_bias: bool = True,
        decoder: str = "linear",
        dropout: float = 0.3,
        input_dropout: float = 0.5,
        normalize_features: bool | str = False,
        self_loops: bool = True,
        rewire: bool = False,
        rewire_neighbors: int = 64,
        rewire_restart: float = 0.05,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            time=time,
            method=method,
            step_size=step_size,
            rtol=rtol,
            atol=atol,
            gradient=gradient,
            adjoint_method=adjoint_method,
            adjoint_step_size=adjoint_step_size,
            encoder=encoder,
            encoder_bias=encoder_bias,
            decoder=decoder,
            dropout=dropout,
            input_dropout=input_dropout,
            normalize_features=normalize_features,
            self_loops=self_loops,
            rewire=rewire,
            rewire_neighbors=rewire_neighbors,
            rewire_restart=rewire_restart,
        )
        self.depth, self.iteration = one_of("depth", depth, DEPTHS), one_of("iteration", iteration, ITERATIONS)
        self.tol, self.max_iter = tol, max_iter
        _check_depth(depth, adaptive, attention_ratio, tol, max_iter)
        self.damping, self.self_reinforcement = float(damping), float(self_reinforcement)
        critical = critical_attention(None, None, self.damping, self.self_reinforcement)
        self.attention_strength = attention_ratio * critical
        saturation_named(saturation)  # raises an error for unknown names
        self.saturation = saturation
        self.adaptive, self.detach_source = adaptive, detach_source
        self.communication = CommunicationAttention(hidden_channels, heads, attention_channels, attention, normalizer)
        self.options = OptionAttention(
            option_attention, hidden_channels, heads, attention_channels, own_score, num_nodes
        )

    @property
    def has_solver_time(self) -> bool:
        """Whether the scores are read at a solver time, not at the equilibrium."""
        return self.depth == "time"

    @property
    def bound_nodes(self) -> int | None:
        """Number of nodes of the only graph that ``option_attention="node"`` can run on; None if any graph will do."""
        return self.options.num_nodes if self.options.kind == "node" else None

    @classmethod
    def complete(cls, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """``options`` with ``num_nodes`` added where ``option_attention="node"`` needs it."""
        bound = options.get("option_attention") == "node"
        return {"num_nodes": num_nodes, **options} if bound else dict(options)

    def field(self, x0: Tensor, context: Context) -> Field:
        source = x0.detach() if self.detach_source else x0
        if not self.adaptive:
            return self._opinion(x0, source, context)
        learned = [*self.communication.parameters(), *self.options.parameters(), source]
        return AutogradField(
            lambda t, x: self._opinion(x, source, context).differentiable(t, x),
            learned,
            euler_limit=1.0 / self.damping,
            pullback_states=graph_states(self.communication, context.graph, self.hidden_channels),
        )

    def context(self, n: int, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None) -> Context:
        """The checked graph of a forward pass on n nodes."""
        context = super().context(n, edge_index, edge_weight, batch)
        self.options.check(n, context.sizes)
        return context

    def final(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
    ) -> Tensor:
        """The state whose readout is decoded: x(T), or the equilibrium."""
        if self.depth == "time":
            return super().final(x, edge_index, edge_weight, batch)
        return self.equilibrium(x, edge_index, edge_weight, batch).state

    @torch.compiler.disable
    def equilibrium(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Equilibrium:
        r"""The limit of the opinions for large times: the fixed point of :math:`X = (S[..] + X(0))/d`.

        The gradient comes from the implicit function theorem, so memory does not depend on the number of iterations.

        Returns:
            :class:`dissensus.solve.Equilibrium`: state [n, hidden_channels], residual, iterations, stats.
        """
        if self.adaptive:
            raise _not_adaptive()
        if exporting():
            raise InputError(
                "torch.export cannot trace depth='equilibrium', because the number of iterations depends on the graph: "
                "use a model with depth='time', method='euler', step_size=1/damping and a long time, which takes the "
                "same steps as Picard iteration"
            )
        with self.full_precision():
            field, start = self.problem(x, edge_index, edge_weight, batch)
            return equilibrium(field, start, tol=self.tol, max_iter=self.max_iter, method=self.iteration)

    def _opinion(self, x: Tensor, source: Tensor, context: Context) -> Opinion:
        return opinion_field(self, x, source, context.graph.pattern, context.weight, context.sizes)

    @torch.no_grad()
    def graphs(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The learned graphs at time 0: A_a as sparse CSR [n, n] and A_o as dense [o, o]. Rows sum to one."""
        x = self.check_features(x)
        context = self.context(x.shape[0], edge_index, edge_weight, None)
        x0 = self.encoder(x)
        pattern, options = context.graph.pattern, self.options(x0)
        if not isinstance(options, Tensor):
            options = options * torch.eye(self.hidden_channels, dtype=x0.dtype, device=x0.device)
        return pattern.matrix(self.communication(x0, pattern, context.weight)), options


def _check_depth(depth: str, adaptive: bool, attention_ratio: float, tol: float, max_iter: int) -> None:
    if not 0.0 < attention_ratio < math.inf:
        raise InputError(f"attention_ratio is {attention_ratio}: give a positive number; 1 is the critical attention")
    if not (0.0 < tol < math.inf and max_iter >= 1):
        raise InputError(f"tol is {tol} and max_iter is {max_iter}: give positive numbers")
    if depth == "equilibrium" and adaptive:
        raise _not_adaptive()
    if depth == "equilibrium" and attention_ratio > 1.0:
        raise InputError(
            f"attention_ratio is {attention_ratio}, but above 1 there may be several equilibria: give at most 1, or "
            "use depth='time'"
        )


def _not_adaptive() -> InputError:
    return InputError(
        "with adaptive=True the graphs change with the state, so the equilibrium may not be unique: use adaptive=False "
        "(the model 'bimp'), or depth='time'"
    )
