import math
from dataclasses import replace

import pytest
import torch

from dissensus.errors import InputError
from dissensus.studies import theory
from dissensus.studies.theory import _form, _reaction, _setting
from dissensus.studies.theory._check import CORRECTED, FAILS, HOLDS, Check, Fact
from dissensus.studies.theory._laplacian import consensus_weights, laplacian_of
from dissensus.studies.theory._setting import Setting
from theory_verdicts import EXPECTED


@pytest.mark.parametrize(("nodes", "seed"), [(10, 1), (16, 2)])
@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.slow
def test_verdicts_on_random_graphs(name, nodes, seed):
    found = theory.examine(name, nodes=nodes, seed=seed).checks[0]
    assert found.verdict == EXPECTED[name], found.evidence
    assert found.name == name
    assert found.statement
    assert found.where
    assert found.note
    assert all(math.isfinite(value) for value in found.evidence.values())


def test_every_check_has_an_expected_verdict():
    assert theory.names() == list(EXPECTED)


# What breaks a hypothesis. Two leaders: agents 0 and 1 listen to nobody else, so there is no consensus.
def ring(s: Setting) -> Setting:
    shift = torch.eye(s.agents, dtype=torch.float64).roll(1, 0)
    return replace(s, communication=0.5 * (shift + shift.T))


def two_leaders(s: Setting) -> Setting:
    communication = s.communication.clone()
    communication[:2] = torch.eye(s.agents, dtype=torch.float64)[:2]
    return replace(s, communication=communication)


def split(s: Setting) -> Setting:
    half = s.agents // 2
    communication = s.communication.clone()
    communication[:half, half:] = communication[half:, :half] = 0.0
    return replace(s, communication=communication / communication.sum(1, keepdim=True))


def strong(s: Setting) -> Setting:
    return replace(s, communication=1.5 * s.communication)


def uneven(s: Setting) -> Setting:
    return replace(s, communication=s.communication * torch.linspace(0.2, 2.0, s.agents, dtype=torch.float64)[:, None])


def rotating(s: Setting) -> Setting:
    shift = torch.eye(s.agents, dtype=torch.float64).roll(1, 0)
    return replace(s, communication=5.0 * (shift - shift.T), excess=3.0)


def balanced(s: Setting) -> Setting:
    return replace(s, source=s.source - consensus_weights(laplacian_of(s.communication)) @ s.source)


def excess(factor: float):
    return lambda s: replace(s, excess=factor)


def saturating(name: str):
    return lambda s: replace(s, saturation=name)


def neutral(s: Setting) -> Setting:
    return replace(s, start=torch.zeros_like(s.start))


BROKEN = [
    ("linear-aggregation", ring, FAILS),
    ("linear-aggregation", two_leaders, FAILS),
    ("consensus-value", lambda s: replace(s, communication=torch.full_like(s.communication, 0.1)), HOLDS),
    ("laplacian-dynamics", two_leaders, FAILS),
    ("laplacian-sign", two_leaders, FAILS),
    ("laplacian-with-input", balanced, FAILS),
    ("grand++", balanced, FAILS),
    ("gread-f-collapse", lambda s: replace(s, start=torch.ones_like(s.start)), HOLDS),
    ("gread-fb", lambda s: replace(s, diffusion=0.5), FAILS),
    ("general-model", lambda s: replace(s, options=torch.eye(3, dtype=torch.float64)), HOLDS),
    ("saturation", saturating("linear"), FAILS),
    ("saturation", saturating("sigmoid"), FAILS),
    ("saturation", saturating("gelu"), FAILS),
    ("saturation", saturating("arctan"), CORRECTED),
    ("effective-rows", strong, FAILS),
    ("leading-eigenvalue", strong, FAILS),
    ("leading-eigenvalue", split, FAILS),
    ("critical-attention", strong, FAILS),
    ("jacobian-rows", neutral, HOLDS),
    ("critical-directions", strong, FAILS),
    ("convergence", rotating, FAILS),
    ("consensus", excess(1.5), FAILS),
    ("dissensus", lambda s: replace(s, source=torch.ones_like(s.source)), FAILS),
    ("reduction", uneven, FAILS),
    ("first-order", strong, FAILS),
    ("linear-limits", saturating("linear"), FAILS),
    ("non-expansive", excess(1.2), FAILS),
    ("unique-equilibrium", lambda s: replace(s, excess=3.0, source=0.01 * s.source), FAILS),
    ("exponential-rate", excess(1.5), FAILS),
    ("drift", excess(0.9), FAILS),
    ("loss-gradient", lambda s: replace(s, saturation="linear", excess=2.0), FAILS),
    ("gradient-upper", excess(1.5), FAILS),
    ("gradient-lower", neutral, FAILS),
    # Where all degrees are equal, the root of the degrees is constant: then SGC and DGC do oversmooth.
    ("sgc-dgc", lambda s: replace(s, communication=torch.full_like(s.communication, 0.1)), HOLDS),
    ("metzler", rotating, FAILS),
    ("metzler", split, FAILS),
    ("step-limit", excess(1.2), FAILS),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "broken", "verdict"), BROKEN)
