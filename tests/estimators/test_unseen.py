"""Densities that keep the chance of clusters not seen yet, against the exact predictive of a few rows."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp

from partitions import posterior
from stickbreak import Mixture
from stickbreak.allocations import (
    DirichletProcess,
    FiniteDirichlet,
    GammaConcentration,
    PitmanYor,
    TruncatedDirichletProcess,
)
from stickbreak.likelihoods import KnownCovarianceGaussian

LIKELIHOOD = KnownCovarianceGaussian(covariance=1.0, mean=0.0, mean_precision=1e-4)
VAGUE = KnownCovarianceGaussian(covariance=1.0, mean=0.0, mean_precision=1e-12)  # so that no cluster is in two parts
FAR = np.array([[-60.0], [-59.0], [-61.0], [40.0], [41.5]])
LINE = np.linspace(-500.0, 500.0, 40_001)[:, None]


def fit(X, allocation, likelihood=LIKELIHOOD, **parameters):
    options = {"init": (X[:, 0] > 0.0).astype(int), "moves": (), "learn": False, "random_state": 0, "n_jobs": 1}
    return Mixture(likelihood, allocation=allocation, **{**options, **parameters}).fit(X)


def exact(model, X, x):
    """log p(x | X), a ratio of evidences, each a sum over all partitions."""
    likelihood, allocation = model.model_.likelihood, model.model_.allocation

    def log_evidence(rows):
        T = np.array(likelihood.features(rows, np.empty((len(rows), likelihood.n_statistics))))
        return logsumexp(posterior(likelihood, allocation, T)[1]) + likelihood.log_base(rows).sum()

    return log_evidence(np.vstack([X, x])) - log_evidence(X)


@pytest.mark.parametrize("allocation", [DirichletProcess(0.7), FiniteDirichlet(4, 2.0)], ids=str)
def test_rows_of_certain_clusters_have_the_exact_predictive(allocation):
    """In the middle of the clusters, between them, and far from both."""
    model = fit(FAR, allocation, VAGUE)
    for x in (-60.0, 41.0, 0.0, 200.0, -300.0):
        found = model.score_samples([[x]], unseen=True)[0]
        assert found == pytest.approx(exact(model, FAR, [[x]]), abs=1e-5)


def test_one_row_has_the_exact_predictive():
    model = fit(np.zeros((1, 1)), DirichletProcess(1.5), init="one")
    for x in (0.0, 3.0, 150.0):
        assert model.score_samples([[x]], unseen=True)[0] == pytest.approx(
            exact(model, np.zeros((1, 1)), [[x]]), abs=1e-9
        )


@pytest.mark.parametrize(
    "allocation",
    [
        DirichletProcess(2.0),
        PitmanYor(1.0, 0.6),
        FiniteDirichlet(5, 1.0),
        FiniteDirichlet(2, 1.0),
        TruncatedDirichletProcess(2, 1.0),
        TruncatedDirichletProcess(5, 1.0),
        DirichletProcess(GammaConcentration(2.0, 1.0)),
    ],
    ids=str,
)
def test_it_is_a_density_and_outliers_score_by_the_prior(allocation):
    model = fit(FAR, allocation)
    for unseen in (False, True):
        density = np.exp(model.score_samples(LINE, unseen=unseen))
        assert trapezoid(density, LINE[:, 0]) == pytest.approx(1.0, abs=1e-5)
    chance = model.model_.allocation.joining(model.summary_)[-1]
    outlier = [[250.0]]
    found = model.score_samples(outlier, unseen=True)[0]
    if allocation.max_clusters == 2:
        assert chance < 1e-12
        assert found < -1000.0
        return
    alone = at_prior(model, outlier)
    assert found == pytest.approx(np.log(chance) + alone, abs=1e-9)
    assert found > model.score_samples(outlier)[0] + 1000.0
    assert model.score(outlier, unseen=True) == found


def at_prior(model, x):
    """The log density of a row of which nothing is known but the prior."""
    likelihood = model.model_.likelihood
    return likelihood.log_predictive(np.array(x), np.zeros(1), np.zeros((1, likelihood.n_statistics)))[0, 0]


def test_the_weight_of_what_is_new_is_that_of_the_restaurant():
    N = np.array([3.0, 2.0])
    summary = fit(FAR, DirichletProcess(0.7)).summary_
    np.testing.assert_allclose(summary.N, N, rtol=1e-9)
    for prior, weights in (
        (DirichletProcess(0.7), [3.0, 2.0, 0.7]),
        (PitmanYor(0.7, 0.4), [2.6, 1.6, 1.5]),
        (FiniteDirichlet(4, 2.0), [3.5, 2.5, 1.0]),
    ):
        np.testing.assert_allclose(prior.joining(summary), np.array(weights) / sum(weights), rtol=1e-9)


def test_the_switch_is_checked():
    with pytest.raises(ValueError, match="unseen must be True or False; got 'yes'"):
        fit(FAR, DirichletProcess()).score_samples(FAR, unseen="yes")
