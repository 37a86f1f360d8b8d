"""How near one evaluation of BIMP's field, forward and backward, is to the bare kernels that it cannot do without."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from common import SIZES, opinion, random_graph, say, together
from dissensus.graph import Pattern
from dissensus.runtime import training as training_settings
from dissensus.solve import Field, Pullback, Solution, solve

# graph -> channels, time of the integration, repeats in a round, rounds
_CASES = {"cora": (80, 12.2695, 20, 40), "computers": (128, 3.249, 3, 10), "arxiv": (128, 4.0, 1, 3)}


def run(quick: bool = False) -> dict[str, Any]:
    """Milliseconds of a field evaluation and of its kernels, and the solver's share of a whole integration."""
    with training_settings():
        rows = [_case(name, *case, quick) for name, case in _CASES.items()]
    return {
        "benchmark": "floor",
        "about": "one evaluation of BIMP's field and its pullback against its bare kernels, on graphs of three sizes",
        "rows": rows,
        "note": "Kernels: sparse product, dense product and saturation, then the transposes of the three and the "
        "gradients of both matrices. Each is timed by itself, over and over on the same few buffers, which a large "
        "cache keeps. 'ratio' compares with the kernels of a sparse CSR matrix (MKL's), 'fastest_ratio' with the sum "
        "that has the fastest sparse products of three: those, torch's weighted bags of rows, and the package's own. "
        "'chain_ratio' compares with the kernels one after the other, the package's products among them, each on what "
        "the one before it made. Solver overhead: the "
        "share of an integration, forward and backward, "
        "beyond what the evaluations of the field take in one that "
        "treats it as a whole, timed one by one; otherwise the field's affine terms are part of the solver's sums. As "
        "in training, the C library keeps freed memory.",
    }


def _case(name: str, channels: int, duration: float, repeats: int, rounds: int, quick: bool) -> dict[str, Any]:
    nodes, edges, *_ = SIZES[name]
    if quick:
        nodes, edges, channels, repeats, rounds = nodes // 64 + 100, edges // 64 + 100, 16, 1, 1
    say(f"  {name}'s size: {nodes} nodes, {edges} edges, {channels} channels")
    field, x = opinion(random_graph(nodes, 2 * edges), nodes, channels)
    kernels, products = _kernels(field.pattern, x), _products(field.pattern, x)
    g, out, by_x = torch.randn_like(x), torch.empty_like(x), torch.empty_like(x)
    grads = [torch.zeros_like(p) for p in field.parameters]

    def forward_and_backward() -> None:
        field.vjp(0.0, x, out)[1](g, grads, by_x)

    whole = {
        "field": lambda: field(0.0, x, out),
        "vjp_and_pullback": forward_and_backward,
        "chain": _chain(field.pattern, x, g),
    }
    measured = {key: 1e3 * s for key, s in together(kernels | products | whole, repeats, rounds).items()}
    forward = sum(measured[key] for key in ("dense_product", "sparse_product", "saturation"))
    floor = sum(measured[key] for key in kernels)
    fastest = floor
    for key in ("sparse_product", "sparse_transposed"):
        fastest += min(measured[key], measured[f"bags_{key}"], measured[f"own_{key}"]) - measured[key]
    return {
        "size": name,
        "channels": channels,
        "field_ms": measured["field"],
        "forward_kernels_ms": forward,
        "forward_ratio": measured["field"] / forward,
        "vjp_and_pullback_ms": measured["vjp_and_pullback"],
        "kernels_ms": floor,
        "ratio": measured["vjp_and_pullback"] / floor,
        "fastest_kernels_ms": fastest,
        "fastest_ratio": measured["vjp_and_pullback"] / fastest,
        "chain_ms": measured["chain"],
        "chain_ratio": measured["vjp_and_pullback"] / measured["chain"],
        **{f"{key}_ms": measured[key] for key in kernels | products},
        **_overhead(field, x, duration, rounds),
    }


