"""Splits of one cluster at a time, against bounds from scratch and clusters that are known."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from papers.baselines.full_ascent import FullAscent
from papers.baselines.split_ascent import SplitAscent, beyond_mean, with_halves
from stickbreak import Mixture
from stickbreak.likelihoods import Gaussian, ZeroMeanGaussian

CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [40.0, 40.0]])


def of(likelihood, X):
    """The ascent on rows X."""
    fit = Mixture(likelihood, moves=(), learn=False, max_laps=1, n_batches=1)
    return FullAscent(fit.fit(X).model_, X)


@pytest.fixture(scope="module")
def four():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=400)
    return CENTRES[truth] + rng.normal(size=(400, 2)), truth


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_clusters_apart_are_found_each_split_raising_the_bound(four):
    X, truth = four
    ascent = of(Gaussian(scale=1.0), X)
    stages = list(SplitAscent(ascent, X).stages())
    assert [s.K for s in stages] == [1, 2, 3, 4]
    bounds = [ascent.model.bound(ascent.model.ordered(s)) for s in stages]
    assert (np.diff(bounds) >= 1.0).all()
    assert adjusted_rand_score(truth, ascent.responsibilities(stages[-1]).argmax(axis=1)) > 0.99


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_gaussian_stays_one_cluster():
    X = np.random.default_rng(0).normal(size=(500, 3))
    assert [s.K for s in SplitAscent(of(Gaussian(scale=1.0), X), X).stages()] == [1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_clusters_with_one_mean_are_split_by_their_statistics():
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 2
    X = rng.normal(size=(600, 2)) * np.array([[5.0, 0.1], [0.1, 5.0]])[truth]
    ascent = of(ZeroMeanGaussian(scale=1.0), X)
    last = list(SplitAscent(ascent, ascent.features).stages())[-1]
    assert last.K == 2
    assert adjusted_rand_score(truth, ascent.responsibilities(last).argmax(axis=1)) > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_halves_add_up_to_their_cluster_and_their_bound_is_that_of_all_responsibilities(four):
    X, _ = four
    ascent = of(Gaussian(scale=1.0), X)
    R = np.random.default_rng(1).dirichlet(np.ones(3), size=len(X))
    splits = SplitAscent(ascent, X)
    now = ascent.sums(R)
    halves = splits.split(now, R[:, 1], 1)
    np.testing.assert_allclose(halves.sum(axis=1), R[:, 1], atol=1e-12)
    pieces = np.column_stack([R[:, [0, 2]], halves])
    claimed = splits.bound(with_halves(now, 1, halves, ascent.features))
    assert claimed == pytest.approx(ascent.model.bound(ascent.summary(pieces)), abs=1e-8)
    assert splits.bound(ascent.sums(splits.best_split(now, R))) >= claimed - 1e-8


def test_the_principal_axis_is_that_of_the_weighted_rows():
    X = np.array([[-3.0, 0.0], [3.0, 0.1], [0.0, 50.0], [-1.0, -0.1], [1.0, 0.0]])
    side = beyond_mean(X, np.array([1.0, 1.0, 0.0, 1.0, 1.0]))
    assert side[0] == side[3] != side[1] == side[4]
