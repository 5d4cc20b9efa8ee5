"""Columns in which nothing tells clusters apart: their parameters are common to all clusters, and which they are is found."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from stickbreak import Mixture, load
from stickbreak.likelihoods import Bernoulli, Categorical, Gamma, Poisson
from stickbreak.likelihoods._sample import Sample

K, D, N_EACH = 3, 4, 25


def zeros_and_ones(rng, told):
    chance = np.where(told, rng.choice([0.05, 0.5, 0.95], (K, D)), 0.4)
    return lambda z: (rng.random((len(z), D)) < chance[z]).astype(float)


def counts(rng, told):
    rate = np.where(told, rng.choice([1.0, 6.0, 30.0], (K, D)), 4.0)
    return lambda z: rng.poisson(rate[z]).astype(float)


def durations(rng, told):
    scale = np.where(told, rng.choice([0.1, 1.0, 20.0], (K, D)), 3.0)
    return lambda z: rng.exponential(scale[z])


def categories(rng, told):
    level = rng.integers(3, size=(K, D))
    return lambda z: np.where(
        told & (rng.random((len(z), D)) < 0.9), level[z], rng.integers(3, size=(len(z), D))
    ).astype(float)


def log_density(likelihood, X):
    """Of values of the columns (n, D) under the mean of all values and the prior, by densities that scipy has."""
    n = len(X)
    if isinstance(likelihood, Bernoulli):
        p = (likelihood.a + X.sum(axis=0)) / (likelihood.a + likelihood.b + n)
        return stats.bernoulli(p).logpmf(X)
    if isinstance(likelihood, Poisson):
        return stats.poisson((likelihood.shape + X.sum(axis=0)) / (likelihood.rate + n)).logpmf(X)
    if isinstance(likelihood, Gamma):
        return stats.expon(scale=(likelihood.rate + X.sum(axis=0)) / (likelihood.shape + n)).logpdf(X)
    c = likelihood.concentration.reshape(D, 3)
    p = np.array([(c[d] + np.bincount(X[:, d].astype(int), minlength=3)) / (c[d].sum() + n) for d in range(D)])
    return np.log(p[np.arange(D), X.astype(int)])


FAMILIES = {"bernoulli": (Bernoulli(), zeros_and_ones), "poisson": (Poisson(), counts), "gamma": (Gamma(), durations)}
FAMILIES["categorical"] = (Categorical(n_levels=3), categories)


@pytest.fixture(params=FAMILIES)
def case(request, naive):
    """A resolved likelihood, rows that differ in two of four columns, their clusters, and counts and sums of these."""
    rng = np.random.default_rng(5)
    family, draw = FAMILIES[request.param]
    z = np.repeat(np.arange(K), N_EACH)
    X = draw(rng, np.array([True, False, True, False]))(z)
    likelihood = family.resolve(Sample.of(X))
    R = np.eye(K)[z]
    return likelihood, X, z, R.sum(axis=0), R.T @ naive.features(likelihood, X)


def test_common_parameters_are_the_means_given_all_values(case):
    likelihood, X, z, N, S = case
    alike = likelihood.alike(np.ones(D, np.bool_), N, S)
    density = log_density(likelihood, X)
    want = np.array([density[z == k].sum(axis=0) for k in range(K)])
    base = np.array([replace(likelihood).log_base(X)[z == k].sum() for k in range(K)])
    np.testing.assert_allclose(alike.log_marginal(N, S) + base, want.sum(axis=1), rtol=1e-8)
    np.testing.assert_allclose(
        alike.log_predictive(X, N, S), np.tile(density.sum(axis=1)[:, None], K), rtol=1e-8, atol=1e-8
    )
    W, b = alike.weights(N, S)
    np.testing.assert_allclose((S * W).sum(axis=1) + N * b, alike.log_marginal(N, S), rtol=1e-8)  # they cost nothing
    np.testing.assert_array_equal(alike.divergence(X, X[:3]), 0.0)


def test_columns_with_parameters_of_their_own_are_as_ever(case):
    likelihood, _, _, N, S = case
    columns = np.array([False, True, False, True])
    some = likelihood.alike(columns, N, S)
    none = likelihood.column_marginals(N, S)
    every = likelihood.alike(np.ones(D, np.bool_), N, S).column_marginals(N, S)
    np.testing.assert_array_equal(some.column_marginals(N, S), np.where(columns, every, none))
    np.testing.assert_array_equal(some.is_common, columns)
    assert likelihood.log_hyperprior == 0.0


def test_the_best_of_all_sets_of_columns_is_found(case):
    likelihood, _, _, N, S = case

    def value(columns):
        m = D - sum(columns)
        prior = 0.0 if m == D else betaln(m + 0.5, D - m + 0.5) - betaln(0.5, 0.5)
        return likelihood.alike(np.array(columns), N, S).log_marginal(N, S).sum() + prior

    best = max(product((False, True), repeat=D), key=value)
    (found,) = likelihood.fitted("common", N, S)
    np.testing.assert_array_equal(found.is_common, best)
    assert found.log_marginal(N, S).sum() + found.log_hyperprior == pytest.approx(value(best), abs=1e-9)
    assert not found.is_common[[0, 2]].any()


@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "exponential"])
def test_noise_is_one_cluster_and_clusters_in_few_columns_are_found(kind):
    rng = np.random.default_rng(3)
    n = 240
    z = np.repeat(np.arange(3), n // 3)
    high = np.arange(6) % 3 == z[:, None]
    noise = rng.beta(1.0, 3.0, 150)
    told, untold = {
        "bernoulli": (rng.random((n, 6)) < np.where(high, 0.9, 0.1), rng.random((n, 150)) < noise),
        "poisson": (rng.poisson(np.where(high, 12.0, 3.0)), rng.poisson(20.0 * noise, (n, 150))),
        "exponential": (rng.exponential(np.where(high, 20.0, 1.0)), rng.exponential(noise + 0.1, (n, 150))),
    }[kind]
    options = {"random_state": 0, "n_jobs": 1}
    alone = Mixture(kind, **options).fit(untold.astype(float))
    assert alone.n_clusters_ == 1
    X = np.hstack([told, untold]).astype(float)
    found = Mixture(kind, **options).fit(X)
    true = Mixture(kind, init=z, **options).fit(X)
    assert found.n_clusters_ == 3
    np.testing.assert_array_equal(found.model_.likelihood.is_common, np.arange(156) >= 6)
    assert found.lower_bound_ > true.lower_bound_ - 1.0


def test_a_file_has_what_is_common(tmp_path):
    rng = np.random.default_rng(1)
    X = np.hstack([np.repeat([[0.0] * 4, [1.0] * 4], 40, axis=0), rng.random((80, 60)) < 0.3]).astype(float)
    model = Mixture("bernoulli", random_state=0, n_jobs=1).fit(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert model.model_.likelihood.is_common.sum() == 60
    np.testing.assert_array_equal(again.model_.likelihood.common, model.model_.likelihood.common)
    assert again.score(X) == model.score(X)


def test_what_is_common_is_given_as_an_array_of_its_shape():
    X = np.eye(4)
    for family in (Bernoulli(common=np.ones(3)), Categorical(common=np.ones(3))):
        with pytest.raises(ValueError, match="common must be an array of the shape"):
            Mixture(family).fit(X)