def _kernels(pattern: Pattern, x: Tensor) -> dict[str, Callable[[], Any]]:
    """Every kernel by itself, on ready buffers."""
    values = torch.rand(pattern.entries)
    square = torch.randn(x.shape[1], x.shape[1])
    total, out, other = torch.zeros_like(square), torch.empty_like(x), torch.randn_like(x)
    matrix, transposed = pattern.matrix(values), pattern.T.matrix(values)
    sampled = pattern.matrix(torch.zeros(pattern.entries))
    return {
        "dense_product": lambda: torch.mm(x, square, out=out),
        "sparse_product": lambda: out.addmm_(matrix, x, beta=0.0),
        "saturation": lambda: torch.sigmoid(x, out=out),
        "saturation_gradient": lambda: torch.ops.aten.sigmoid_backward.grad_input(x, other, grad_input=out),
        "sparse_transposed": lambda: out.addmm_(transposed, x, beta=0.0),
        "dense_transposed": lambda: torch.mm(x, square, out=out),
        "sparse_gradient": lambda: torch.sparse.sampled_addmm(sampled, x, other.t(), beta=0.0, out=sampled),
        "dense_gradient": lambda: torch.addmm(total, x.t(), other, beta=0.0, out=total),
    }


def _products(pattern: Pattern, x: Tensor) -> dict[str, Callable[[], Any]]:
    """Other sparse products: torch's bags of rows, and the package's own."""
    values = torch.rand(pattern.entries)

    def bags(pattern: Pattern) -> Tensor:
        return torch.embedding_bag(x, pattern.col, pattern.rowptr, False, 0, False, values, True)[0]

    return {
        "bags_sparse_product": lambda: bags(pattern),
        "bags_sparse_transposed": lambda: bags(pattern.T),
        "own_sparse_product": lambda: pattern.product(values, x),
        "own_sparse_transposed": lambda: pattern.T.product(values, x),
    }


def _chain(pattern: Pattern, x: Tensor, g: Tensor) -> Callable[[], Any]:
    """The same kernels one after the other, each on what the one before it made."""
    values = torch.rand(pattern.entries)
    square = torch.randn(x.shape[1], x.shape[1])
    y, k, h, by_x = (torch.empty_like(x) for _ in range(4))
    total, sampled = torch.zeros_like(square), pattern.matrix(torch.zeros(pattern.entries))

    def run() -> None:
        torch.mm(x, square, out=y)
        torch.sigmoid(pattern.product(values, y), out=k)
        torch.ops.aten.sigmoid_backward.grad_input(g, k, grad_input=h)
        torch.sparse.sampled_addmm(sampled, h, y.t(), beta=0.0, out=sampled)
        q = pattern.T.product(values, h)
        torch.addmm(total, q.t(), x, beta=0.0, out=total)
        torch.mm(q, square, out=by_x)

    return run


class _Timed(Field):
    """A field that adds up the time spent in it."""

    def __init__(self, field: Field) -> None:
        self.field, self.parameters, self.seconds = field, field.parameters, 0.0
        self.euler_limit, self.pullback_states = field.euler_limit, field.pullback_states

    def _spend(self, function: Callable[..., Any], *args: Any) -> Any:
        begun = time.perf_counter()
        result = function(*args)
        self.seconds += time.perf_counter() - begun
        return result

    def __call__(self, t: float, x: Tensor, out: Tensor | None = None) -> Tensor:
        return self._spend(self.field, t, x, out)

    def vjp(self, t: float, x: Tensor, out: Tensor | None = None) -> tuple[Tensor, Pullback]:
        value, pullback = self._spend(self.field.vjp, t, x, out)

        def timed(g: Tensor, grads: Sequence[Tensor], out: Tensor | None) -> Tensor:
            return self._spend(pullback, g, grads, out)

        return value, timed


def _overhead(field: Field, x: Tensor, duration: float, rounds: int) -> dict[str, float]:
    """The best of some integrations, and the time of the field in one that treats it as a whole."""
    integration, inside = float("inf"), float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        stats = _forward_and_backward(field, x, duration).stats
        integration = min(integration, time.perf_counter() - begun)
        timed = _Timed(field)
        _forward_and_backward(timed, x, duration)
        inside = min(inside, timed.seconds)
    return {
        "integration_ms": 1e3 * integration,
        "in_field_ms": 1e3 * inside,
        "evaluations": stats.evaluations,
        "backward_evaluations": stats.backward_evaluations,
        "solver_overhead": 1.0 - inside / integration,
    }


def _forward_and_backward(field: Field, x: Tensor, duration: float) -> Solution:
    solution = solve(field, x, duration)
    solution.state.backward(torch.ones_like(x))
    return solution
