"""Signed networks: two camps, and what frustration costs.

Where the signs of a network split its agents into two camps, friends within and foes between, linear opinions end in
two opposite values of equal size. In x' = -D x + u A S(x), with D the absolute degrees, balanced networks leave
neutrality at u = 1; frustrated ones need a larger effort, 1 / (1 - lambda_1), with the smallest eigenvalue lambda_1 of
the normalised signed Laplacian.

Reproduces: Altafini, "Consensus problems on networks with antagonistic interactions", IEEE Transactions on Automatic
Control 58 (2013), bipartite consensus; Fontan and Altafini, "The role of frustration in collective decision-making
dynamical processes on multiagent signed networks", IEEE Transactions on Automatic Control 67 (2022), the threshold.
"""

import sys

import networkx as nx
import numpy as np

from dissensus import dynamics


def main(figure: str | None = None) -> None:
    """Check both results on a balanced network and on ever more frustrated ones, and draw the balanced one."""
    rng = np.random.default_rng(0)
    plain = nx.to_numpy_array(nx.connected_watts_strogatz_graph(20, 6, 0.3, seed=2))
    camps = np.where(np.arange(20) < 12, 1.0, -1.0)
    balanced = plain * np.outer(camps, camps)

    x = rng.uniform(-1.0, 1.0, 20)
    linear = dynamics.simulate(balanced, x, model="altafini", time=60.0)
    assert np.allclose(linear.final[:, 0], camps * (camps @ x) / 20, atol=1e-6)
    assert linear.summary().verdict == "polarised"

    degrees = np.abs(balanced).sum(1)
    thresholds = []
    for flipped in (0, 4, 12):
        signed = balanced.copy()
        pairs = np.argwhere(np.triu(signed))
        for i, k in rng.permutation(pairs)[:flipped]:
            signed[i, k] = signed[k, i] = -signed[i, k]
        laplacian = np.eye(20) - signed / np.sqrt(np.outer(degrees, degrees))
        expected = 1.0 / (1.0 - np.linalg.eigvalsh(laplacian)[0])
        found = dynamics.bifurcation(signed, damping=degrees, self_reinforcement=0.0, form="opinions", max_branches=3)
        assert np.isclose(found.critical, expected, rtol=1e-9)
        assert (found.points[0].kind, found.points[0].criticality) == ("pitchfork", "supercritical")
        thresholds.append(found.critical)
    assert np.isclose(thresholds[0], 1.0)
    assert thresholds[0] < thresholds[1] < thresholds[2]
    if figure:
        linear.plot(figure, graph=balanced)


if __name__ == "__main__":
    main(*sys.argv[1:2])
