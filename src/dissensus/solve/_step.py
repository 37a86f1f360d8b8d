"""One step of a Runge-Kutta method and its vector-Jacobian product, as functions of tensors without state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dissensus.kernels import linear_combination
from dissensus.solve._field import Field, Pullback, Semilinear
from dissensus.solve._tableau import Combination, Tableau, Weights


class Evaluation(NamedTuple):
    """The value of a stage, and its pullback if requested."""

    value: Tensor
    pullback: Pullback | None


class Workspace(NamedTuple):
    """Buffers for steps without pullbacks: ``stages`` for the values of all stages, ``state`` for the input of one."""

    stages: Tensor
    state: Tensor

    @staticmethod
    def like(x: Tensor, tableau: Tableau) -> Workspace:
        return Workspace(_new_stages(x, tableau), torch.empty_like(x))


class Step(NamedTuple):
    """A step, accepted or not.

    Attributes:
        new: the state at its end.
        pullbacks: the pullbacks of its stages; empty if not requested.
        terms: the drive (if any), the state at its start and the value of the first stage, for :func:`combine`.
        stages: the values of the stages, [stages, *state]; adaptive methods have one more, for the value at ``new``.
    """

    new: Tensor
    pullbacks: tuple[Pullback, ...]
    terms: tuple[Tensor, ...]
    stages: Tensor


def semilinear_form(field: Field, x: Tensor) -> Semilinear:
    """The field in semilinear form.

    The solver needs a drive of the state's shape. If the field's drive has another one (because it broadcasts), the
    whole field counts as the nonlinear part.
    """
    form = field.semilinear
    return form if form.drive is None or form.drive.shape == x.shape else Semilinear(field, field.vjp)


def evaluate_stage(form: Semilinear, t: float, x: Tensor, out: Tensor, keep: bool) -> Evaluation:
    """The value of g(t, x), written to ``out``, with its pullback if ``keep``."""
    if keep:
        return Evaluation(*form.vjp(t, x, out))
    return Evaluation(form.value(t, x, out), None)


def take_step(
    form: Semilinear,
    tableau: Tableau,
    t: float,
    h: float,
    x: Tensor,
    *,
    first: Evaluation | None = None,
    keep: bool = False,
    workspace: Workspace | None = None,
) -> Step:
    """A step of size h from the state x at time t.

    Args:
        first: the first stage, if the previous step has already evaluated it as its last.
        keep: keep the pullbacks of the stages. They may refer to the inputs and values of the stages, so these are
            newly allocated instead of written to the workspace.
        workspace: buffers to reuse, or None.
    """
    stages = _new_stages(x, tableau) if keep or workspace is None else workspace.stages
    rows = Weights.of(tableau, h, form.gain, form.decay).stages
    value = stages[0] if first is None else first.value
    terms = (x, value) if form.drive is None else (form.drive, x, value)
    pullbacks: list[Pullback | None] = []
    for i in range(tableau.stages):
        if i == 0 and first is not None:
            pullbacks.append(first.pullback)
            continue
        inputs = x
        if i > 0:
            # x_i = s_i x + d_i B + sum_j w_ij g(x_j)
            buffer = torch.empty_like(x) if keep or workspace is None else workspace.state
            inputs = combine(rows[i], terms, stages, buffer)
        pullbacks.append(evaluate_stage(form, t + tableau.c[i] * h, inputs, stages[i], keep).pullback)
    new = combine(rows[-1], terms, stages, torch.empty_like(x))
    return Step(new, tuple(p for p in pullbacks if p is not None) if keep else (), terms, stages)


def combine(row: Combination, terms: Sequence[Tensor], stages: Tensor, out: Tensor) -> Tensor:
    """``s x + d B + sum_j w_j g_j``, from the ``terms`` and ``stages`` of a :class:`Step`, written to ``out``."""
    without_drive = len(terms) == 2
    weights = (row.state, *row.values) if without_drive else (row.drive, row.state, *row.values)
    return linear_combination(weights, terms, stages[1:], out=out)


def step_vjp(
    form: Semilinear,
    tableau: Tableau,
    h: float,
    pullbacks: Sequence[Pullback],
    cotangent: Tensor,
    grads: Sequence[Tensor],
) -> Tensor:
    """The cotangent of the state before a step, from that of the state after it. Parameter gradients go to ``grads``.

    The inputs x_i of the stages and the new state x_n are ``x_i = s_i x + d_i B + sum_{j<i} w_ij g(x_j)``. With a prime
    for cotangents, from the last stage to the first ``g_i' = w_ni x_n' + sum_{m>i} w_mi x_m'`` and
    ``x_i' = pullback_i(g_i')``; and finally ``x' = s_n x_n' + sum_i s_i x_i'`` and ``B' = d_n x_n' + sum_i d_i x_i'``.
    """
    *rows, new = Weights.of(tableau, h, form.gain, form.decay).stages
    count = len(rows)
    rows.reverse()
    cotangent = cotangent.contiguous()
    # The cotangents of the stages' inputs are stored from the last stage to the first, as they are computed.
    inputs, g = cotangent.new_empty((count, *cotangent.shape)), torch.empty_like(cotangent)
    for j, pullback in enumerate(reversed(pullbacks)):
        i = count - 1 - j
        linear_combination((new.values[i], *(row.values[i] for row in rows[:j])), (cotangent,), inputs, out=g)
        pullback(g, grads, inputs[j])
    if form.index is not None and grads:
        weights = (new.drive, *(row.drive for row in rows))
        grads[form.index].add_(linear_combination(weights, (cotangent,), inputs, out=g))
    weights = (new.state, *(row.state for row in rows))
    return linear_combination(weights, (cotangent,), inputs, out=torch.empty_like(cotangent))


def _new_stages(x: Tensor, tableau: Tableau) -> Tensor:
    """An uninitialised tensor for the values of all stages and, if the method is adaptive, of the new state."""
    return x.new_empty((tableau.stages + tableau.adaptive, *x.shape))
