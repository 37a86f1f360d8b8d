"""Hysteresis over the input.

On a regular graph with equal inputs, consensus obeys one equation, d y = S(u m y) + s. Below u* = d / m opinions follow
the input s; above it they jump, on the way up at s = +c and on the way down at s = -c, with c = S(u m y) - d y at
S'(u m y) = d / (u m): the cusp of the unfolded pitchfork. Polarisation of this kind is hard to undo.

Reproduces: the hysteresis of the unfolded pitchfork in Golubitsky and Schaeffer, "Singularities and groups in
bifurcation theory" (1985), and the irreversible tipping that Leonard, Lipsitz, Bizyaeva, Franci and Lelkes find with it
in "The nonlinear feedback dynamics of asymmetric political polarization", PNAS 118 (2021).
"""

import sys

import networkx as nx
import numpy as np

from dissensus import dynamics

GRAPH, DEGREE, ALPHA = nx.random_regular_graph(4, 14, seed=0), 4, 0.5


def main(figure: str | None = None) -> None:
    """Check the width of the loop at several attentions, and draw the loop."""
    m = ALPHA + DEGREE
    for ratio in (0.9, 1.2, 1.5):
        u = ratio / m
        found = dynamics.hysteresis(GRAPH, u=u, self_reinforcement=ALPHA, s_max=0.8, steps=41)
        if ratio < 1.0:
            assert found.width == 0.0
            assert np.allclose(found.up, found.down, atol=1e-7)
            continue
        y = np.arccosh(np.sqrt(u * m)) / (u * m)
        c = np.tanh(u * m * y) - y
        assert np.allclose(sorted(point.parameter for point in found.folds), [-c, c], atol=1e-9)
        assert np.isclose(found.width, 2.0 * c, atol=1e-9)
        assert np.array_equal(found.up > 0, found.strength > c)
        assert np.array_equal(found.down < 0, found.strength < -c)
    if figure:
        found.plot(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
