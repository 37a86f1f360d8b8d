from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dissensus import data
from dissensus.data._splits import BenchmarkSplits, FixedSplits, ScaledSplits
from dissensus.errors import InputError
from published_splits import as_sets, literal_split

NAMES = [str(c) for c in range(7)]


@pytest.mark.parametrize(("development", "seed"), [(1500, 1), (1500, 100), (1500, 0), (2500, 7)])
def test_benchmark_splits_are_the_published_protocol(development: int, seed: int) -> None:
    y = torch.from_numpy(np.random.default_rng(0).integers(0, 7, 3000))
    masks = BenchmarkSplits(development).masks(y, NAMES, seed)
    assert as_sets(masks) == literal_split(y.tolist(), 7, development, seed)
    assert [int(mask.sum()) for mask in masks] == [140, development - 140, 3000 - development]


def test_benchmark_splits_name_a_seed_that_fails() -> None:
    y = torch.zeros(3000, dtype=torch.long)
    y[:25] = 1
    with pytest.raises(InputError, match=r"split 3 has only \d+ development nodes of class 'b'.*another split seed"):
        BenchmarkSplits().masks(y, ["a", "b"], 3)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    counts=st.lists(st.integers(3, 400), min_size=1, max_size=8),
    unlabelled=st.integers(0, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_scaled_splits_are_disjoint_complete_and_know_every_class(
    counts: list[int], unlabelled: int, seed: int
) -> None:
    labels = np.concatenate([np.full(unlabelled, -1), *(np.full(m, c) for c, m in enumerate(counts))])
    y = torch.from_numpy(np.random.default_rng(seed).permutation(labels))
    names = [str(c) for c in range(len(counts))]
    masks = ScaledSplits().masks(y, names, seed)
    assert torch.equal(sum(mask.int() for mask in masks), (y >= 0).int())
    for mask in masks:
        assert set(y[mask].tolist()) == set(range(len(counts)))
    assert int(y[masks[0]].bincount().max()) <= 20
    again = ScaledSplits().masks(y, names, seed)
    assert all(torch.equal(a, b) for a, b in zip(masks, again, strict=True))


def test_scaled_splits_take_twenty_per_class_of_1500_where_there_is_room() -> None:
    y = torch.arange(10_000) % 5
    train, val, test = ScaledSplits().masks(y, NAMES[:5], 1)
    assert y[train].bincount().tolist() == [20] * 5
    assert (int(val.sum()), int(test.sum())) == (1400, 8500)


def test_scaled_splits_differ_between_seeds() -> None:
    y = torch.arange(300) % 3
    one, two = (ScaledSplits().masks(y, NAMES[:3], seed) for seed in (1, 2))
    assert not torch.equal(one[0], two[0])


@pytest.mark.parametrize(
    ("labels", "seed", "message"),
    [
        ([0, 0, 0, 1, 1], 1, "class 'b' has only 2 labelled nodes, but a random split needs 3: label more"),
        ([-1, -1], 1, "no labels.*prediction only"),
        ([0, 0, 0, 1, 1, 1], -1, "seed -1 is out of range: give"),
        ([0, 0, 0, 1, 1, 1], 2**32, "out of range: give"),
    ],
)
def test_scaled_splits_refuse_what_cannot_be_split(labels: list[int], seed: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ScaledSplits().masks(torch.tensor(labels), ["a", "b"], seed)


def test_fixed_splits_are_columns_and_refuse_other_seeds() -> None:
    masks = torch.eye(3, dtype=torch.bool)
    columns = (masks, masks.roll(1, 0), masks.roll(2, 0))
    splits = FixedSplits(*columns)
    assert splits.defaults == (0, 1, 2)
    chosen = splits.masks(torch.zeros(3), ["a"], 1)
    assert all(torch.equal(mask, column[:, 1]) for mask, column in zip(chosen, columns, strict=True))
    for seed in (3, -1):
        with pytest.raises(InputError, match=f"no split {seed}, only the fixed splits 0-2: choose"):
            splits.masks(torch.zeros(3), ["a"], seed)


def test_fixed_splits_that_lost_all_nodes_of_a_mask_say_so() -> None:
    masks = torch.eye(3, dtype=torch.bool)
    splits = FixedSplits(masks[:, :1], masks[:, 1:2], masks[:, 2:]).subset(torch.tensor([0, 1]))
    with pytest.raises(InputError, match="test_mask of split 0 is empty: choose"):
        splits.masks(torch.zeros(2), ["a"], 0)


def test_a_split_shares_the_graph_and_leaves_it_as_it_was() -> None:
    dataset = data.load("karate")
    split = dataset.split(1)
    assert isinstance(split, Data)
    assert split.x.data_ptr() == dataset.graph.x.data_ptr()
    assert set(dataset.graph.keys()) == {"x", "edge_index", "y"}
    assert not torch.equal(split.train_mask, dataset.split(2).train_mask)


@pytest.mark.slow
def test_few_labels_leave_that_many_of_each_class_for_training() -> None:
    one, many = (data.load("digits", labels_per_class=k).split(3) for k in (1, 5))
    for split, count in ((one, 1), (many, 5)):
        assert torch.bincount(split.y[split.train_mask]).tolist() == [count] * 10
        assert not bool((split.train_mask & (split.val_mask | split.test_mask)).any())
    assert torch.equal(one.test_mask, data.load("digits").split(3).test_mask)
    with pytest.raises(InputError, match="at least 1"):
        data.load("digits", labels_per_class=0)


def test_few_labels_of_a_fixed_split_are_drawn_from_its_training_nodes() -> None:
    plain = data.load("digits").split(1)
    fixed = data.from_pyg(plain).with_labels(2)
    split = fixed.split(0)
    assert torch.bincount(split.y[split.train_mask]).tolist() == [2] * 10
    assert bool((split.train_mask <= plain.train_mask).all())
    assert torch.equal(split.val_mask, plain.val_mask)
    assert "2 labels per class" in fixed.protocol


def test_missing_features_are_zero_outside_the_training_set_alone() -> None:
    whole, half, none = data.load("digits"), data.load("digits", missing_features=0.5), data.load("digits")
    split, plain = half.split(1), whole.split(1)
    others = int((~plain.train_mask).sum())
    assert int(split.missing_mask.sum()) == round(0.5 * others)
    assert not bool((split.missing_mask & split.train_mask).any())
    assert not bool(split.x[split.missing_mask].any())
    assert torch.equal(split.x[~split.missing_mask], plain.x[~split.missing_mask])
    assert torch.equal(none.graph.x, whole.graph.x)  # the shared tensor is left as it was
    everything = data.load("digits", missing_features=1.0).split(1)
    assert torch.equal(everything.missing_mask, ~everything.train_mask)
    assert "50% of the other nodes missing" in half.protocol
    with pytest.raises(InputError, match="from 0 to 1"):
        data.load("digits", missing_features=1.5)


def test_the_protocol_of_tuned_baselines(real_data: Path) -> None:
    split = data.load("cora", protocol="tunedgnn").split(1)
    assert torch.bincount(split.y[split.train_mask]).tolist() == [20] * 7
    assert (int(split.val_mask.sum()), int(split.test_mask.sum())) == (500, 1000)
    # Their code draws split 123: the nodes of each class in a random order, then all others.
    torch.manual_seed(123)
    orders = [
        members[torch.randperm(len(members))] for members in ((split.y == c).nonzero().view(-1) for c in range(7))
    ]
    others = torch.cat([order[20:] for order in orders])
    others = others[torch.randperm(len(others))]
    theirs = data.load("cora", protocol="tunedgnn").split(123)
    assert theirs.train_mask[torch.cat([order[:20] for order in orders])].all()
    assert theirs.val_mask[others[:500]].all()
    assert theirs.test_mask[others[500:1500]].all()
    photo = data.load("photo", protocol="tunedgnn")
    assert [int(photo.split(0)[f"{key}_mask"].sum()) for key in ("train", "val", "test")] == [4590, 1530, 1530]
    with pytest.raises(InputError, match="leave it out"):
        data.load("texas", protocol="tunedgnn")
