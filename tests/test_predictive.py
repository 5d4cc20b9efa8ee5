"""The predictive density of a sampler, against normal densities written out."""

import numpy as np
from scipy.stats import norm

from papers.baselines.predictive import log_predictive
from stickbreak import Mixture
from stickbreak.likelihoods import KnownCovarianceGaussian

KAPPA = 0.5


def density(y, rows):
    """Of a cluster with unit variance and a mean of prior precision KAPPA about zero."""
    precision = KAPPA + len(rows)
    return norm.pdf(y, sum(rows) / precision, np.sqrt(1.0 + 1.0 / precision))


def test_partitions_are_averaged_and_the_next_row_may_begin_a_cluster():
    X = np.array([[-1.0], [0.5], [2.0]])
    Y = np.array([[0.0], [1.5], [-4.0]])
    likelihood = KnownCovarianceGaussian(1.0, mean=0.0, mean_precision=KAPPA)
    fit = Mixture(likelihood, learn=False, n_batches=1).fit(X)
    a, b, c = X[:, 0]
    y = Y[:, 0]
    new = 2.0 / 5.0 * density(y, [])
    first = 2.0 / 5.0 * density(y, [a, b]) + 1.0 / 5.0 * density(y, [c]) + new
    second = 3.0 / 5.0 * density(y, [a, b, c]) + new
    found = log_predictive(fit.model_.likelihood, X, np.array([[0, 0, 1], [0, 0, 0]]), Y, concentration=2.0)
    np.testing.assert_allclose(found, np.log((first + second) / 2.0), rtol=1e-10)
