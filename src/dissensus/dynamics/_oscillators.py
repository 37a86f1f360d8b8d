"""Coupled oscillators: the vector fields of GraphCON and of KuramotoGNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dissensus.graph import Pattern
from dissensus.solve import Field, Pullback, Semilinear

_Slopes = Callable[[Tensor], tuple[Sequence[Tensor], Tensor]]


class Oscillators(Field):
    r"""Damped oscillators driven by their neighbours: position Y and velocity V of n nodes.

    .. math::
        \dot Y = V, \qquad \dot V = S(A\,Y W^\top + Y R^\top + b) - \gamma Y - \alpha V

    with S the identity or relu. A ``lookahead`` h makes the first equation :math:`\dot Y = V + h \dot V`, so that one
    Euler step of size h is one step of the symplectic Euler method, which moves positions with the new velocity.

    With the cotangents :math:`G_Y, G_V` of the two values, :math:`G = G_V + h G_Y`, :math:`H = G \odot S'` and
    :math:`U = A^\top H`, those of the state are :math:`U W + H R - \gamma G` for Y and :math:`G_Y - \alpha G` for V;
    those of the parameters are :math:`\langle H_i, (Y W^\top)_j \rangle` for every entry (i, j) of A, :math:`U^\top Y`
    for W, :math:`H^\top Y` for R and the column sums of H for b.

    Args:
        pattern: where A has entries, n x n.
        values: its entries, [entries].
        weight: W, [channels, channels]; None for the identity.
        residual: R, [channels, channels]; None for zero.
        bias: b, [channels]; None for zero.
        rectify: S is relu.
        stiffness: :math:`\gamma`.
        damping: :math:`\alpha`.
        lookahead: h.

    The state is [2, n, channels]: Y, then V. The parameters with gradients are those of ``values, weight, residual,
    bias`` that are tensors, in this order.
    """

    def __init__(
        self,
        pattern: Pattern,
        values: Tensor,
        *,
        weight: Tensor | None = None,
        residual: Tensor | None = None,
        bias: Tensor | None = None,
        rectify: bool = False,
        stiffness: float = 1.0,
        damping: float = 1.0,
        lookahead: float = 0.0,
    ) -> None:
        self._given = (values, weight, residual, bias)
        self.parameters = tuple(p for p in self._given if p is not None)
        self.pattern, self.values = pattern, values.detach()
        self.values_t = pattern.transposed(self.values)
        self.weight, self.residual, self.bias = (None if p is None else p.detach() for p in (weight, residual, bias))
        self.rectify, self.lookahead = rectify, float(lookahead)
        self.stiffness, self.damping = float(stiffness), float(damping)

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        return self._evaluate(x, torch.empty_like(x) if out is None else out)[0]

    def _evaluate(self, x: Tensor, out: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """The value, the projected positions Y W', and where relu lets through."""
        y, v = x[0], x[1]
        projected = y if self.weight is None else y @ self.weight.t()
        force = self.pattern.product(self.values, projected, add=self.bias_of(y), out=out[1])
        passing = None
        if self.rectify:
            force.relu_()
            passing = force > 0
        force.add_(y, alpha=-self.stiffness).add_(v, alpha=-self.damping)
        torch.add(v, force, alpha=self.lookahead, out=out[0])
        return out, projected, passing

    def bias_of(self, y: Tensor) -> Tensor | None:
        """What is added to the coupling before S: Y R' + b, or None."""
        if self.residual is None:
            return None if self.bias is None else self.bias.expand_as(y)
        return y @ self.residual.t() if self.bias is None else torch.addmm(self.bias, y, self.residual.t())

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        value, projected, passing = self._evaluate(x, torch.empty_like(x) if out is None else out)

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            by_x = torch.empty_like(g) if out is None else out
            force = g[1].add(g[0], alpha=self.lookahead)
            h = force if passing is None else force * passing
            by_values = grads[0] if grads and self._given[0].requires_grad else None
            u = self.pattern.product_vjp(self.values_t, projected, h, by_values)
            if grads:
                self._accumulate(grads, x[0], h, u)
            torch.add(g[0], force, alpha=-self.damping, out=by_x[1])
            torch.add(u if self.weight is None else u @ self.weight, force, alpha=-self.stiffness, out=by_x[0])
            if self.residual is not None:
                by_x[0].addmm_(h, self.residual)
            return by_x

        return value, pullback

    def _accumulate(self, grads: Sequence[Tensor], y: Tensor, h: Tensor, u: Tensor) -> None:
        _, weight, residual, bias = self._given
        total = iter(grads[1:])
        if weight is not None:
            next(total).addmm_(u.t(), y)
        if residual is not None:
            next(total).addmm_(h.t(), y)
        if bias is not None:
            next(total).add_(h.sum(0))


