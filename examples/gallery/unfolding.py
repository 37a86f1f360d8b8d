"""A pitchfork and its unfolding by inputs.

In x' = -D x + u A S(x) + b, with D the degrees, agents reach a deadlock or a decision: at u = 1 consensus on either
option branches off. Which one is reached under small inputs depends on their average, weighted by the leading left
eigenvector (plain on undirected graphs); inputs whose average is zero leave the pitchfork as it is to first order, all
others break it into a connected branch that follows the input and a fold.

Reproduces: Gray, Franci, Srivastava and Leonard, "Multiagent decision-making dynamics inspired by honeybees", IEEE
Transactions on Control of Network Systems 5 (2018), the pitchfork at u = 1 and its unfolding.
"""

import sys
from pathlib import Path

import networkx as nx
import numpy as np

from dissensus import dynamics, report


def main(figure: str | None = None) -> None:
    """Check the unfolding for inputs of either average and of none, and draw it."""
    graph = nx.watts_strogatz_graph(12, 4, 0.3, seed=1)
    degrees = np.array([degree for _, degree in graph.degree])
    # No self-reinforcement in this model: the diagonal of A is zero and alpha is too.
    model = {"damping": degrees, "self_reinforcement": 0.0, "form": "opinions", "max_branches": 3}

    plain = dynamics.bifurcation(graph, **model)
    assert np.isclose(plain.critical, 1.0, rtol=1e-9)
    assert np.allclose(plain.direction, plain.direction[0])  # consensus
    assert np.allclose(plain.weights, 1.0 / 12, atol=1e-9)  # the plain average
    assert (plain.points[0].kind, plain.points[0].criticality) == ("pitchfork", "supercritical")

    pattern = np.random.default_rng(0).normal(size=12)
    pattern -= pattern.mean()
    diagrams = [plain.diagram("no input")]
    for average in (0.1, -0.1):
        found = dynamics.bifurcation(graph, input=0.1 * pattern + average, **model)
        assert np.all(np.sign(found["connected"].z[1:]) == np.sign(average))
        assert found["connected"].stable.all()
        assert found.folds[0].parameter > 1.0
        assert np.sign(found.folds[0].z) == -np.sign(average)
        diagrams.append(found.diagram(f"average input {average:g}"))

    # Without an average the symmetric state still loses stability at about u = 1, to both sides.
    balanced = dynamics.bifurcation(graph, input=0.1 * pattern, **model)
    above = [branch for branch in balanced.branches if branch.stable[branch.parameter > 1.5].any()]
    ends = [branch.z[branch.parameter.argmax()] for branch in above]
    assert min(ends) < -0.5
    assert max(ends) > 0.5
    if figure:
        report.draw_opinions([Path(figure)], diagrams)


if __name__ == "__main__":
    main(*sys.argv[1:2])
