"""The nonlinear opinion dynamics as loops over agents and options."""

import numpy as np


def literal(x, a, o, d, u, alpha, b, saturate=np.tanh):
    """The right-hand side, sum by sum, as the equation is written."""
    agents, options = x.shape
    f = np.empty_like(x)
    for i in range(agents):
        for j in range(options):
            drive = alpha[i, j] * x[i, j]
            for k in range(agents):
                if k != i:
                    drive += a[i, k] * x[k, j]
            for m in range(options):
                if m != j:
                    drive += o[j, m] * x[i, m]
            for k in range(agents):
                for m in range(options):
                    if k != i and m != j:
                        drive += a[i, k] * o[j, m] * x[k, m]
            f[i, j] = -d[i, j] * x[i, j] + saturate(u[i] * drive) + b[i, j]
    return f
