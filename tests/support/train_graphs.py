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


def write_weighted(path, *, nodes=80, weights=True):
    """A graph whose edges tell the classes apart by their weights alone: 1 within a class, 0.001 between classes."""
    random = np.random.default_rng(0)
    y = np.arange(nodes) % 2
    x = random.standard_normal((nodes, 4)).astype(np.float32)
    x[:, 0] += y
    ends = random.integers(0, nodes, (2, 8 * nodes))
    edges = np.unique(np.concatenate([ends, ends[::-1]], 1), axis=1)
    fields = {"x": x, "edge_index": edges, "y": y}
    if weights:
        fields["edge_weight"] = np.where(y[edges[0]] == y[edges[1]], 1.0, 1e-3)
    np.savez(path, **fields)


def write_tables(folder, *, columns=("a", "b", "c"), edges="source,target\nn0,n1\nn1,n2\n", ids=range(12), labels=True):
    """A graph as edges.csv and nodes.csv: column ``a`` tells the class, the others are noise of their own."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    values = {name: random.standard_normal(12) for name in "abcd"}
    values["a"] = values["a"] * 0.1 + np.where(np.arange(12) % 2, 3.0, -3.0)
    rows = [",".join(["id", *columns, *["label"] * labels])]
    for i in ids:
        label = [("no", "yes")[i % 2]] * labels
        rows += [",".join([f"n{i}", *(f"{values[name][i]:.6f}" for name in columns), *label])]
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    return folder
