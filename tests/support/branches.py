"""What every branch of a bifurcation diagram satisfies."""

import numpy as np

from dissensus import dynamics


def residual(found: dynamics.Bifurcation, graph: object, **parameters: object) -> float:
    """The largest |f| over all points of all branches."""
    flow = dynamics.System(graph, **{"attention": 1.0, **parameters}).flow()
    return max(
        np.abs(flow.evaluate(x, u).f).max()
        for branch in found.branches
        for u, x in zip(branch.parameter, branch.states, strict=True)
    )
