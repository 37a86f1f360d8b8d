"""The published protocol of splits, written out."""

import numpy as np
from torch import Tensor


def literal_split(labels: list[int], classes: int, development: int, seed: int) -> tuple[set[int], set[int], set[int]]:
    """The published protocol word by word, on Python sets."""
    developing = np.random.RandomState(seed).choice(len(labels), development, replace=False).tolist()
    fresh = np.random.RandomState(seed)
    train: set[int] = set()
    for c in range(classes):
        candidates = [node for node in developing if labels[node] == c]
        train |= set(fresh.choice(candidates, 20, replace=False).tolist())
    return train, set(developing) - train, set(range(len(labels))) - set(developing)


def as_sets(masks: tuple[Tensor, ...]) -> tuple[set[int], ...]:
    return tuple(set(mask.nonzero()[:, 0].tolist()) for mask in masks)
