"""Nonlinear opinion dynamics, the vector field of BIMP."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dissensus.dynamics._critical import check_parameters
from dissensus.dynamics._saturation import saturation as saturation_named
from dissensus.graph import Pattern
from dissensus.kernels import dense_product, is_large
from dissensus.solve import Field, Pullback, Semilinear

# The parameters, where they are tensors.
_NAMES = ("values", "options", "source", "damping", "attention", "self_reinforcement")
# Saturations that write to given memory.
_WRITES = (torch.sigmoid, torch.tanh)


class Opinion(Field):
    r"""Opinions of n agents on o options under communication, option mixing, saturation and input.

    .. math::
        \dot X = -d X + S\big[u\,((\alpha - 1) X + (A_a + I)\, X\, (A_o + I)^\top)\big] + B

    which is the four-term form with :math:`\alpha X + A_a X + X A_o^\top + A_a X A_o^\top` in brackets, at the price of
    one sparse and one dense product.

    Args:
        pattern: where the communication matrix :math:`A_a` has entries, n x n.
        values: its entries, [entries]; any sign.
        options: the option matrix :math:`A_o`: [o, o], for states [n, o] or several side by side, [n, runs o]; or one a
            graph for a batch, [graphs, o, o]; or a number a for :math:`a I` (0, uncorrelated options; 1, the sharp
            limit).
        source: the input B, [n, o], or a number.
        damping: d, a number, or a tensor that broadcasts to [n, o].
        attention: u, a number, or a tensor that broadcasts to [n, o].
        self_reinforcement: :math:`\alpha`, a number, or a tensor that broadcasts to [n, o].
        saturation: S by name.
        sizes: number of nodes of each graph of a batch, where ``options`` has one matrix a graph.

    The parameters with gradients are those of ``values, options, source, damping, attention, self_reinforcement`` that
    are tensors, in this order.
    """

    def __init__(
        self,
        pattern: Pattern,
        values: Tensor,
        options: Tensor | float,
        source: Tensor | float,
        *,
        damping: Tensor | float,
        attention: Tensor | float,
        self_reinforcement: Tensor | float = 1.0,
        saturation: str = "tanh",
        sizes: Sequence[int] = (),
    ) -> None:
        check_parameters(_smallest(damping), _smallest(self_reinforcement))
        named = (values, options, source, damping, attention, self_reinforcement)
        self.parameters = tuple(p for p in named if isinstance(p, Tensor))
        self.pattern = pattern
        # A_a + I needs no sum of its own where the pattern has the whole diagonal.
        self.has_diagonal = pattern.has_diagonal
        self.communication = values.detach()
        if self.has_diagonal:
            self.communication = self.communication.index_add(0, pattern.diagonal, values.new_ones(pattern.shape[0]))
        self.communication_t = pattern.transposed(self.communication)
        self.damping = _detached(damping)
        self.saturation = saturation_named(saturation, values.dtype, values.device)
        if self.saturation.inner != 1.0 and isinstance(source, Tensor) and source.dtype != torch.float32:
            self.saturation = saturation_named(saturation, source.dtype, source.device)
        # u is folded into the mixing matrix where it is one number; per-agent attention multiplies afterwards.
        self.attention = _detached(attention)
        self.folded = self.saturation.inner * (self.attention if isinstance(self.attention, float) else 1.0)
        self.mixing = _Mixing(_detached(options), self.folded, tuple(sizes))
        self.own = (_detached(self_reinforcement) - 1.0) * self.folded
        self.source = _detached(source) + self.saturation.shift
        self.euler_limit = 1.0 / float(torch.as_tensor(self.damping).max())
        self._given = named
        learned = (name for name, p in zip(_NAMES, named, strict=True) if isinstance(p, Tensor))
        self._place = {
            name: i for i, (name, p) in enumerate(zip(learned, self.parameters, strict=True)) if p.requires_grad
        }

    @property
    def semilinear(self) -> Semilinear:
        """Damping and input apart, where the damping is one number and the input a tensor or zero."""
        drive = self.source if isinstance(self.source, Tensor) else None
        if isinstance(self.damping, Tensor) or (drive is None and self.source != 0.0):
            return super().semilinear
        return Semilinear(
            self.saturated,
            self.saturated_vjp,
            gain=self.saturation.outer,
            decay=self.damping,
            drive=drive,
            index=self._place.get("source"),
            # A pullback holds input, mixed input and value of a stage.
            pullback_states=3.5,
        )

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        k = self.saturated(t, x, out)
        return self._value(x, k, k)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        k, pull = self.saturated_vjp(t, x, gain=self.saturation.outer)

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            if grads:
                self._add_affine(grads, g, x)
            by_x = pull(g, grads, out)
            if isinstance(self.damping, Tensor):
                return by_x.addcmul_(self.damping, g, value=-1.0)
            return by_x.add_(g, alpha=-self.damping)

        return self._value(x, k, torch.empty_like(x) if out is None else out), pullback

    def saturated(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The saturation's kernel K of its argument: all of the field but its affine terms."""
        # A small product of float32 makes a new tensor anyway.
        z = self._argument(x, self.mixing.apply(x), out if is_large(x) or x.dtype == torch.float64 else None)
        if isinstance(self.attention, Tensor):
            z.mul_(self.attention)
        return self._kernel(z, z if out is None else out)

    def saturated_vjp(
        self, t: float, x: Tensor, out: Tensor | None = None, *, gain: float = 1.0
    ) -> tuple[Tensor, Pullback]:
        """K, and the pullback of ``gain K``, which holds on to x and K."""
        attention = self.attention if isinstance(self.attention, Tensor) else None
        y = self.mixing.apply(x)
        k = torch.empty_like(x) if out is None else out
        keeps_argument = attention is not None or self.saturation.keeps_argument
        given = self._argument(x, y, k if is_large(x) and not keeps_argument else None)
        argument = given if attention is None else given * attention
        z = given if keeps_argument else None
        self._kernel(argument, k)

        def pullback(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            by_x = torch.empty_like(x) if out is None else out
            # h = g K'(u z)
            argument = z if z is None or attention is None else z * attention
            h = self.saturation.pull(g, k, argument, torch.empty_like(x))
            scaled = h if attention is None else h * attention
            # q = gain (A_a + I)' h,  x' = q (A_o + I) + gain (alpha - 1) h
            by_values, by_options = self._of("values", grads), self._of("options", grads)
            add = None if self.has_diagonal else scaled
            place = by_x if is_large(x) else None
            q = self.pattern.product_vjp(self.communication_t, y, scaled, by_values, add=add, scale=gain, out=place)
            if by_options is not None:
                self.mixing.add_gradient(x, q, by_options)
            if grads:
                self._add_coefficients(grads, x, h, scaled, z, gain)
            self.mixing.apply_transposed(q, by_x)
            self._add_own(by_x, scaled, gain)
            return by_x

        return k, pullback

    def _argument(self, x: Tensor, y: Tensor, out: Tensor | None = None) -> Tensor:
        """What K is of, but for the attention of single agents, from the state x and the mixed state y."""
        # y = X (A_o + I)',  z = y + A_a y + (alpha - 1) X, both with the folded factor
        z = self.pattern.product(self.communication, y, add=None if self.has_diagonal else y, out=out)
        self._add_own(z, x)
        return z

    def _add_own(self, part: Tensor, x: Tensor, scale: float = 1.0) -> None:
        # scale (alpha - 1) X, with the folded factor
        if isinstance(self.own, Tensor):
            part.addcmul_(self.own, x, value=scale)
        elif self.own:
            part.add_(x, alpha=scale * self.own)

    def _kernel(self, z: Tensor, out: Tensor) -> Tensor:
        if self.saturation.kernel in _WRITES:
            return self.saturation.kernel(z, out=out)
        k = self.saturation.kernel(z)
        return k if k is out else out.copy_(k)

    def _value(self, x: Tensor, k: Tensor, out: Tensor) -> Tensor:
        # -d X + outer K + (B + shift)
        if isinstance(self.source, Tensor):
            value = torch.add(self.source, k, alpha=self.saturation.outer, out=out)
        else:
            value = torch.mul(k, self.saturation.outer, out=out).add_(self.source)
        if isinstance(self.damping, Tensor):
            return value.addcmul_(self.damping, x, value=-1.0)
        return value.add_(x, alpha=-self.damping)

    def _of(self, name: str, grads: Sequence[Tensor]) -> Tensor | None:
        """Where a parameter's gradient is summed; None if it needs none."""
        place = self._place.get(name)
        return grads[place] if grads and place is not None else None

    def _add_affine(self, grads: Sequence[Tensor], g: Tensor, x: Tensor) -> None:
        """Adds the gradients of input and damping."""
        if (by_source := self._of("source", grads)) is not None:
            by_source.add_(g if by_source.shape == g.shape else g.sum_to_size(by_source.shape))
        if (by_damping := self._of("damping", grads)) is not None:
            by_damping.sub_((g * x).sum_to_size(by_damping.shape))

    def _add_coefficients(
        self, grads: Sequence[Tensor], x: Tensor, h: Tensor, scaled: Tensor, z: Tensor | None, gain: float
    ) -> None:
        """Adds the gradients of attention and self-reinforcement."""
        if (by_alpha := self._of("self_reinforcement", grads)) is not None:
            by_alpha.add_((scaled * x).sum_to_size(by_alpha.shape), alpha=gain * self.folded)
        if (by_attention := self._of("attention", grads)) is not None:
            assert z is not None
            by_attention.add_((h * z).sum_to_size(by_attention.shape), alpha=gain)


class _Mixing:
    """``X -> factor X (A_o + I)'`` for one option matrix, one a graph, or a multiple of the identity."""

    def __init__(self, options: Tensor | float, factor: float, sizes: tuple[int, ...]) -> None:
        self.options, self.factor, self.sizes = options, factor, sizes
        if isinstance(options, Tensor):
            identity = torch.eye(options.shape[-1], dtype=options.dtype, device=options.device)
            self.forward = ((options + identity) * factor).mT.contiguous()  # factor (A_o + I)'
            self.backward = self.forward.mT.contiguous()

    def apply(self, x: Tensor) -> Tensor:
        if not isinstance(self.options, Tensor):
            return x * ((self.options + 1.0) * self.factor)
        return _by_graph(x, self.forward, self.sizes)

    def apply_transposed(self, q: Tensor, out: Tensor) -> Tensor:
        if not isinstance(self.options, Tensor):
            return torch.mul(q, (self.options + 1.0) * self.factor, out=out)
        return _by_graph(q, self.backward, self.sizes, out)

    def add_gradient(self, x: Tensor, q: Tensor, total: Tensor) -> None:
        # d/dA_o of <q, X (A_o + I)'> is q' X
        if not self.sizes:
            q, x = (state.reshape(-1, len(total)) for state in (q, x))
            total.addmm_(q.t(), x, alpha=self.factor)
            return
        for i, (qs, xs) in enumerate(zip(q.split(self.sizes), x.split(self.sizes), strict=True)):
            total[i].addmm_(qs.t(), xs, alpha=self.factor)


def _by_graph(x: Tensor, matrix: Tensor, sizes: tuple[int, ...], out: Tensor | None = None) -> Tensor:
    if not sizes:
        states = None if out is None else out.view(-1, len(matrix))
        return dense_product(x.reshape(-1, len(matrix)), matrix, states).view_as(x)
    out = torch.empty_like(x) if out is None else out
    for i, (part, target) in enumerate(zip(x.split(sizes), out.split(sizes), strict=True)):
        dense_product(part, matrix[i], target)
    return out


def _detached(value: Tensor | float) -> Tensor | float:
    return value.detach() if isinstance(value, Tensor) else float(value)


def _smallest(value: Tensor | float) -> float:
    return float(value.detach().min()) if isinstance(value, Tensor) else float(value)
