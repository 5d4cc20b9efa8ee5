"""Merges that one batch decides on, against responsibilities written out and against laps of the library."""

import numpy as np
import pytest
from scipy.special import xlogy

from papers.baselines.full_ascent import FullAscent
from papers.baselines.greedy_merge import GreedyMerge, merged
from stickbreak import Mixture
from stickbreak.likelihoods import ZeroMeanGaussian


def patches(n_rows, D=20):
    """Rows (n_rows, D) of two zero-mean Gaussians, of which one has columns that are correlated in pairs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, D))
    X[::2, 1::2] = X[::2, : D - 1 : 2] + 0.5 * X[::2, 1::2]
    return X


def begun(X, K):
    """A model and a start in which even rows are in other clusters than odd ones."""
    labels = np.arange(len(X)) % K
    fit = Mixture(ZeroMeanGaussian(scale=1.0), init=labels, moves=(), learn=False, max_laps=1, n_batches=1).fit(X)
    return fit.model_, fit.summary_


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_one_cluster_stays_and_laps_without_merges_are_steps():
    X = patches(200, 3)
    model, start = begun(X, 1)
    laps = list(GreedyMerge.of(model, X, 4).laps(start, 2, np.random.default_rng(0)))
    assert [lap.K for lap in laps] == [1, 1]
    assert model.bound(laps[-1]) == pytest.approx(model.bound(start), abs=1e-8)


def test_the_gain_of_a_merge_is_that_of_the_rows_of_the_batch_alone():
    X = patches(300, 3)
    model, start = begun(X, 3)
    greedy = GreedyMerge.of(model, X, 3)
    part = greedy.parts[1]
    R = part.responsibilities(start)
    joined = np.column_stack([R[:, 0] + R[:, 2], R[:, 1]])
    np.testing.assert_allclose(merged(R, 0, 2), joined)
    alone = FullAscent(model, X[100:200])
    H = -xlogy(joined, joined).sum(axis=0)
    expected = alone.summary(joined)
    np.testing.assert_allclose(np.sort(expected.H), np.sort(H), atol=1e-10)
    gain = model.bound(expected) - model.bound(alone.summary(R))
    assert greedy.gain(part.sums(R), R, 0, 2) == pytest.approx(gain, abs=1e-8)


def test_a_batch_too_small_to_pay_for_two_covariances_merges_what_all_rows_need():
    X = patches(4_000)
    model, start = begun(X, 2)
    one = FullAscent(model, X).summary(np.ones((len(X), 1)))
    small, large = (list(GreedyMerge.of(model, X, n).laps(start, 3, np.random.default_rng(0)))[-1] for n in (100, 1))
    assert small.K == 1
    assert large.K == 2
    assert model.bound(large) > model.bound(small) == pytest.approx(model.bound(one), abs=1e-6)


def test_a_random_cluster_is_paired_with_its_twin():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 2)) * np.array([1.0, 1.0, 20.0])[np.arange(600) % 3, None]
    model, _ = begun(X, 3)
    greedy = GreedyMerge.of(model, X, 1)
    total = greedy.parts[0].sums(np.eye(3)[np.arange(600) % 3])
    pairs = [greedy.pair(total, np.random.default_rng(seed)) for seed in range(20)]
    assert all(a < b for a, b in pairs)
    firsts = [np.random.default_rng(seed).integers(3) for seed in range(20)]
    assert all(pair == (0, 1) for pair, a in zip(pairs, firsts) if a < 2)
    assert all(2 in pair for pair, a in zip(pairs, firsts) if a == 2)
    assert greedy.pair(total.take([0]), rng) is None
