"""Random graphs with everything that the statements assume, one attribute a hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dissensus import dynamics, measure
from dissensus.dynamics import Opinion
from dissensus.errors import InputError
from dissensus.graph import Pattern

_OPTIONS = 3
_LARGEST = 100  # the effective matrix is written out, with three options 300 x 300
# Edges beyond a spanning tree, as a share of the pairs: sparse, medium, dense.
_DENSITIES = (0.05, 0.15, 0.4)


@dataclass(frozen=True, eq=False)
class Setting:
    r"""One random graph and the hypotheses of the statements; ``dataclasses.replace`` breaks one of them.

    Attributes:
        communication: :math:`A_a`, [n, n], right stochastic with self-loops, symmetric pattern, connected.
        options: :math:`A_o`, [o, o], right stochastic with positive entries.
        start: X(0), [n, o].
        source: B, [n, o]; X(0), as in BIMP.
        damping: d.
        self_reinforcement: :math:`\alpha`.
        excess: the attention in units of :math:`u^* = d/(\alpha + 3)`.
        saturation: S by name.
        diffusion, reaction: the factors of GREAD-FB* (there called :math:`\alpha > \beta > 0`).
    """

    communication: Tensor
    options: Tensor
    start: Tensor
    source: Tensor
    damping: float = 0.5
    self_reinforcement: float = 1.0
    excess: float = 1.0
    saturation: str = "tanh"
    diffusion: float = 2.0
    reaction: float = 1.0

    @property
    def agents(self) -> int:
        """n"""
        return self.communication.shape[0]

    @property
    def attention(self) -> float:
        """u"""
        return self.excess * self.damping / (self.self_reinforcement + 3.0)

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges without self-loops, [2, edges]."""
        target, source = (self.communication != 0).fill_diagonal_(False).nonzero(as_tuple=True)
        return torch.stack([source, target])

    @cached_property
    def pattern(self) -> Pattern:
        """Where :attr:`communication` has entries."""
        row, col = self.communication.nonzero(as_tuple=True)
        return Pattern(row, col, (self.agents, self.agents))

    @cached_property
    def values(self) -> Tensor:
        """The entries of :attr:`communication`, in the order of :attr:`pattern`."""
        return self.communication[self.communication != 0]

    @cached_property
    def mixing(self) -> Tensor:
        r""":math:`(\alpha - 1) I + \tilde A`, [n o, n o]."""
        matrix = effective(self)
        return matrix + (self.self_reinforcement - 1.0) * torch.eye(len(matrix), dtype=matrix.dtype)

    def field(self, source: Tensor | None = None, attention: float | None = None) -> Opinion:
        """The dynamics of BIMP as the networks integrate them."""
        return Opinion(
            self.pattern,
            self.values,
            self.options,
            self.source if source is None else source,
            damping=self.damping,
            attention=self.attention if attention is None else attention,
            self_reinforcement=self.self_reinforcement,
            saturation=self.saturation,
        )

    def jacobian(self, x: Tensor, attention: float | None = None) -> Tensor:
        r"""The Jacobian at x of shape [n, o], written out in the order of :func:`vec`, [n o, n o].

        .. math:: J = -d I + \operatorname{diag}(S'(z))\, u\, ((\alpha - 1) I + \tilde A), \qquad
            z = u\, ((\alpha - 1) x + \tilde A x)
        """
        u = self.attention if attention is None else attention
        z = u * (self.mixing @ vec(x))
        jacobian = _slope(self.saturation, z)[:, None] * (u * self.mixing)
        jacobian.diagonal().sub_(self.damping)
        return jacobian

    def energy(self, x: Tensor) -> float:
        """The Dirichlet energy of a state [n, channels]."""
        return float(measure.dirichlet_energy(x, self.edge_index))

    def relative_energy(self, x: Tensor) -> float:
        """The Dirichlet energy over the squared norm."""
        return float(measure.dirichlet_energy(x, self.edge_index, relative=True))


def effective(setting: Setting) -> Tensor:
    r"""The effective adjacency matrix :math:`\tilde A = (A_o + I) \otimes (A_a + I)`, [n o, n o]."""
    by_option, by_agent = (m + torch.eye(len(m), dtype=m.dtype) for m in (setting.options, setting.communication))
    return torch.kron(by_option, by_agent)


def largest(x: Tensor) -> float:
    """The largest absolute entry."""
    return float(x.abs().max())


def vec(x: Tensor) -> Tensor:
    """The columns of x under each other: [n, o] -> [n o]."""
    return x.T.reshape(-1)


def _slope(saturation: str, z: Tensor) -> Tensor:
    function = dynamics.saturation(saturation)
    return (
        function.outer
        * function.inner
        * function.pull(torch.ones_like(z), function.kernel(z.clone()), z, torch.empty_like(z))
    )


def settings(nodes: int = 24, seed: int = 0) -> list[Setting]:
    """Three connected random graphs, sparse, medium and dense, with random weights, opinions and option graphs.

    Args:
        nodes: n, from 4 to 100.
        seed: of all randomness.
    """
    if not 4 <= nodes <= _LARGEST:
        raise InputError(f"nodes is {nodes}: give a number from 4 to {_LARGEST}, as the matrices are written out")
    if seed < 0:
        raise InputError(f"seed is {seed}: give a number from 0 on")
    rng = np.random.default_rng(seed)
    return [_draw(rng, nodes, density) for density in _DENSITIES]


def _draw(rng: np.random.Generator, nodes: int, density: float) -> Setting:
    adjacent = rng.random((nodes, nodes)) < density
    for node in range(1, nodes):
        adjacent[node, rng.integers(node)] = True
    adjacent |= adjacent.T | np.eye(nodes, dtype=bool)
    communication = adjacent * np.exp(rng.normal(size=(nodes, nodes)))
    options = np.exp(rng.normal(size=(_OPTIONS, _OPTIONS)))
    start = torch.from_numpy(rng.normal(size=(nodes, _OPTIONS)))
    return Setting(_stochastic(communication), _stochastic(options), start, start)


def _stochastic(weights: np.ndarray) -> Tensor:
    return torch.from_numpy(weights / weights.sum(axis=1, keepdims=True))