def test_a_broken_hypothesis_flips_the_verdict(medium, name, broken, verdict):
    found = theory.evaluate(name, [broken(medium)])
    assert found.verdict == verdict, found.evidence


@pytest.mark.parametrize("name", ["kronecker-form", "jacobian-rows", "gradient-upper"])
def test_factors_in_the_wrong_order_are_seen(monkeypatch, medium, name):
    def swapped(setting: Setting) -> torch.Tensor:
        agents, options = (m + torch.eye(len(m), dtype=m.dtype) for m in (setting.communication, setting.options))
        return torch.kron(agents, options)

    monkeypatch.setattr(_setting, "effective", swapped)
    assert theory.evaluate(name, [replace(medium)]).verdict == FAILS


def test_a_wrong_filter_is_seen(monkeypatch, medium):
    monkeypatch.setattr(_form, "filter_form", lambda alpha, x, mixed: (alpha - 1.0) * (x - mixed) + mixed)
    assert theory.evaluate("filter-form", [medium]).verdict == FAILS


def test_gread_f_does_not_diverge_from_positive_states(monkeypatch, medium):
    monkeypatch.setattr(
        _reaction, "_until", lambda field, x, size, longest, run=_reaction._until: run(field, -x, size, 9)
    )
    found = theory.evaluate("gread-f", [medium])
    assert found.verdict == FAILS
    assert found.evidence["largest |X|"] == pytest.approx(1.0, abs=0.05)


def test_strong_influence_moves_the_critical_attention_as_the_general_formula_says(medium):
    found = theory.evaluate("critical-attention", [strong(medium)]).evidence
    # lambda_max = (1.5 + 1)(1 + 1) = 5 at alpha = 1
    assert found["u* by bisection / (d/(alpha + 3))"] == pytest.approx(4.0 / 5.0)
    assert found["u* by bisection / from lambda_max"] == pytest.approx(1.0)


def test_without_input_the_opinion_above_the_bifurcation_is_a_consensus_that_is_not_neutral(medium):
    found = theory.evaluate("critical-attention", [medium]).evidence
    assert found["|X| at 1.05 u* / at the start"] > 0.01
    assert found["its spread over the agents / |X|"] < 1e-6


def test_of_several_graphs_the_one_nearest_to_failing_is_shown(medium):
    weak = replace(medium, source=0.01 * medium.source)
    both = theory.evaluate("dissensus", [medium, weak]).evidence
    alone = theory.evaluate("dissensus", [weak]).evidence
    assert both["relative energy at the equilibrium"] == alone["relative energy at the equilibrium"]
    fails = replace(medium, source=torch.ones_like(medium.source))
    assert theory.evaluate("dissensus", [medium, fails, medium]).verdict == FAILS


def test_facts():
    assert Fact("shown", 3.0).ok
    assert Fact("shown", math.inf).margin == math.inf
    assert not Fact("unknown", math.nan).ok
    assert Fact("unknown", math.nan, high=1.0).margin == -math.inf
    assert Fact("inside", 0.25, 0.0, 1.0).margin == 0.25
    assert Fact("outside", 1.5, high=1.0).margin == -0.5
    assert Fact("far outside", math.inf, high=1.0).margin == -math.inf


def test_verdict_follows_from_the_facts():
    def verdict(*facts: Fact) -> str:
        return Check("name", "statement", "where", "note", facts).verdict

    good, bad = Fact("a", 0.0, high=1.0), Fact("b", 2.0, high=1.0)
    assert verdict(good) == HOLDS
    assert verdict(good, replace(bad, printed=True)) == CORRECTED
    assert verdict(bad, replace(good, printed=True)) == FAILS


def test_a_graph_on_which_neutrality_is_always_stable_is_refused(medium):
    with pytest.raises(InputError, match="stable at every attention"):
        theory.evaluate("critical-attention", [replace(medium, communication=-3.0 * torch.eye(10).double())])
