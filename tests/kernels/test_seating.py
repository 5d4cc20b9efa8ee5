"""Kernels of samplers against the same in plain NumPy."""

import numpy as np
import pytest
from scipy.special import softmax

from stickbreak.kernels.seating import by_appearance, draw_labels, next_move, pairs_together, together


def drawn(labels, gains, alone, counts, concentration, discount, uniform):
    """The cluster that each row of a block draws while nothing else moves, K for a new one, its own where it stays alone."""
    n, K = gains.shape
    chosen = np.empty(n, int)
    for i in range(n):
        others = counts - (np.arange(K) == labels[i])
        with np.errstate(divide="ignore"):
            weights = np.append(
                np.where(others > 0, others - discount, 0.0), concentration + discount * (others > 0).sum()
            )
            p = softmax(np.log(weights) + np.append(gains[i], alone[i]))
        chosen[i] = np.searchsorted(np.cumsum(p), uniform[i], side="right")
        if others[labels[i]] == 0 and chosen[i] == K:
            chosen[i] = labels[i]
    return chosen


@pytest.mark.parametrize(("concentration", "discount"), [(1.0, 0.0), (0.5, 0.4), (2.0, -0.5)])
def test_the_first_row_that_moves(concentration, discount):
    rng = np.random.default_rng(0)
    for _ in range(40):
        labels = np.array([0, 0, 1, 2, 2, 2])
        counts = np.array([5.0, 1.0, 3.0])
        gains, alone, uniform = rng.normal(0.0, 2.0, (6, 3)), rng.normal(size=6), rng.random(6)
        expected = drawn(labels, gains, alone, counts, concentration, discount, uniform)
        place = 0
        for i in range(6):
            if expected[i] == labels[i]:
                continue
            place, k = next_move(place, labels, gains, alone, counts, concentration, discount, 1e-12, uniform)
            assert (place, k) == (i, expected[i])
            place += 1
        assert next_move(place, labels, gains, alone, counts, concentration, discount, 1e-12, uniform) == (6, -1)


def test_no_row_begins_a_cluster_that_the_prior_does_not_have():
    labels, counts = np.zeros(3, np.int64), np.array([3.0, 4.0])
    found = next_move(0, labels, np.full((3, 2), -900.0), np.zeros(3), counts, 2.0, -1.0, 1e-12, np.full(3, 0.999))
    assert found == (0, 1)


def test_clusters_drawn_from_scores():
    rng = np.random.default_rng(2)
    C, bias, uniform = rng.normal(0.0, 3.0, (50, 4)), rng.normal(size=4), rng.random(50)
    C[3, 1] = -np.inf
    labels = np.empty(50, np.int64)
    draw_labels(C, bias, uniform, labels)
    cumulative = np.cumsum(softmax(C + bias, axis=1), axis=1)
    np.testing.assert_array_equal(labels, (cumulative < uniform[:, None]).sum(axis=1))


def test_comparisons_of_partitions():
    rng = np.random.default_rng(1)
    a, b = rng.integers(4, size=(2, 20)).astype(np.int32)
    same = [z[:, None] == z for z in (a, b)]
    assert pairs_together(a, b, np.empty((4, 4), np.int64)) == (same[0] & same[1]).sum()
    counts = np.empty((20, 20))
    together(np.ascontiguousarray(np.stack([a, b]).T), counts)
    np.testing.assert_array_equal(counts, same[0].astype(float) + same[1])
    out = np.empty(20, np.int32)
    by_appearance(a.astype(np.int64), np.empty(4, np.int32), out)
    np.testing.assert_array_equal(out[:, None] == out, same[0])
    firsts = [np.flatnonzero(out == k)[0] for k in range(out.max() + 1)]
    assert firsts == sorted(firsts)
