"""Where opinions settle, and whether they stay there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
import torch

from dissensus import solve
from dissensus.dynamics._convert import AnyGraph
from dissensus.dynamics._flow import Array
from dissensus.dynamics._system import Parameters, System, as_state, system
from dissensus.errors import InputError


def equilibrium(
    graph: System | AnyGraph,
    x0: Any = None,
    *,
    tol: float = 1e-9,
    max_iter: int = 10_000,
    method: Literal["anderson", "picard"] = "anderson",
    memory: int = 6,
    strict: bool = True,
    **parameters: Unpack[Parameters],
) -> solve.Equilibrium:
    """The opinions at which nonlinear opinion dynamics rests, by iterating ``x = (S(..) + b)/d``.

    At or below the critical attention of non-negative matrices it is unique, whatever the start; above, it is the one
    that the iteration reaches from ``x0``. Differentiable, by the implicit function theorem, in those parameters (and
    the communication matrix, if dense) that are torch tensors.

    Args:
        graph: a :class:`System`, or a graph with parameters.
        x0: where the iteration starts, [n, o] or [n]; None is the neutral opinion.
        tol, max_iter, method, memory, strict: see :func:`dissensus.solve.fixed_point`. ``picard`` follows the flow, so
            it finds stable equilibria alone; ``anderson`` is faster and may end in an unstable one above u*.
        **parameters: see :class:`System`.

    Returns:
        :class:`dissensus.solve.Equilibrium`: state [n, o] in float64, residual, iterations, converged.
    """
    made = system(graph, **parameters)
    start = torch.zeros(made.shape, dtype=torch.float64) if x0 is None else as_state(x0, made.shape)
    return solve.equilibrium(
        made.field(), start, tol=tol, max_iter=max_iter, method=method, memory=memory, strict=strict
    )


@dataclass(frozen=True)
class Stability:
    """The linearised dynamics at a state.

    Attributes:
        eigenvalues: of the Jacobian, those of largest real part, descending, [count], complex.
        directions: their eigenvectors, [count, n, o], complex.
    """

    eigenvalues: Array
    directions: Array = field(repr=False)

    @property
    def stable(self) -> bool:
        """Every small deviation dies out: all real parts are negative."""
        return bool(self.eigenvalues[0].real < 0)


def stability(
    graph: System | AnyGraph, x: Any = None, *, count: int = 6, **parameters: Unpack[Parameters]
) -> Stability:
    """The leading eigenvalues of the Jacobian ``-D + diag(S') U M`` at a state.

    A small matrix is written out; of a large one the leading eigenvalues come from Arnoldi's iteration on products.

    Args:
        graph: a :class:`System`, or a graph with parameters.
        x: the state, [n, o] or [n], an equilibrium as a rule; None is the neutral opinion.
        count: number of eigenvalues.
        **parameters: see :class:`System`.
    """
    if count < 1:
        raise InputError(f"count is {count}: ask for at least one eigenvalue")
    made = system(graph, **parameters)
    state = np.zeros(made.shape) if x is None else as_state(x, made.shape).detach().numpy()
    flow = made.flow()
    values, vectors = flow.leading(flow.evaluate(state, 1.0).gain, count)
    return Stability(values, vectors.T.reshape(len(values), *made.shape))
