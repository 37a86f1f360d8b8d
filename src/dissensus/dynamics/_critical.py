"""The attention at which the neutral opinion loses stability."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from dissensus.dynamics._convert import AnyGraph, as_matrix, as_option_matrix
from dissensus.dynamics._flow import Flow
from dissensus.dynamics._saturation import saturation
from dissensus.errors import InputError


def check_parameters(damping: float, self_reinforcement: float) -> None:
    """Refuse d <= 0 and alpha < 0, and what is not a finite number."""
    given: dict[str, Any] = {"damping": damping, "self_reinforcement": self_reinforcement}
    for name, value in given.items():
        if not isinstance(value, Real):
            raise InputError(f"{name} is {value!r}: give a number (System(...).attention takes one value per agent)")
    if not 0 < damping < math.inf:
        raise InputError(f"damping is {damping}: it must be positive (d > 0), or opinions grow without bound")
    if not 0 <= self_reinforcement < math.inf:
        raise InputError(f"self_reinforcement is {self_reinforcement}: it must not be negative (alpha >= 0)")


def critical_attention(
    communication: AnyGraph | None = None,
    options: Any = None,
    damping: float = 1.0,
    self_reinforcement: float = 1.0,
) -> float:
    r"""The attention :math:`u^*` at which the neutral opinion X = 0 loses stability.

    .. math::
        u^* = \frac{d}{\alpha - 1 + \lambda}, \qquad
        \lambda = \max \operatorname{Re}\,(\lambda_a + 1)(\lambda_o + 1)

    over the eigenvalues of :math:`A_a` and :math:`A_o`; :math:`\lambda = 4`, so :math:`u^* = d/(\alpha + 3)`, where
    both are right stochastic.

    The same graph and parameters give the same number as ``bifurcation(...).critical`` and ``System(...).attention``:
    in all of them diagonal entries count, unless they are dropped (there by ``self_loops=False``, here by
    ``as_matrix(graph, self_loops=False)``).

    Args:
        communication: :math:`A_a`, of any kind that :func:`as_matrix` takes, or nested lists; None stands for any
            right-stochastic matrix, and then so does None for ``options``.
        options: :math:`A_o`, [o, o]; or the number of uncorrelated options; None is one option (both have
            :math:`\lambda_o = 0`).
        damping: d > 0.
        self_reinforcement: :math:`\alpha \ge 0`.
    """
    check_parameters(damping, self_reinforcement)
    if communication is None:  # all right-stochastic matrices lead with the eigenvalue 1, as [[1]] does
        communication, options = [[1.0]], [[1.0]] if options is None else options
    a_a = as_matrix(communication)
    a_o = as_option_matrix(options)
    shape = a_a.shape[0], a_o.shape[0]
    return Flow(
        a_a,
        a_o.toarray(),
        damping=np.full(shape, damping),
        attention=np.ones(shape),
        self_reinforcement=np.full(shape, self_reinforcement),
        input=np.zeros(shape),
        saturation=saturation("tanh"),
    ).critical_attention()
