"""Missing values are integrated out exactly: every column by itself, by brute force."""

import numpy as np
import pytest
from scipy.special import logsumexp

from stickbreak import Mixture
from stickbreak.likelihoods import Sample

COLUMNS = ("bernoulli", "categorical", "diagonal_gaussian", "exponential", "gamma", "poisson")
HOLES = (*(f"{name}-missing" for name in COLUMNS), "product-missing", "categorical-many_levels_missing")
independent = pytest.mark.parametrize("family", [f"{name}-missing" for name in COLUMNS], indirect=True)
with_holes = pytest.mark.parametrize("family", HOLES, indirect=True)
with_exposures = pytest.mark.parametrize("family", [*HOLES, "poisson-exposure_missing"], indirect=True)


def clusters(rng, n, K=3):
    R = rng.dirichlet(np.full(K, 0.4), n)
    R[:, -1] = 0.0
    return R / R.sum(axis=1, keepdims=True)


def of_column(values, d):
    """The hyperparameters of one column."""
    return {k: [v[d]] if isinstance(v, list) or np.ndim(v) else v for k, v in values.items()}


@independent
def test_columns_add_up_over_their_observed_rows(family, naive):
    """Everything is the sum over columns of a likelihood of that column alone that saw only the rows with a value."""
    rng, D = np.random.default_rng(0), 3
    X = family.rows(rng, 60, D)
    likelihood, R, seen = family.likelihood(X), clusters(rng, 60), ~np.isnan(X)
    T = naive.features(likelihood, X)
    N, S = R.sum(axis=0), R.T @ T
    W, b = likelihood.weights(N, S)
    got = {
        "marginal": likelihood.log_marginal(N, S) + R.T @ likelihood.log_base(X),
        "score": T @ W.T + b + likelihood.log_base(X)[:, None],
        "predictive": likelihood.log_predictive(X, N, S),
        "divergence": likelihood.divergence(X, X),
    }
    want = {name: np.zeros_like(values) for name, values in got.items()}
    for d in range(D):
        rows = seen[:, d]
        x, nothing = X[rows, d : d + 1], np.full((1, 1), np.nan)
        one = family.make(1, **of_column({**family.always(D), **family.prior(D)}, d)).resolve(Sample.of(x))
        t, base = naive.features(one, x), one.log_base(x)[:, None]
        n, s = R[rows].sum(axis=0), R[rows].T @ t
        w, c = one.weights(n, s)
        want["marginal"] += one.log_marginal(n, s) + R[rows].T @ base[:, 0]
        want["score"][rows] += t @ w.T + c + base
        want["predictive"][rows] += one.log_predictive(x, n, s)
        want["divergence"][np.ix_(rows, rows)] += one.divergence(x, x)
        want["divergence"][np.ix_(rows, ~rows)] += one.divergence(x, nothing)  # of centers without a value
    for name, values in got.items():
        size = np.abs(want[name]).max()
        np.testing.assert_allclose(values, want[name], rtol=1e-9, atol=1e-9 * size, err_msg=name)


@with_exposures
def test_a_row_without_values_says_nothing(family, naive):
    rng = np.random.default_rng(1)
    X = family.rows(rng, 50, 4)
    likelihood, R = family.likelihood(X), clusters(rng, 50)
    T = naive.features(likelihood, X)
    N, S = R.sum(axis=0), R.T @ T
    W, b = likelihood.weights(N, S)
    assert np.isnan(X[0, 1:]).all()
    np.testing.assert_allclose(T[0] @ W.T + b, 0.0, atol=1e-10 * np.abs(W).max())
    assert likelihood.log_base(X)[0] == 0.0
    np.testing.assert_array_equal(likelihood.log_predictive(X[:1], N, S), 0.0)
    np.testing.assert_array_equal(likelihood.divergence(X[:1], X), 0.0)


@with_exposures
def test_a_column_without_values_keeps_its_prior(family, naive):
    rng = np.random.default_rng(2)
    X = family.rows(rng, 50, 4)
    X[:, 2] = np.nan
    likelihood, R = family.likelihood(X), clusters(rng, 50)
    N, S = R.sum(axis=0), R.T @ naive.features(likelihood, X)
    assert np.isfinite(likelihood.log_marginal(N, S)).all()
    Y = family.rows(rng, 100, 4)
    Y = Y[~np.isnan(Y[:, 2])]
    Y[:, np.arange(X.shape[1]) != 2] = np.nan
    if family.always(5).get("exposure") == 0:
        Y[:, 0] = 1.0
    density = likelihood.log_predictive(Y, N, S)
    empty = np.broadcast_to(density[:, -1:], density.shape)
    np.testing.assert_allclose(density, empty, rtol=1e-9, atol=1e-9)
    assert np.abs(density).max() > 0.0


