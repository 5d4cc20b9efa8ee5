"""What a sample of the data tells of the steps to which values were rounded."""

import numpy as np
import pytest

from stickbreak import Mixture
from stickbreak.likelihoods import DiagonalGaussian, Sample
from stickbreak.likelihoods._quadratic import rounding

YEARS, PEOPLE = 7, 60


def panel(rng):
    """A year, all as frequent, and a measurement of each person in each."""
    years = np.tile(np.arange(1976.0, 1976.0 + YEARS), PEOPLE)
    return np.column_stack([years, rng.standard_normal(YEARS * PEOPLE)])


def test_values_that_are_all_as_frequent_are_tied_where_rows_differ():
    """A balanced panel: a cluster of one year would else be a point."""
    X = panel(np.random.default_rng(0))
    np.testing.assert_array_equal(Sample.of(X).resolution(), [1.0, 0.0])
    np.testing.assert_array_equal(Sample.of(X).take(np.array([0])).resolution(), [1.0])


@pytest.mark.parametrize("as_weights", [False, True])
def test_rows_that_are_repeated_are_not_tied(as_weights):
    X = np.random.default_rng(0).standard_normal((50, 2))
    sample = Sample.of(X, np.full(50, 3.0)) if as_weights else Sample.of(np.tile(X, (3, 1)))
    np.testing.assert_array_equal(sample.resolution(), [0.0, 0.0])


def test_rows_without_weight_tell_nothing():
    X = np.random.default_rng(0).standard_normal((60, 2))
    weights = np.repeat([1.0, 0.0], [50, 10])
    assert Sample.of(X, weights).lightest == 1.0
    np.testing.assert_array_equal(Sample.of(X, weights).resolution(), [0.0, 0.0])


def test_missing_values_are_alike():
    X = panel(np.random.default_rng(0))
    X[::5, 1] = np.nan
    assert Sample.of(np.tile(X, (2, 1))).lightest == 2.0


def test_a_cluster_at_the_very_origin_has_a_width():
    """Without a step, squares of values at the mean of the data are zero, and no multiple of them widens a cluster."""
    X = np.random.default_rng(0).standard_normal((50, 1))
    sample = Sample.of(X)
    assert (rounding(sample, np.ones(1)) > 0.0).all()
    likelihood = DiagonalGaussian(mean=0.0, rate=1e-140).resolve(sample)
    W, b = likelihood.weights(np.array([20.0]), np.zeros((1, 2)))
    assert (np.abs(W) < 1e30).all()
    assert np.isfinite(b).all()


def test_clusters_of_a_balanced_panel_are_no_years():
    """Two explain values that are spread evenly better than one does."""
    assert Mixture("diagonal_gaussian", random_state=0).fit(panel(np.random.default_rng(0))).n_clusters_ <= 2
