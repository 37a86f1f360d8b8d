"""Cascades with attention feedback.

Each agent's attention grows with the opinions it hears, from below the critical attention to above it. Weak inputs are
rejected as disturbance; beyond a threshold, one informed agent makes the whole network form strong opinions, of the
sign of its input. An agent of higher centrality needs less input.

Reproduces: Bizyaeva, Sorochkin, Franci and Leonard, "Control of agreement and disagreement cascades with distributed
inputs", IEEE Conference on Decision and Control 2021, implicit thresholds and the role of agreement centrality.
"""

import sys

import networkx as nx
import numpy as np

from dissensus import dynamics

GRAPH = nx.krackhardt_kite_graph()
CRITICAL = dynamics.critical_attention(GRAPH)
FEEDBACK = dynamics.Feedback(low=0.8 * CRITICAL, high=2.0 * CRITICAL, threshold=0.3, time=5.0)


def respond(agent: int, strengths: np.ndarray, time: float = 200.0) -> dynamics.Simulation:
    """What inputs of these strengths to one agent bring about, from neutral opinions: one run for each."""
    inputs = np.zeros((len(strengths), len(GRAPH), 1))
    inputs[:, agent, 0] = strengths
    return dynamics.simulate(GRAPH, np.zeros_like(inputs), input=inputs, attention=FEEDBACK, time=time)


def main(figure: str | None = None) -> None:
    """Check thresholds, their order, and the sign of cascades, and draw one."""
    strengths = np.geomspace(0.01, 2.0, 40)
    centrality = nx.eigenvector_centrality_numpy(GRAPH)
    ranked = sorted(GRAPH, key=lambda agent: centrality[agent])
    thresholds = []
    for agent in (ranked[0], ranked[len(ranked) // 2], ranked[-1]):
        found = respond(agent, strengths)
        weakest = found.final.abs().amin((1, 2)).numpy()  # of the agent that is moved least
        cascade = weakest > 0.1
        assert not cascade[0]
        assert cascade[-1]
        first = int(cascade.argmax())
        assert cascade[first:].all()  # a threshold: none below it, all above
        assert weakest[first] > 2.0 * weakest[first - 1]  # and a jump, not a gradual change
        assert bool((found.final[first:] > 0).all())
        assert found.attention is not None
        assert bool((found.attention[-1, first:] > CRITICAL).all())
        thresholds.append(strengths[first])
    assert thresholds[0] > thresholds[1] >= thresholds[2]

    against = respond(ranked[-1], np.array([-2.0]))
    assert bool((against.final < 0).all())
    if figure:
        respond(ranked[-1], np.array([2.0]), time=60.0).run(0).plot(figure, graph=GRAPH)


if __name__ == "__main__":
    main(*sys.argv[1:2])
