"""Small graphs to train on."""

import numpy as np


def write_graph(path, *, nodes=60, features=5, seed=0, labels=True):
    """A graph of two blocks whose features tell the classes apart, as .npz; class names are words."""
    random = np.random.default_rng(seed)
    y = np.arange(nodes) % 2
    x = random.standard_normal((nodes, features)).astype(np.float32) * 0.5
    x[:, 0] += 2 * y
    ends = random.integers(0, nodes, (2, 6 * nodes))
    edges = ends[:, y[ends[0]] == y[ends[1]]]
    edges = np.concatenate([edges, edges[::-1]], 1)
    fields = {"x": x, "edge_index": edges}
    if labels:
        fields["y"] = np.array(["no", "yes"])[y]
    np.savez(path, **fields)
    return y
