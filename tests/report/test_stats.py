from itertools import product
from math import isnan, sqrt

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus.errors import InputError
from dissensus.report import Table
from dissensus.report._stats import compare, holm, interval, mean, std

A = dict(enumerate([83.1, 82.4, 84.0, 81.9, 83.3, 82.8, 83.9, 82.2]))
B = dict(enumerate([82.0, 82.6, 82.8, 81.1, 82.7, 82.9, 82.0, 80.9]))


def test_mean_and_std_by_hand():
    assert mean([1, 2, 6]) == 3
    assert std([1, 2, 6]) == pytest.approx(sqrt((4 + 1 + 9) / 2))
    assert isnan(std([5.0]))


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [float("inf")]])
def test_statistics_refuse_what_has_none(samples):
    with pytest.raises(InputError, match="finite"):
        mean(samples)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_interval_equals_scipy(level):
    values = list(A.values())
    expected = scipy.stats.t.interval(level, len(values) - 1, mean(values), scipy.stats.sem(values))
    assert interval(mean(values), std(values), len(values), level) == pytest.approx(expected)


def test_interval_of_one_run_is_unknown_and_level_is_checked():
    assert all(map(isnan, interval(3.0, float("nan"), 1)))
    with pytest.raises(InputError, match=r"0\.95"):
        interval(3.0, 1.0, 5, level=95)


def test_compare_equals_scipy():
    found = compare(A, B)
    a, b = list(A.values()), list(B.values())
    differences = [round(x - y, 12) for x, y in zip(a, b, strict=True)]
    assert found.n == 8
    assert found.difference == pytest.approx(mean(a) - mean(b))
    assert found.p_t == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue)
    assert found.p_wilcoxon == pytest.approx(scipy.stats.wilcoxon(differences, method="exact").pvalue)
    ci = scipy.stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ci.low, ci.high))


def test_wilcoxon_is_exact_with_ties_and_zeros():
    differences = [1, -1, 2, 2, 3, 0, -1, 4]
    found = compare(dict(enumerate(differences)), dict.fromkeys(range(8), 0))
    moved = [d for d in differences if d]
    ranks = scipy.stats.rankdata([abs(d) for d in moved])
    sums = [sum(r for r, sign in zip(ranks, signs, strict=True) if sign) for signs in product((0, 1), repeat=7)]
    seen = sum(r for r, d in zip(ranks, moved, strict=True) if d > 0)
    tail = min(sum(s >= seen for s in sums), sum(s <= seen for s in sums))
    assert found.n == 8
    assert found.p_wilcoxon == pytest.approx(2 * tail / 2**7)


def test_wilcoxon_of_many_splits_nears_the_normal_approximation():
    a = {split: (split * 37 % 101) / 7 for split in range(100)}
    b = {split: (split * 53 % 97) / 7 for split in range(100)}
    differences = [round(a[split] - b[split], 12) for split in a]
    expected = scipy.stats.wilcoxon([d for d in differences if d]).pvalue
    assert compare(a, b).p_wilcoxon == pytest.approx(expected, abs=0.005)


def test_compare_wilcoxon_by_hand():
    # Five positive differences without ties: the two-sided exact p-value is 2 / 2^5.
    ours = {split: 10.0 + split for split in range(5)}
    theirs = {split: 10.0 - split * 0.1 - 0.5 for split in range(5)}
    assert compare(ours, theirs).p_wilcoxon == pytest.approx(2 / 32)


def test_compare_uses_common_splits_only_whatever_their_order():
    extra = dict(reversed(B.items())) | {"other": 0.0}
    assert compare(A | {99: 1000.0}, extra).difference == pytest.approx(compare(A, B).difference)
    with pytest.raises(InputError, match="at least 2 common splits, got 1"):
        compare({1: 1.0, 2: 2.0}, {2: 2.0, 3: 3.0})


def test_compare_where_all_differences_are_equal():
    same = compare(A, A)
    assert (same.difference, same.p_t, same.p_wilcoxon) == (0, 1, 1)
    # 0.1 is not exact in binary: without rounding these differences are not ties.
    shifted = compare({k: v + 0.1 for k, v in A.items()}, A)
    assert shifted.std == 0
    assert shifted.p_t == 0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=2, max_size=12))
def test_compare_is_antisymmetric(pairs):
    a = {i: x / 7 for i, (x, _) in enumerate(pairs)}
    b = {i: y / 7 for i, (_, y) in enumerate(pairs)}
    one, other = compare(a, b), compare(b, a)
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.p_t, one.p_wilcoxon) == pytest.approx((-other.high, other.p_t, other.p_wilcoxon))
    assert 0 <= one.p_t <= 1
    assert 0 < one.p_wilcoxon <= 1


def test_paired_table_has_a_row_for_each_rival():
    table = Table.paired("bimp", {"bimp": A, "gcn": B, "new": {3: 80.0}, "same": A}, caption="Cora")
    test = compare(A, B)
    corrected = 2 * test.p_wilcoxon  # two rivals were tested
    assert table.rows[0] == ["gcn", 8, test.difference, test.low, test.high, test.p_t, test.p_wilcoxon, corrected]
    assert table.rows[1] == ["new", 1, None, None, None, None, None, None]
    assert table.rows[2][-1] == 1.0
    with pytest.raises(InputError, match="did you mean 'bimp'"):
        Table.paired("bmip", {"bimp": A})


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
