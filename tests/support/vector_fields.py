"""A vector field against its equation written out densely, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dissensus.graph import Pattern, build
from dissensus.solve import Field

N, C = 7, 3


def graph(self_loops: bool = True) -> tuple[Pattern, Tensor]:
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 3, 6, 2], [1, 2, 3, 4, 5, 6, 4, 1, 0, 6]])
    pattern = build(edges, N, self_loops=self_loops).pattern
    return pattern, pattern.row_softmax(torch.randn(pattern.entries, dtype=torch.float64)).requires_grad_()


def leaf(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


def check(make: Callable[..., Field], parameters: list[Tensor], x: Tensor, expected: Tensor) -> None:
    """Value with and without ``out``, and every derivative against finite differences."""
    field = make(*parameters)
    out = torch.empty_like(x)
    torch.testing.assert_close(field(0.0, x.detach()), expected.detach())
    field(0.0, x.detach(), out)
    torch.testing.assert_close(out, expected.detach())
    value, pullback = field.vjp(0.0, x.detach(), torch.empty_like(x))
    torch.testing.assert_close(value, expected.detach())
    g = torch.randn_like(x)
    grads = [torch.ones_like(p) for p in field.parameters]
    by_x = pullback(g, grads, None)
    literal = torch.autograd.grad(expected, [x, *parameters], g, allow_unused=True)
    torch.testing.assert_close(by_x, literal[0])
    torch.testing.assert_close(pullback(g, [torch.zeros_like(p) for p in field.parameters], out), literal[0])
    torch.testing.assert_close(pullback(g, (), None), literal[0])  # the state's alone
    for total, grad in zip(grads, literal[1:], strict=True):
        torch.testing.assert_close(total - 1.0, grad)  # added to what was there
    assert torch.autograd.gradcheck(lambda x, *p: make(*p).differentiable(0.0, x), (x, *parameters))


def dense(pattern: Pattern, values: Tensor) -> Tensor:
    return torch.zeros(N, N, dtype=values.dtype).index_put((pattern.row.long(), pattern.col.long()), values)
