from dataclasses import replace

import pytest

from dissensus.studies import theory


@pytest.mark.slow
def test_the_printed_gradient_bound_is_exceeded_only_where_attention_is_weak(medium):
    label = "|dx^M/dx^0| / printed bound"
    assert theory.evaluate("gradient-upper", [medium]).evidence[label] > 1.0
    strong_attention = replace(medium, damping=2.0)  # 4 u = 2
    assert theory.evaluate("gradient-upper", [strong_attention]).evidence[label] < 1.0


def test_the_printed_approximation_of_the_gradient_bound_gets_worse_with_time(medium):
    found = theory.evaluate("gradient-upper", [medium]).evidence
    u, dt, steps = medium.attention, 0.05 / medium.damping, 200
    assert found["printed bound 1 + 4 M u dt at T"] == pytest.approx(1 + 4 * steps * u * dt)
    ratio = (1 + 4 * steps * u * dt) / (1 + 4 * u * dt) ** (steps - 1)
    assert found["printed bound / (1 + 4 u dt)^(M - 1) at T"] == pytest.approx(ratio)
    assert 0 < found["time from which it is below half of that"] < steps * dt
