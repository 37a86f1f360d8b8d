"""Every measure once more, as loops over its definition, and random graphs to compare on."""

import math

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor


@st.composite
def graphs(draw: st.DrawFn, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """A state and directed edges, with loops, repetitions, isolated nodes, zero rows and constant channels."""
    nodes, channels = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    pairs = draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=15))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    x = torch.randn(nodes, channels, generator=generator, dtype=torch.float64)
    if draw(st.booleans()):
        x[draw(st.integers(0, nodes - 1))] = 0
    if draw(st.booleans()):
        x[:, draw(st.integers(0, channels - 1))] = draw(st.sampled_from([0.0, 0.1, -3.0]))
    return x.to(dtype), torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()


def energy(x: np.ndarray, pairs: list[tuple[int, int]]) -> float:
    total = 0.0
    for i in range(len(x)):
        for source, target in pairs:
            if target == i:
                total += sum((a - b) ** 2 for a, b in zip(x[i], x[source], strict=True))
    return total / len(x)


def cosine_distance(a: np.ndarray, b: np.ndarray) -> float:
    if not a.any() and not b.any():
        return 0.0
    if not a.any() or not b.any():
        return 1.0
    return 1 - a @ b / math.sqrt(a @ a) / math.sqrt(b @ b)


def mad(x: np.ndarray, pairs: list[tuple[int, int]]) -> float:
    averages = []
    for i in range(len(x)):
        distances = [cosine_distance(x[i], x[j]) for j, target in pairs if target == i and j != i]
        if distances:
            averages.append(sum(distances) / len(distances))
    return sum(averages) / len(averages) if averages else 0.0


def singular_values(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.linalg.eigvalsh(x.T @ x).clip(min=0))


def effective_rank(x: np.ndarray) -> float:
    sigma = singular_values(x)
    if not sigma.any():
        return 0.0
    return math.exp(-sum(p * math.log(p) for p in sigma / sigma.sum() if p > 0))


def numerical_rank(x: np.ndarray) -> float:
    return (x**2).sum() / np.linalg.norm(x, 2) ** 2 if x.any() else 0.0


def rank_one_distance(x: np.ndarray) -> float:
    """By minimisation: alternating least squares for the nearest ``u v'``, from every column as a start."""
    if not x.any():
        return 0.0
    best = math.inf
    for start in np.eye(x.shape[1]):
        v = start + 1e-3
        for _ in range(500):
            u = x @ v / (v @ v)
            if not u.any():
                break
            v = x.T @ u / (u @ u)
        best = min(best, np.linalg.norm(x - np.outer(u, v)))
    return best / np.linalg.norm(x)


def channel_correlation(x: np.ndarray) -> float:
    varying = [column for column in x.T if np.ptp(column) > 1e-12]
    values = [
        abs(np.corrcoef(varying[k], varying[m])[0, 1]) for k in range(len(varying)) for m in range(k + 1, len(varying))
    ]
    return sum(values) / len(values) if values else 0.0
