"""Multi-option belief systems on signed social networks.

Opinions on several topics, related to one another by a belief system A_o and exchanged over a network A_a, leave
neutrality together at u* = d / (alpha - 1 + max Re (1 + lambda_a)(1 + lambda_o)), along the Kronecker product of the
two leading eigenvectors: everyone holds the belief pattern v_o, or its opposite where v_a is negative.

Reproduces: Bizyaeva, Franci and Leonard, "Multi-topic belief formation through bifurcations over signed social
networks", IEEE Transactions on Automatic Control 70 (2025), indecision-breaking bifurcations of belief systems.
"""

import sys

import numpy as np

from dissensus import dynamics

# Three topics: the first two support each other, and both contradict the third.
BELIEFS = np.array([[0.0, 1.0, -1.0], [1.0, 0.0, -1.0], [-1.0, -1.0, 0.0]])
CAMPS = np.array([1, 1, 1, 1, -1, -1, -1])


def main(figure: str | None = None) -> None:
    """Check what friends believe, and what two hostile camps do, and draw the camps."""
    complete = 1.0 - np.eye(len(CAMPS))
    for name, graph, sides in (("friends", complete, np.ones(7)), ("camps", complete * np.outer(CAMPS, CAMPS), CAMPS)):
        model = {"options": BELIEFS, "damping": 1.0, "self_reinforcement": 1.0}
        found = dynamics.bifurcation(graph, max_branches=3, **model)
        assert np.isclose(found.critical, 1.0 / ((1.0 + 6.0) * (1.0 + 2.0)), rtol=1e-9)

        beliefs = np.array([1.0, 1.0, -1.0])
        expected = np.outer(sides, beliefs)  # v_a v_o'
        formed = found["upper"].states[-1]
        assert np.array_equal(np.sign(formed), np.sign(formed[0, 0]) * expected), name

        start = np.random.default_rng(3).uniform(-0.5, 0.5, (7, 3))
        run = dynamics.simulate(graph, start, attention=1.5 * found.critical, time=60.0, **model)
        final = run.final.numpy()
        assert np.array_equal(np.sign(final), np.sign(final[0, 0]) * expected), name
        assert run.summary().verdict == ("consensus" if name == "friends" else "polarised")
    if figure:
        run.plot(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