class Kuramoto(Field):
    r"""Phases X of n nodes, each channel an oscillator with its own frequency :math:`\omega`, pulled by their
    neighbours.

    .. math::
        \dot X_i = \omega_i + K \sum_j a_{ij} \sin(X_j - X_i)
                 = \omega_i + K\,(\cos X_i\, P_i - \sin X_i\, Q_i), \qquad P = A \sin X,\; Q = A \cos X

    entry by entry, at the price of two sparse products. With ``mean_phase`` it is
    :math:`\omega + K R \sin(A X - X)`, :math:`R = \sqrt{P^2 + Q^2}`: the phase of the mean field replaced by the mean
    phase.

    With the cotangent G of the value and :math:`\bar P = K G \odot \cos X`, :math:`\bar Q = -K G \odot \sin X`, that of
    the state is

    .. math::
        \cos X \odot A^\top \bar P - \sin X \odot A^\top \bar Q - K G \odot (\sin X \odot P + \cos X \odot Q)

    and those of the parameters are :math:`\langle \bar P_i, \sin X_j \rangle + \langle \bar Q_i, \cos X_j \rangle` for
    every entry (i, j) of A, and G for :math:`\omega`. With ``mean_phase``, :math:`D = A X - X` and :math:`\bar D = K G
    \odot R \cos D`, it is :math:`\bar P = K G \odot \sin D \odot P / R`, :math:`\bar Q` likewise, and the state's last
    term is :math:`A^\top \bar D - \bar D`, with :math:`\langle \bar D_i, X_j \rangle` in the gradient of A.

    Args:
        pattern: where the right-stochastic matrix A has entries, n x n.
        values: its entries, [entries].
        frequency: :math:`\omega`, [n, channels].
        coupling: K.
        mean_phase: see above.

    The parameters with gradients are ``values, frequency``.
    """

    def __init__(
        self, pattern: Pattern, values: Tensor, frequency: Tensor, *, coupling: float, mean_phase: bool = False
    ) -> None:
        self.parameters = (values, frequency)
        self.pattern, self.values = pattern, values.detach()
        self.values_t = pattern.transposed(self.values)
        self.frequency, self.coupling, self.mean_phase = frequency.detach(), float(coupling), mean_phase
        self.pullback_states = 6.0 if mean_phase else 3.0

    @property
    def semilinear(self) -> Semilinear:
        """The pull of the neighbours, and the frequency apart."""
        return Semilinear(
            self.pull,
            self.pull_vjp,
            gain=self.coupling,
            drive=self.frequency,
            index=1 if self.parameters[1].requires_grad else None,
            pullback_states=self.pullback_states,
        )

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        pull = self.pull(t, x, out)
        return torch.add(self.frequency, pull, alpha=self.coupling, out=pull)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        pull, back = self.pull_vjp(t, x, out)

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            if grads and self.parameters[1].requires_grad:
                grads[1].add_(g)
            return back(g * self.coupling, grads, out)

        return torch.add(self.frequency, pull, alpha=self.coupling, out=pull), pullback

    def pull(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        """What the neighbours do: the field without coupling and frequency."""
        sine, cosine = torch.sin(x), torch.cos(x)
        return self._pull(x, sine, cosine, self._means(x, sine, cosine), out)

    def pull_vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        """:meth:`pull` and its pullback, which needs no gradient of the frequency."""
        sine, cosine = torch.sin(x), torch.cos(x)
        means = self._means(x, sine, cosine)
        pull = self._pull(x, sine, cosine, means, out)
        back = self._by_mean_phase(x, means) if self.mean_phase else self._by_phase(sine, cosine, means)
        values = self.parameters[0]
        passed = x if self.mean_phase else None  # without it the input is not held on to

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            by_means, own = back(g)
            by_values = grads[0] if grads and values.requires_grad else None
            by_x = self.pattern.product_vjp(self.values_t, sine, by_means[0], by_values, out=out).mul_(cosine)
            by_cosine = self.pattern.product_vjp(self.values_t, cosine, by_means[1], by_values, scale=-1.0)
            by_x.addcmul_(by_cosine, sine, value=-1.0)
            if passed is not None:
                by_x.add_(self.pattern.product_vjp(self.values_t, passed, by_means[2], by_values))
            return by_x.addcmul_(g, own, value=-1.0)

        return pull, pullback

    def _means(self, x: Tensor, sine: Tensor, cosine: Tensor) -> tuple[Tensor, ...]:
        # P = A sin X, Q = A cos X, and A X where ``mean_phase``
        parts = (sine, cosine, x) if self.mean_phase else (sine, cosine)
        return tuple(self.pattern.product(self.values, part) for part in parts)

    def _pull(self, x: Tensor, sine: Tensor, cosine: Tensor, means: Sequence[Tensor], out: Tensor | None) -> Tensor:
        if self.mean_phase:
            return torch.hypot(means[0], means[1], out=out).mul_((means[2] - x).sin_())
        return torch.mul(cosine, means[0], out=out).addcmul_(sine, means[1], value=-1.0)

    # These two take G to the cotangents of P, -Q and A X, and to the factor of G that the node's own phase takes away.

    @staticmethod
    def _by_phase(sine: Tensor, cosine: Tensor, means: Sequence[Tensor]) -> _Slopes:
        own = (sine * means[0]).addcmul_(cosine, means[1])

        def slopes(g: Tensor) -> tuple[Sequence[Tensor], Tensor]:
            return (g * cosine, g * sine), own

        return slopes

    @staticmethod
    def _by_mean_phase(x: Tensor, means: Sequence[Tensor]) -> _Slopes:
        p, q, mean = means

        def slopes(g: Tensor) -> tuple[Sequence[Tensor], Tensor]:
            radius, difference = torch.hypot(p, q), mean - x
            direction = torch.sin(difference).mul_(g).div_(radius.clamp_min(torch.finfo(x.dtype).tiny))
            own = torch.cos(difference).mul_(radius)
            return (direction * p, direction.mul_(q).neg_(), own * g), own

        return slopes
