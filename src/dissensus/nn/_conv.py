"""BIMP's dynamics as one layer of any graph neural network."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.nn import Linear
from torch_geometric.utils import is_sparse, to_edge_index

from dissensus.dynamics import critical_attention
from dissensus.dynamics import saturation as saturation_named
from dissensus.errors import InputError, one_of
from dissensus.graph import build
from dissensus.nn._attention import CommunicationAttention, OptionAttention, opinion_field
from dissensus.nn._coders import check_sizes
from dissensus.nn._continuous import checked_weight, sizes_of
from dissensus.solve import Euler, solve, solver_named

# The attention over nodes would bind the layer to one graph.
_OPTION_ATTENTIONS = ("gram", "identity")


class OpinionConv(torch.nn.Module):
    r"""The opinion dynamics of :class:`BIMP` as a layer: a linear map, then ``steps`` Euler steps.

    .. math::
        X_0 &= X W^\top + b \\
        X_{k+1} &= X_k + h \big(-d X_k + \tanh\big[u\,((\alpha - 1) X_k + (A_a + I)\, X_k\, (A_o + I)^\top)\big]
        + X_0\big), \qquad u = r \frac{d}{\alpha + 3}

    The communication graph :math:`A_a` (attention on the edges and self-loops) and the option graph :math:`A_o`
    (attention between channels) are computed from :math:`X_0`. If ``time`` is given, a solver integrates the same
    equation up to that time instead.

    Args:
        in_channels: width of the input; -1 takes it from the first input, as in PyG.
        out_channels: width of the output, which is the number of options.
        steps: number of Euler steps; not used if ``time`` is given.
        step_size: h > 0. A step of at most 1/d never expands a perturbation.
        time: integrate up to this time with ``method``, instead of taking ``steps`` Euler steps.
        method: name of the solver for ``time`` (see :func:`dissensus.solve.solve`).
        rtol: relative tolerance of the adaptive methods.
        atol: absolute tolerance of the adaptive methods.
        heads: number of attention heads of both graphs; must divide ``attention_channels``.
        attention_channels: width of keys and queries.
        attention: attention score of an edge: ``scaled_dot``, ``cosine``, ``pearson`` or ``exp_kernel``.
        normalizer: ``softmax``, ``squareplus`` or ``symmetric``.
        option_attention: ``gram`` or ``identity``.
        own_score: initial value of the learnable bias that is added to the score of each option with itself.
        damping: d > 0.
        self_reinforcement: :math:`\alpha \ge 0`.
        attention_ratio: r > 0; at r = 1 the attention is critical.
        saturation: ``tanh``, or any other name that :func:`dissensus.dynamics.saturation` accepts.

    Shapes:
        node states [n, in_channels], ``edge_index`` [2, edges] or sparse ``adj_t`` [n, n] -> node states
        [n, out_channels]

    Example:
        >>> from torch_geometric.nn import GCNConv, Sequential
        >>> layers = [(GCNConv(8, 16), "x, edge_index -> x"), (OpinionConv(16, 16), "x, edge_index -> x")]
        >>> Sequential("x, edge_index", layers)(torch.ones(2, 8), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([2, 16])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        steps: int = 8,
        *,
        step_size: float = 1.0,
        time: float | None = None,
        method: str = "dopri5",
        rtol: float = 1e-3,
        atol: float = 1e-3,
        heads: int = 4,
        attention_channels: int = 16,
        attention: str = "scaled_dot",
        normalizer: str = "softmax",
        option_attention: str = "gram",
        own_score: float = 8.0,
        damping: float = 1.0,
        self_reinforcement: float = 1.0,
        attention_ratio: float = 1.0,
        saturation: str = "tanh",
    ) -> None:
        super().__init__()
        check_sizes(in_channels=1 if in_channels == -1 else in_channels, out_channels=out_channels, steps=steps)
        for name, value in {"step_size": step_size, "time": time, "attention_ratio": attention_ratio}.items():
            if value is not None and not 0.0 < value < math.inf:
                raise InputError(f"{name} is {value}: give a positive number")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.steps, self.step_size, self.time = steps, step_size, time
        self.method = method
        solver = solver_named(method, step_size, rtol, atol)
        self.solver = Euler(step_size) if time is None else solver
        self.damping, self.self_reinforcement = float(damping), float(self_reinforcement)
        self.attention_strength = attention_ratio * critical_attention(
            None, None, self.damping, self.self_reinforcement
        )
        saturation_named(saturation)  # raises an error for unknown names
        self.saturation = saturation
        self.lin = Linear(in_channels, out_channels)
        self.communication = CommunicationAttention(out_channels, heads, attention_channels, attention, normalizer)
        one_of("option_attention", option_attention, _OPTION_ATTENTIONS)
        self.options = OptionAttention(option_attention, out_channels, heads, attention_channels, own_score)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.lin.reset_parameters()
        self.communication.reset_parameters()
        self.options.reset_parameters()

    @torch.compiler.disable  # sparse products and step-size control cannot be traced
    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """The states after the last step.

        Args:
            x: node states, [n, in_channels].
            edge_index: [2, edges], from source to target; or the transposed adjacency matrix, [n, n], as a sparse
                tensor of torch or torch_sparse, such as ``adj_t`` of ``torch_geometric.transforms.ToSparseTensor``.
                Its entry (i, j) is the weight of the edge from j to i.
            edge_weight: positive weights, [edges]; they multiply the attention before normalisation.
            batch: index of the graph that each node belongs to, [n], in ascending order; None for a single graph.

        Returns:
            [n, out_channels]
        """
        with torch.autocast(x.device.type, enabled=False):
            dtype = self.lin.weight.dtype
            if is_sparse(edge_index):
                edge_index, edge_weight = _edges_of(edge_index, edge_weight, x.shape[0], dtype)
            graph, sizes = build(edge_index, x.shape[0]), sizes_of(batch, x.shape[0])
            weight = graph.values(checked_weight(edge_weight, dtype))
            x0 = self.lin(x.to(dtype))
            field = opinion_field(self, x0, x0, graph.pattern, weight, sizes)
            return solve(field, x0, self.steps * self.step_size if self.time is None else self.time, self.solver).state

    def __repr__(self) -> str:
        depth = f"time={self.time}, method={self.method!r}" if self.time is not None else f"steps={self.steps}"
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, {depth})"


def _edges_of(adj_t: Tensor, edge_weight: Tensor | None, n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """``edge_index`` and weights of a sparse matrix, whose entry (i, j) is the weight of the edge from j to i."""
    if edge_weight is not None:
        raise InputError("a sparse matrix has the edge weights as its values: leave out edge_weight")
    if (adj_t.size(0), adj_t.size(1)) != (n, n):
        raise InputError(f"the sparse matrix is {adj_t.size(0)} x {adj_t.size(1)}, but x has {n} nodes: give n x n")
    edge_index, weight = to_edge_index(adj_t)
    return edge_index.flip(0), weight.to(dtype)