@with_holes
@pytest.mark.parametrize("widened", ["some", "all"])
def test_a_model_of_complete_rows_takes_rows_with_holes(family, naive, widened):
    """Neither its bound nor what it says of complete rows changes, and rows with holes read as if made for them."""
    rng, D = np.random.default_rng(3), 4
    holed = family.rows(rng, 80, D)
    X = holed[~np.isnan(holed).any(axis=1)]
    narrow, R = family.likelihood(X), clusters(rng, len(X))
    N, S = R.sum(axis=0), R.T @ naive.features(narrow, X)
    missing = np.ones(D, bool) if widened == "all" else np.arange(D) % 2 == 1
    wide, more = narrow.with_missing(missing, S)
    np.testing.assert_allclose(wide.log_marginal(N, more), narrow.log_marginal(N, S), rtol=1e-14)
    for rows in (X, X[:3]):
        (W, b), (w, c) = wide.weights(N, more), narrow.weights(N, S)
        scores = naive.features(narrow, rows) @ w.T + c
        np.testing.assert_allclose(naive.features(wide, rows) @ W.T + b, scores, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(wide.log_predictive(rows, N, more), narrow.log_predictive(rows, N, S))
    Y = np.where(missing, holed, X[0])
    W, b = wide.weights(N, more)
    got = naive.features(wide, Y) @ W.T + b + wide.log_base(Y)[:, None]
    assert np.isfinite(got).all()
    again, S_again = wide.with_missing(np.ones(D, bool), more)
    W, b = again.weights(N, S_again)
    once_more = naive.features(again, Y) @ W.T + b + again.log_base(Y)[:, None]
    np.testing.assert_allclose(got, once_more, rtol=1e-12, atol=1e-12)
    same, S_same = wide.with_missing(missing, more)
    np.testing.assert_array_equal(S_same, more)
    assert same.n_statistics == wide.n_statistics


@with_exposures
def test_the_predictive_without_a_value_is_the_sum_over_the_value(family, naive):
    """For a likelihood and for a whole mixture: one column takes every possible value, the others stay."""
    rng = np.random.default_rng(4)
    X = family.rows(rng, 60, 2)
    likelihood, R = family.likelihood(X), clusters(rng, 60)
    N, S = R.sum(axis=0), R.T @ naive.features(likelihood, X)
    one = family.rows(rng, 60, 1)
    d = one.shape[1] - 1  # the column that `everything` runs through
    values, w = family.everything(X[:, : d + 1] if d else X[:, :1])
    found = Mixture(family.make(X.shape[1]), init="random", n_init_clusters=3, moves=(), random_state=0).fit(X)
    for row in X[~np.isnan(X).any(axis=1)][:3]:
        rows = np.repeat(row[None], len(values), axis=0)
        rows[:, d] = values[:, d]
        if d:
            rows[:, 0] = row[0]
        without = row[None].copy()
        without[0, d] = np.nan
        for density in (lambda Y: likelihood.log_predictive(Y, N, S), lambda Y: found.score_samples(Y)[:, None]):
            total = logsumexp(density(rows), axis=0, b=w[:, None])
            np.testing.assert_allclose(total, density(without)[0], rtol=1e-8, atol=1e-8)


@with_exposures
def test_imputed_values_are_means_or_modes_of_the_mixture(family, naive):
    rng = np.random.default_rng(5)
    X = family.rows(rng, 60, 4)
    likelihood, R = family.likelihood(X), clusters(rng, 60)
    N, S = R.sum(axis=0), R.T @ naive.features(likelihood, X)
    filled, gone = likelihood.impute(X, R, N, S), np.isnan(X)
    np.testing.assert_array_equal(filled[~gone], X[~gone])
    assert np.isfinite(filled).all()
    assert likelihood.valid(filled).all() or family.name in ("poisson", "product")  # means of counts are no counts
    profile = likelihood.profile(N, S)
    for n, d in np.argwhere(gone):
        here = profile.columns == d
        means = R[n] @ profile.means[:, here]
        if len(means) > 1:
            want = means.argmax()
        else:
            is_bit = family.name == "bernoulli" or (family.name == "product" and d % 4 == 3)
            want = means[0] > 0.5 if is_bit else means[0]
        if family.always(5).get("exposure") is not None:
            want = want * X[n, 0]
        assert filled[n, d] == pytest.approx(float(want), rel=1e-12)


def test_a_row_without_any_value_has_the_prior_weights(known_families):
    family = known_families["product-missing"]
    X = family.rows(np.random.default_rng(6), 300, 4)
    found = Mixture(family.make(4), init="k-means++", n_init_clusters=3, moves=(), random_state=0, n_jobs=1).fit(X)
    assert np.isnan(X[0]).all()
    scores = found.model_.posterior(found.summary_).step.log_weights
    want = np.exp(scores - logsumexp(scores))
    np.testing.assert_allclose(found.predict_proba(X[:1])[0], want, rtol=1e-9)
    assert found.score_samples(X[:1])[0] == pytest.approx(0.0, abs=1e-12)
