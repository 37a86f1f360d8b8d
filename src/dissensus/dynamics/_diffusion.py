"""Diffusion with a polynomial reaction: the vector field of GRAND, GRAND++, GREAD and ACMP."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from dissensus.graph import Pattern
from dissensus.runtime import exporting
from dissensus.solve import Field, Pullback, Semilinear

Coefficient = Tensor | float


class ReactionDiffusion(Field):
    r"""States of n nodes under linear exchange, a polynomial reaction and a source.

    .. math::
        \dot X = A X + r_1 X + r_2 X^2 + r_3 X^3 + B

    with powers entry by entry. Diffusion at speed a on a right-stochastic matrix :math:`\hat A` is :math:`A = a \hat
    A`, :math:`r_1 = -a`. With the cotangent G of the value, that of the state is

    .. math::
        A^\top G + (r_1 + 2 r_2 X + 3 r_3 X^2) \odot G

    and those of the parameters are :math:`\langle G_i, X_j \rangle` for every entry (i, j) of A, :math:`\sum G \odot
    X^k` for :math:`r_k`, and G for B.

    Args:
        pattern: where A has entries, n x n.
        values: its entries, [entries]; any sign.
        source: B, [n, channels]; None for none.
        linear: :math:`r_1`, a number, or a tensor that broadcasts to [n, channels].
        quadratic: :math:`r_2`, the same.
        cubic: :math:`r_3`, the same.

    The parameters with gradients are those of ``values, source, linear, quadratic, cubic`` that are tensors, in this
    order.
    """

    def __init__(
        self,
        pattern: Pattern,
        values: Tensor,
        source: Tensor | None = None,
        *,
        linear: Coefficient,
        quadratic: Coefficient = 0.0,
        cubic: Coefficient = 0.0,
    ) -> None:
        self._given = (values, source, linear, quadratic, cubic)
        self.parameters = tuple(p for p in self._given if isinstance(p, Tensor))
        self.pattern = pattern
        self.source = None if source is None else source.detach()
        self.linear, self.quadratic, self.cubic = (_plain(c) for c in (linear, quadratic, cubic))
        self.exchange = values.detach()
        if isinstance(self.linear, float) and pattern.has_diagonal:
            # A + r_1 I: where the whole diagonal is stored, the linear term costs nothing.
            self.exchange = self.exchange.index_add(
                0, pattern.diagonal, self.exchange.new_full((pattern.shape[0],), self.linear)
            )
            self.linear = 0.0
        self.exchange_t = pattern.transposed(self.exchange)
        self.euler_limit = math.inf
        if not exporting():
            decay = -float(torch.as_tensor(linear).detach().min())
            self.euler_limit = 1.0 / decay if decay > 0.0 else math.inf

    @property
    def semilinear(self) -> Semilinear:
        """The source apart."""
        source = self._given[1]
        if self.source is None or not isinstance(source, Tensor):
            return super().semilinear
        index = 1 if source.requires_grad else None
        return Semilinear(self.unforced, self.unforced_vjp, drive=self.source, index=index)

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        value = self.unforced(t, x, out)
        return value if self.source is None else value.add_(self.source)

    def unforced(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The field without its source."""
        value = self.pattern.product(self.exchange, x, out=out)
        _add(value, self.linear, x)
        if not _is_zero(self.quadratic) or not _is_zero(self.cubic):
            square = x * x
            _add(value, self.quadratic, square)
            _add(value, self.cubic, square.mul_(x))
        return value

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        value, pull = self.unforced_vjp(t, x, out)

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            source = self._given[1]
            if grads and isinstance(source, Tensor) and source.requires_grad:
                grads[1].add_(g)
            return pull(g, grads, out)

        return value if self.source is None else value.add_(self.source), pullback

    def unforced_vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        """:meth:`unforced` and its pullback."""

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            if grads:
                self._accumulate(grads, g, x)
            by_values = grads[0] if grads and self._given[0].requires_grad else None
            by_x = self.pattern.product_vjp(self.exchange_t, x, g, by_values, out=out)
            _add(by_x, self.linear, g)
            if not _is_zero(self.quadratic) or not _is_zero(self.cubic):
                weighted = g * x
                _add(by_x, 2.0 * self.quadratic, weighted)
                _add(by_x, 3.0 * self.cubic, weighted.mul_(x))
            return by_x

        return self.unforced(t, x, out), pullback

    def _accumulate(self, grads: Sequence[Tensor], g: Tensor, x: Tensor) -> None:
        _, source, *coefficients = self._given
        total = iter(grads[1:])
        if source is not None:
            next(total)
        for power, coefficient in enumerate(coefficients, start=1):
            if isinstance(coefficient, Tensor):
                next(total).add_((g * x**power).sum_to_size(coefficient.shape))


def _plain(coefficient: Coefficient) -> Coefficient:
    """A single number as a float, so that the field adds it without a tensor operation."""
    if isinstance(coefficient, Tensor):
        return float(coefficient.detach()) if coefficient.numel() == 1 and not exporting() else coefficient.detach()
    return float(coefficient)


def _is_zero(coefficient: Coefficient) -> bool:
    return isinstance(coefficient, float) and coefficient == 0.0


def _add(total: Tensor, coefficient: Coefficient, x: Tensor) -> None:
    """``total += coefficient x``, in place."""
    if isinstance(coefficient, Tensor):
        total.addcmul_(coefficient, x)
    elif coefficient != 0.0:
        total.add_(x, alpha=coefficient)
