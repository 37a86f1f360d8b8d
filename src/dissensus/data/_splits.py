"""Splits into training, validation and test nodes: seeded random splits, and splits that come with a dataset."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from dissensus.errors import InputError

Masks = tuple[Tensor, Tensor, Tensor]
PER_CLASS = 20
DEVELOPMENT = 1500
RANDOM_SEEDS = tuple(range(1, 11))


class Splits(Protocol):
    """A family of splits, one for each seed."""

    @property
    def protocol(self) -> str:
        """Description of the protocol."""

    @property
    def defaults(self) -> tuple[int, ...]:
        """The seeds used by default."""

    def masks(self, y: Tensor, class_names: Sequence[str], seed: int) -> Masks:
        """Boolean masks ``[n]`` of training, validation and test nodes, which are disjoint and not empty."""

    def with_labels(self, per_class: int) -> Self:
        """The same family with ``per_class`` training nodes in each class."""


@dataclass(frozen=True)
class RandomSplits:
    """What random splits of the nodes of one graph share."""

    per_class: int = field(default=PER_CLASS, kw_only=True)
    defaults: ClassVar[tuple[int, ...]] = RANDOM_SEEDS

    def with_labels(self, per_class: int) -> Self:
        return replace(self, per_class=per_class)


@dataclass(frozen=True)
class BenchmarkSplits(RandomSplits):
    """The random protocol of the homophilic benchmarks.

    ``RandomState(seed)`` draws ``development`` nodes without replacement. From these, a new ``RandomState(seed)`` draws
    ``per_class`` (20) training nodes of each class, class by class. The other development nodes are for validation, and
    all remaining nodes for testing.
    """

    development: int = DEVELOPMENT

    @property
    def protocol(self) -> str:
        return f"random {self.per_class} per class of {self.development} development nodes"

    def masks(self, y: Tensor, class_names: Sequence[str], seed: int) -> Masks:
        labels = y.numpy()
        development = _random(seed).choice(len(labels), self.development, replace=False)
        random = _random(seed)
        train = []
        for label, name in enumerate(class_names):
            members = development[labels[development] == label]
            if len(members) < self.per_class:
                raise InputError(
                    f"split {seed} has only {len(members)} development nodes of class {name!r}, but training needs "
                    f"{self.per_class}: use another split seed, or fewer labels per class"
                )
            train.append(random.choice(members, self.per_class, replace=False))
        return _masks(np.arange(len(labels)), development, np.concatenate(train), len(labels))


@dataclass(frozen=True)
class ScaledSplits(RandomSplits):
    """The random protocol for all other graphs: that of the benchmarks, scaled to the number of labelled nodes.

    With L labelled nodes in C classes, a share ``f = min(1/2, max(1500, 40 C) / L)`` of them is the development set:
    ``RandomState(seed)`` draws ``ceil(f m)``, but at least 2, of the m nodes of each class. From these, a new
    ``RandomState(seed)`` draws ``per_class`` (20) training nodes, or half of them if that is fewer. The other
    development nodes are for validation, and the remaining labelled nodes for testing. So every class with at least 3
    labelled nodes is in all three masks.
    """

    @property
    def protocol(self) -> str:
        return f"random {self.per_class} per class of {DEVELOPMENT} development nodes, scaled to the labels"

    def masks(self, y: Tensor, class_names: Sequence[str], seed: int) -> Masks:
        labels = y.numpy()
        labelled = np.flatnonzero(labels >= 0)
        if not len(labelled):
            raise InputError(
                "the graph has no labels, so it cannot be split: add labels, or use the graph for prediction only"
            )
        share = min(0.5, max(DEVELOPMENT, 2 * PER_CLASS * len(class_names)) / len(labelled))
        random = _random(seed)
        development = []
        for label, name in enumerate(class_names):
            members = np.flatnonzero(labels == label)
            if len(members) < 3:
                raise InputError(
                    f"class {name!r} has only {len(members)} labelled nodes, but a random split needs 3: label more "
                    "nodes, drop or merge the class, or give train_mask, val_mask and test_mask"
                )
            development.append(random.choice(members, max(2, int(np.ceil(share * len(members)))), replace=False))
        random = _random(seed)
        train = [random.choice(part, min(self.per_class, len(part) // 2), replace=False) for part in development]
        return _masks(labelled, np.concatenate(development), np.concatenate(train), len(labels))


@dataclass(frozen=True, eq=False)
class FixedSplits:
    """Splits that come with the data: boolean masks ``[n, k]``, whose column ``seed`` is split ``seed``."""

    train: Tensor
    val: Tensor
    test: Tensor
    protocol: str = field(default="masks in file", kw_only=True)
    per_class: int | None = field(default=None, kw_only=True)

    @property
    def defaults(self) -> tuple[int, ...]:
        return tuple(range(self.train.size(1)))

    def with_labels(self, per_class: int) -> "FixedSplits":
        """Keep ``per_class`` training nodes of each class, drawn by ``RandomState(seed)``; the others are not used."""
        return replace(self, per_class=per_class, protocol=f"{self.protocol}, {per_class} labels per class")

    def masks(self, y: Tensor, class_names: Sequence[str], seed: int) -> Masks:
        if not 0 <= seed < self.train.size(1):
            last = self.train.size(1) - 1
            which = f"the fixed splits 0-{last}" if last else "one fixed split, 0"
            raise InputError(f"there is no split {seed}, only {which}: choose {f'from 0-{last}' if last else 0}")
        chosen = (self.train[:, seed], self.val[:, seed], self.test[:, seed])
        for name, mask in zip(("train", "val", "test"), chosen, strict=True):
            if not mask.any():
                raise InputError(f"{name}_mask of split {seed} is empty: choose another split or the full graph")
        if self.per_class is None:
            return chosen
        random, train = _random(seed), torch.zeros_like(chosen[0])
        for label in range(len(class_names)):
            members = (chosen[0] & (y == label)).nonzero().view(-1).numpy()
            train[random.choice(members, min(self.per_class, len(members)), replace=False)] = True
        return train, chosen[1], chosen[2]

    def subset(self, keep: Tensor) -> "FixedSplits":
        """The same splits, restricted to the nodes with the indices ``keep``."""
        return replace(self, train=self.train[keep], val=self.val[keep], test=self.test[keep])


@dataclass(frozen=True)
class TunedSplits(RandomSplits):
    """The random protocol of "Classic GNNs are Strong Baselines" (Luo et al. 2024) on Cora, Citeseer and Pubmed.

    Of the nodes of each class, in a random order, the first 20 are for training. Of all others, in a random order, the
    first 500 are for validation and the next 1000 for testing. The orders are drawn by a ``torch.Generator`` with the
    seed, as in the published code. Its results are those of split 123 alone.
    """

    @property
    def protocol(self) -> str:
        return f"tunedGNN: random {self.per_class} per class, 500 validation, 1000 test"

    def masks(self, y: Tensor, class_names: Sequence[str], seed: int) -> Masks:
        random = torch.Generator().manual_seed(_checked(seed))
        members = [(y == label).nonzero().view(-1) for label in range(len(class_names))]
        members = [nodes[torch.randperm(len(nodes), generator=random)] for nodes in members]
        train = torch.cat([nodes[: self.per_class] for nodes in members])
        rest = torch.cat([nodes[self.per_class :] for nodes in members])
        rest = rest[torch.randperm(len(rest), generator=random)]
        return mask_of(train, len(y)), mask_of(rest[:500], len(y)), mask_of(rest[500:1500], len(y))


@dataclass(frozen=True, eq=False)
class GraphSplits:
    """Random splits of the graphs of a collection: 60% for training, 20% for validation and 20% for testing.

    ``graph`` [targets] is the index of each target's graph, and ``counted`` [targets] is True for targets in use.
    """

    graph: Tensor
    counted: Tensor
    protocol: str = "random 60/20/20 of the graphs"
    defaults: ClassVar[tuple[int, ...]] = RANDOM_SEEDS

    def with_labels(self, per_class: int) -> Self:
        raise InputError("labels_per_class is for the classes of the nodes of one graph: leave it out")

    def masks(self, y: Tensor, class_names: Sequence[str], seed: int) -> Masks:
        count = int(self.graph.max()) + 1
        if count < 5:
            raise InputError(f"a random split needs 5 targets, but there are {count}: give more, or the three masks")
        place = torch.empty(count, dtype=torch.long)
        place[torch.from_numpy(_random(seed).permutation(count))] = torch.arange(count)
        share = place[self.graph] / count
        return share.lt(0.6) & self.counted, share.ge(0.6) & share.lt(0.8) & self.counted, share.ge(0.8) & self.counted

    def subset(self, keep: Tensor) -> "GraphSplits":
        """The same splits, restricted to the targets with the indices ``keep``."""
        return replace(self, graph=self.graph[keep], counted=self.counted[keep])


def node_splits(y: Tensor) -> GraphSplits:
    """Random splits of a node regression: 60% of the targets for training, 20% for validation, 20% for testing."""
    known = ~y.isnan()
    return GraphSplits(torch.where(known, known.cumsum(0) - 1, 0), known, "random 60/20/20 of the nodes with a target")


def _random(seed: int) -> np.random.RandomState:
    """NumPy's legacy generator, with which the published splits were drawn and whose stream never changes."""
    return np.random.RandomState(_checked(seed))


def _checked(seed: int) -> int:
    if not 0 <= seed < 2**32:
        raise InputError(f"split seed {seed} is out of range: give a seed from 0 to {2**32 - 1}")
    return seed


def _masks(pool: np.ndarray, development: np.ndarray, train: np.ndarray, nodes: int) -> Masks:
    whole, developed, trained = (mask_of(part, nodes) for part in (pool, development, train))
    return trained, developed & ~trained, whole & ~developed


def mask_of(chosen: np.ndarray | Tensor, n: int) -> Tensor:
    """The boolean mask [n] that is True at the indices ``chosen``."""
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.as_tensor(chosen, dtype=torch.long)] = True
    return mask
