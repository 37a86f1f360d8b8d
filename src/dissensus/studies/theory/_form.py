"""The model itself: its general and its vectorised form, eigenvalues, Jacobian, bifurcation point, filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from dissensus import dynamics
from dissensus.dynamics import Opinion, critical_attention
from dissensus.graph import Pattern
from dissensus.solve import Field, equilibrium
from dissensus.studies.theory import _setting
from dissensus.studies.theory._check import Fact, rule
from dissensus.studies.theory._setting import Setting, largest, vec

_EXACT = 1e-9  # equal but for rounding


def _eigenvalues(matrix: Tensor) -> Tensor:
    """Real parts, descending."""
    return torch.linalg.eigvals(matrix).real.sort(descending=True).values


@rule(
    "general-model",
    where="Equation 7, erratum",
    statement="the sums over k != i and l != j have the matrix form A_a X A_o'",
    note="The double sum must run over x_kl; the printed x_kj never mixes options. The sums also leave out the "
    "agent and the option themselves, so the matrices have no diagonal here, unlike the learned "
    "right-stochastic ones.",
)
def general_model(setting: Setting) -> Iterator[Fact]:
    """Both indices of the double sum against the field on matrices without a diagonal."""
    a, o = (m - torch.diag(m.diagonal()) for m in (setting.communication, setting.options))
    x, u, alpha = setting.start, setting.attention, setting.self_reinforcement
    row, col = a.nonzero(as_tuple=True)
    field = Opinion(
        Pattern(row, col, (len(a), len(a))),
        a[row, col],
        o,
        setting.source,
        damping=setting.damping,
        attention=u,
        self_reinforcement=alpha,
    )
    value = field(0.0, x)
    first = alpha * x + torch.einsum("ik,kj->ij", a, x) + torch.einsum("jl,il->ij", o, x)
    for label, double, printed in (
        ("difference with x_kl", torch.einsum("ik,jl,kl->ij", a, o, x), False),
        ("difference with x_kj", torch.einsum("ik,jl,kj->ij", a, o, x), True),
    ):
        sums = -setting.damping * x + torch.tanh(u * (first + double)) + setting.source
        yield Fact(label, largest(sums - value), high=_EXACT, printed=printed)


@rule(
    "saturation",
    where="Section 3.2, Appendix E, erratum",
    statement="S(0) = 0, S'(0) = 1, S'''(0) != 0",
    note="The appendix on nonlinearities asks for S''(0) != 0 instead, which would exclude tanh, as any odd function.",
)
def saturation_slope(setting: Setting) -> Iterator[Fact]:
    """Derivatives of S at zero by automatic differentiation."""
    derivative: Callable[[Tensor], Tensor] = dynamics.saturation(setting.saturation)
    derivatives = []
    for _ in range(4):
        derivatives.append(float(derivative(torch.zeros((), dtype=torch.float64))))
        derivative = torch.func.grad(derivative)
    value, first, second, third = derivatives
    yield Fact("|S'''(0)|", abs(third), low=_EXACT)
    yield Fact("S(0)", value, -_EXACT, _EXACT)
    yield Fact("S'(0)", first, 1.0 - _EXACT, 1.0 + _EXACT)
    yield Fact("|S''(0)|", abs(second), low=_EXACT, printed=True)


@rule(
    "kronecker-form",
    where="Lemma 5.2",
    statement="vec form: the two graphs act as one, A~ = (A_o + I) (x) (A_a + I)",
    note="x' = -d x + tanh[u((alpha - 1) x + A~ x)] + b, where x = vec(X) stacks the columns of X. The product "
    "form costs one sparse and one dense product in place of four terms.",
)
def kronecker_form(setting: Setting) -> Iterator[Fact]:
    """The vectorised form and the four terms against the field that the networks integrate."""
    x, a, o = setting.start, setting.communication, setting.options
    u, alpha = setting.attention, setting.self_reinforcement
    value = setting.field()(0.0, x)
    flat = torch.tanh(u * ((alpha - 1.0) * vec(x) + _setting.effective(setting) @ vec(x)))
    yield Fact(
        "difference, vectorised form",
        largest(-setting.damping * vec(x) + flat + vec(setting.source) - vec(value)),
        high=_EXACT,
    )
    terms = torch.tanh(u * (alpha * x + a @ x + x @ o.T + a @ x @ o.T))
    yield Fact("difference, four terms", largest(-setting.damping * x + terms + setting.source - value), high=_EXACT)


@rule(
    "effective-rows",
    where="Section 5.1, erratum",
    statement="the effective matrix A~ is right stochastic",
    note="Its factors A_a and A_o are; its own rows sum to (1 + 1)(1 + 1) = 4, so that its infinity-norm is 4 as "
    "well, not below 4 as in the proof of Lemma A.3.",
)
def effective_rows(setting: Setting) -> Iterator[Fact]:
    """Row sums."""
    sums = _setting.effective(setting).sum(1)
    yield Fact("largest row sum of A~", float(sums.max()), 4.0 - _EXACT, 4.0 + _EXACT)
    yield Fact("|rows of A~ - 1|", largest(sums - 1.0), high=_EXACT, printed=True)
    for name, matrix in (("A_a", setting.communication), ("A_o", setting.options)):
        yield Fact(f"|rows of {name} - 1|", largest(matrix.sum(1) - 1.0), high=_EXACT)


@rule(
    "leading-eigenvalue",
    where="Lemma 5.3",
    statement="the leading eigenvalue of A~ is 4, and simple",
    note="Simple on a strongly connected graph; every component of a disconnected one has its own eigenvalue 4.",
)
def leading_eigenvalue(setting: Setting) -> Iterator[Fact]:
    """The two eigenvalues of largest real part."""
    first, second = _eigenvalues(_setting.effective(setting))[:2].tolist()
    yield Fact("leading eigenvalue", first, 4.0 - _EXACT, 4.0 + _EXACT)
    yield Fact("gap to the next", first - second, low=1e-6)


@rule(
    "critical-attention",
    where="Lemma 5.4",
    statement="X = 0 is stable up to u* = d/(alpha - 1 + lambda_max) = d/(alpha + 3)",
    note="Bisection on the leading eigenvalue of the Jacobian at X = 0, without use of the formula. Above u* the "
    "neutral opinion gives way to a consensus that is not neutral: with right-stochastic matrices the "
    "pitchfork alone does not separate the agents.",
)
def crossing(setting: Setting) -> Iterator[Fact]:
    """Bisection, and equilibria on both sides."""
    d, alpha, neutral = setting.damping, setting.self_reinforcement, torch.zeros_like(setting.start)
    # Refuses a setting in which X = 0 is stable for ever, where the bisection would not end.
    general = critical_attention(setting.communication, setting.options, d, alpha)

    def leading(u: float) -> float:
        return float(_eigenvalues(setting.jacobian(neutral, u))[0])

    low, high = 0.0, d
    while leading(high) < 0.0:
        low, high = high, 2.0 * high
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if leading(middle) < 0.0 else (low, middle)
    yield Fact("u* by bisection / (d/(alpha + 3))", high * (alpha + 3.0) / d, 1.0 - 1e-8, 1.0 + 1e-8)
    yield Fact("u* by bisection / from lambda_max", high / general, 1.0 - 1e-8, 1.0 + 1e-8)
    below, above = (
        equilibrium(
            setting.field(neutral, factor * high), setting.start + 3.0, tol=1e-9, method="picard", strict=False
        ).state
        for factor in (0.95, 1.05)
    )
    start = largest(setting.start + 3.0)
    yield Fact("|X| at 0.95 u* / at the start", largest(below) / start, high=1e-6)
    yield Fact("|X| at 1.05 u* / at the start", largest(above) / start, low=1e-2)
    yield Fact("its spread over the agents / |X|", largest(above.amax(0) - above.amin(0)) / largest(above))


def field_jacobian(field: Field, x: Tensor) -> Tensor:
    """The Jacobian of a field at x by its own derivative, one row a pullback, in the order of :func:`vec`."""
    _, pullback = field.vjp(0.0, x)
    unused = [torch.zeros_like(p) for p in field.parameters]
    rows = torch.eye(x.numel(), dtype=x.dtype).view(x.numel(), *x.T.shape).mT
    return torch.stack([vec(pullback(row.contiguous(), unused, None)) for row in rows])


@rule(
    "jacobian-rows",
    where="Lemmas 5.5 and A.3, erratum",
    statement="the Jacobian is -d I + (1 s') o u((alpha - 1) I + A~), s = sech^2(..)",
    note="s belongs to the ROWS, diag(s) u((alpha - 1) I + A~); 1 s' scales columns. The bounds that the proofs "
    "draw from it are not affected.",
)
def jacobian_rows(setting: Setting) -> Iterator[Fact]:
    """Rows and columns scaled, against the derivative that training uses."""
    x, u = setting.start, setting.attention
    true = field_jacobian(setting.field(), x)
    by_rows = setting.jacobian(x)
    slope = (u * (setting.mixing @ vec(x))).cosh() ** -2
    by_columns = slope[None] * (u * setting.mixing) - setting.damping * torch.eye(x.numel(), dtype=x.dtype)
    yield Fact("difference, rows scaled", largest(by_rows - true), high=_EXACT)
    yield Fact("difference, columns scaled", largest(by_columns - true), high=_EXACT, printed=True)


def filter_form(alpha: float, x: Tensor, mixed: Tensor) -> Tensor:
    """Sharpening and smoothing parts ``(alpha - 1)(x - A~ x) + alpha A~ x`` of the saturation's argument over u."""
    return (alpha - 1.0) * (x - mixed) + alpha * mixed


