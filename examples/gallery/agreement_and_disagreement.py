"""Agreement and disagreement pitchforks.

Cooperative agents (gamma > 0) leave indecision together, at u* = d / (alpha + gamma lambda_max); competitive ones
(gamma < 0) leave it in two camps, at u* = d / (alpha + gamma lambda_min). The opinions that appear are those of the
eigenvector of that eigenvalue.

Reproduces: Bizyaeva, Franci and Leonard, "Nonlinear opinion dynamics with tunable sensitivity", IEEE Transactions on
Automatic Control 68 (2023), agreement and disagreement bifurcations.
"""

import sys
from pathlib import Path

import networkx as nx
import numpy as np

from dissensus import dynamics, report

D, ALPHA = 1.0, 1.0


def main(figure: str | None = None) -> None:
    """Check the two pitchforks of a small network, and draw them."""
    graph = nx.to_numpy_array(nx.krackhardt_kite_graph())
    values, vectors = np.linalg.eigh(graph)
    diagrams = []
    for gamma, leading, word in ((0.5, -1, "agreement"), (-0.5, 0, "disagreement")):
        found = dynamics.bifurcation(gamma * graph, damping=D, self_reinforcement=ALPHA, form="sum", max_branches=3)
        assert np.isclose(found.critical, D / (ALPHA + gamma * values[leading]), rtol=1e-9)
        first = found.points[0]
        assert (first.kind, first.criticality) == ("pitchfork", "supercritical")
        assert np.isclose(first.parameter, found.critical, rtol=1e-8)

        v, opinions = vectors[:, leading], found["upper"].states[2][:, 0]
        assert abs(v @ opinions) > 0.999 * np.linalg.norm(opinions)
        same_sign = np.all(opinions > 0) or np.all(opinions < 0)
        assert same_sign == (word == "agreement")
        diagrams.append(found.diagram(f"{word}: gamma = {gamma:g}"))
    if figure:
        report.draw_opinions([Path(figure)], diagrams)


if __name__ == "__main__":
    main(*sys.argv[1:2])
