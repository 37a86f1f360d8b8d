import numpy as np
import pytest
import torch

from dissensus import dynamics
from literal_opinions import literal


@pytest.mark.parametrize(("saturation", "function"), [("tanh", np.tanh), ("arctan", np.arctan)])
def test_field_is_the_equation_with_parameters_of_every_agent_and_option(saturation, function) -> None:
    rng = np.random.default_rng(0)
    a, o = rng.normal(size=(6, 6)), rng.normal(size=(3, 3))  # signed, not symmetric, with diagonals to be left out
    d, alpha = rng.uniform(0.5, 2.0, (6, 3)), rng.uniform(0.0, 2.0, (6, 3))
    u, b, x = rng.uniform(0.1, 1.0, 6), rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    expected = literal(x, a, o, d, u, alpha, b, function)
    system = dynamics.System(
        a, o, damping=d, attention=u, self_reinforcement=alpha, input=b, saturation=saturation, self_loops=False
    )
    assert np.allclose(system.field()(0.0, torch.from_numpy(x)).numpy(), expected, atol=1e-13)
    assert np.allclose(system.flow().evaluate(x, 1.0).f, expected, atol=1e-13)


def test_jacobian_is_the_derivative_of_the_literal_equation() -> None:
    rng = np.random.default_rng(2)
    a, o, x = rng.normal(size=(4, 4)), rng.normal(size=(2, 2)), rng.normal(size=(4, 2))
    d, alpha, u = rng.uniform(0.5, 2.0, (4, 2)), rng.uniform(0.0, 2.0, (4, 2)), rng.uniform(0.1, 1.0, 4)
    flow = dynamics.System(a, o, damping=d, attention=u, self_reinforcement=alpha, self_loops=False).flow()
    numeric = np.empty((8, 8))
    for column in range(8):
        e = np.zeros(8)
        e[column] = 1e-6
        e = e.reshape(4, 2)
        ahead, behind = (literal(x + s * e, a, o, d, u, alpha, 0 * x) for s in (1, -1))
        numeric[:, column] = ((ahead - behind) / 2e-6).ravel()
    value = flow.evaluate(x, 1.0)
    assert np.allclose(flow.jacobian(value), numeric, atol=1e-8)
    assert np.allclose(flow.sparse_jacobian(value).toarray(), numeric, atol=1e-8)
    v = rng.normal(size=(4, 2))
    assert np.allclose(flow.jacobian_product(value, v).ravel(), numeric @ v.ravel(), atol=1e-8)