@rule(
    "filter-form",
    where="Section 5.3",
    statement="(alpha - 1) x + A~ x = (alpha - 1)(x - A~ x) + alpha A~ x",
    note="alpha > 1 adds a sharpening part, but the sum of both always favours the smoothest mode: a larger alpha "
    "flattens the response and does not turn it round.",
)
def filters(setting: Setting) -> Iterator[Fact]:
    """The identity, and the gains ``alpha - 1 + lambda`` over the spectrum of A~."""
    x, matrix = vec(setting.start), _setting.effective(setting)
    mixed = matrix @ x
    worst = max(largest(filter_form(a, x, mixed) - ((a - 1.0) * x + mixed)) for a in (0.0, 0.5, 1.0, 2.0, 5.0))
    yield Fact("difference over five values of alpha", worst, high=_EXACT)
    spectrum = _eigenvalues(matrix)
    for alpha in (0.0, 1.0, 5.0):
        gains = alpha - 1.0 + spectrum
        yield Fact(f"smallest gain / largest, alpha = {alpha:g}", float(gains[-1] / gains[0]))


@rule(
    "critical-directions",
    where="ours",
    statement="the sharper A_o, the more critical directions",
    note="With a uniform A_o every difference between options has lambda <= 2 and one direction is critical; with "
    "A_o = I there are as many as options. So with a near-uniform A_o smoothing over the graph is weak "
    "exactly where options, and classes, differ.",
)
def critical_directions(setting: Setting) -> Iterator[Fact]:
    """Eigenvalues of A~ for the two extreme option graphs."""
    o = len(setting.options)
    uniform = replace(setting, options=torch.full_like(setting.options, 1.0 / o))
    # Differences between options span what is orthogonal to their mean, which a uniform A_o maps to zero.
    differences = torch.eye(o, dtype=setting.start.dtype) - uniform.options
    on_differences = torch.kron(differences, torch.eye(setting.agents, dtype=setting.start.dtype))
    leading = float(_eigenvalues(on_differences @ _setting.effective(uniform) @ on_differences)[0])
    yield Fact("leading lambda over option differences, uniform A_o", leading, high=2.0 + _EXACT)
    sharp = replace(setting, options=torch.eye(o, dtype=setting.start.dtype))
    critical = (_eigenvalues(_setting.effective(sharp)) > 4.0 - 1e-6).sum()
    yield Fact("critical directions - options, A_o = I", float(critical) - o, 0.0, 0.0)
