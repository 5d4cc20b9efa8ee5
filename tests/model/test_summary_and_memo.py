"""Summaries and memos against plain numpy, with a field that has two cluster axes."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stickbreak.model import Exchange, Memo, Summary, Take
from stickbreak.model.edits import side_by_side
from stickbreak.model.summary import Array, cluster_axes

SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Transitions(Summary):
    """A summary with counts of transitions between clusters, as a Markov allocation would declare."""

    M: Array = cluster_axes(2)


def random_summary(rng, K, F=3, kind=Transitions):
    shapes = {"N": (K,), "S": (K, F), "H": (K,), "base": (), "M": (K, K)}
    return kind(**{f.name: np.array(rng.integers(-9, 9, shapes[f.name]), float) for f in fields(kind)})


def assert_equal(one, other):
    assert type(one) is type(other)
    for f in fields(one):
        a, b = getattr(one, f.name), getattr(other, f.name)
        assert isinstance(a, np.ndarray)
        np.testing.assert_array_equal(a, b, err_msg=f.name)


@pytest.mark.parametrize("kind", [Summary, Transitions])
@given(seed=SEEDS, K=st.integers(0, 5), factor=st.integers(-3, 3))
def test_arithmetic_is_field_by_field(kind, seed, K, factor):
    rng = np.random.default_rng(seed)
    a, b = random_summary(rng, K, kind=kind), random_summary(rng, K, kind=kind)
    for got, operation in [(a + b, np.add), (a - b, np.subtract)]:
        assert_equal(got, kind(*(operation(getattr(a, f.name), getattr(b, f.name)) for f in fields(kind))))
    assert_equal(a * factor, kind(*(np.asarray(getattr(a, f.name) * factor) for f in fields(kind))))
    total = a * 1.0
    total.add_in_place(b)
    assert_equal(total, a + b)


@given(seed=SEEDS, K=st.integers(1, 6), n=st.integers(0, 3))
def test_take_and_insert_empty_change_every_cluster_axis(seed, K, n):
    rng = np.random.default_rng(seed)
    a = random_summary(rng, K)
    chosen = rng.permutation(K)[: rng.integers(0, K + 1)]
    assert_equal(
        a.take(chosen), Transitions(a.N[chosen], a.S[chosen], a.H[chosen], a.base, a.M[np.ix_(chosen, chosen)])
    )
    assert_equal(a.without_statistics(), Transitions(a.N, np.zeros((K, 0)), a.H, a.base, a.M))
    M = np.zeros((K + n, K + n))
    M[:K, :K] = a.M
    zeros = np.zeros(n)
    wide = Transitions(np.append(a.N, zeros), np.vstack([a.S, np.zeros((n, 3))]), np.append(a.H, zeros), a.base, M)
    assert_equal(a.insert_empty(n), wide)
    assert len(wide.N) == a.insert_empty(n).K


@given(seed=SEEDS, K=st.integers(0, 6), J=st.integers(0, 4))
def test_exchange_drops_some_clusters_and_appends_others(seed, K, J):
    rng = np.random.default_rng(seed)
    a, added = random_summary(rng, K), replace(random_summary(rng, J), base=np.zeros(()))
    removed = rng.permutation(K)[: rng.integers(0, K + 1)]
    kept = np.setdiff1d(np.arange(K), removed)
    n = len(kept)
    M = np.zeros((n + J, n + J))
    M[:n, :n], M[n:, n:] = a.M[np.ix_(kept, kept)], added.M
    want = Transitions(
        np.append(a.N[kept], added.N), np.vstack([a.S[kept], added.S]), np.append(a.H[kept], added.H), a.base, M
    )
    assert_equal(a.exchange(removed.tolist(), added), want)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_summaries_side_by_side_are_one_after_another(n):
    rng = np.random.default_rng(n)
    each = [replace(random_summary(rng, int(K)), base=np.zeros(())) for K in rng.integers(1, 4, n)]
    one_by_one = each[0]
    for other in each[1:]:
        one_by_one = one_by_one.exchange((), other)
    assert_equal(side_by_side(iter(each)), one_by_one)


def test_zeros_is_the_summary_of_no_rows():
    a = random_summary(np.random.default_rng(1), 4, F=5, kind=Summary)
    assert_equal(a + Summary.zeros(4, 5), a)
    assert Summary.zeros(4, 5).K == 4


def added_up(memo):
    """The sum of a memo's batches, field by field."""
    present = [summary for summary in memo.batches if summary is not None]
    return Transitions(*(np.asarray(sum(getattr(s, f.name) for s in present)) for f in fields(Transitions)))


@given(seed=SEEDS, n_batches=st.integers(1, 4), visits=st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_total_is_the_sum_of_the_last_summaries_of_the_batches(seed, n_batches, visits):
    rng, memo, last = np.random.default_rng(seed), Memo(n_batches), {}
    for visit in visits:
        batch = visit % n_batches
        last[batch] = random_summary(rng, 3)
        memo.replace(batch, last[batch])
        assert_equal(memo.total, added_up(memo))  # whole numbers: no rounding
    assert (None in memo.batches) == (len(last) < n_batches)
    for batch, summary in last.items():
        assert memo.batches[batch] is summary
    memo.refresh()
    assert_equal(memo.total, added_up(memo))


def test_refresh_removes_the_drift_of_rounding():
    rng, memo = np.random.default_rng(2), Memo(2)
    memo.replace(0, random_summary(rng, 2) * 0.1)
    for _ in range(50):
        memo.replace(1, random_summary(rng, 2) * 1e15)
    memo.replace(1, random_summary(rng, 2) * 0.1)
    memo.refresh()
    assert_equal(memo.total, added_up(memo))


def test_edit_changes_every_visited_batch_and_the_total():
    rng, memo = np.random.default_rng(3), Memo(3)
    before = {b: random_summary(rng, 3) for b in (0, 2)}
    for batch, summary in before.items():
        memo.replace(batch, summary)
    added = {b: random_summary(rng, 2) for b in range(3)}
    memo.apply(Exchange((1,), (0,)), [[added[b]] for b in range(3)])
    assert memo.batches[1] is None
    for batch, summary in before.items():
        assert_equal(memo.batches[batch], summary.exchange([1], added[batch]))
    assert_equal(memo.total, added_up(memo))


@pytest.mark.parametrize("n_batches", [1, 3])
def test_copies_do_not_affect_each_other(n_batches):
    rng, memo = np.random.default_rng(4), Memo(n_batches)
    for batch in range(n_batches):
        memo.replace(batch, random_summary(rng, 3))
    want, twin = added_up(memo), memo.copy()
    assert_equal(twin.total, want)
    twin.replace(0, random_summary(rng, 3))
    twin.apply(Take((2, 0)))
    assert_equal(memo.total, want)
    assert_equal(added_up(memo), want)
    assert twin.total.K == 2
    memo.replace(0, random_summary(rng, 3))
    assert_equal(memo.total, added_up(memo))
    assert_equal(twin.total, added_up(twin))


def test_total_of_an_unvisited_memo_is_an_error():
    memo = Memo(2)
    assert None in memo.batches
    with pytest.raises(RuntimeError, match="no batch"):
        _ = memo.total
    assert None in memo.copy().batches
