"""The log scale against the family of the logarithms, what it does with rounded values, and what it refuses."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from scipy.stats import norm

from stickbreak import Mixture, load
from stickbreak.data.check import DataWarning
from stickbreak.likelihoods import (
    Bernoulli,
    DiagonalGaussian,
    Gaussian,
    KnownCovarianceGaussian,
    LinearRegression,
    LogScale,
    Product,
    Sample,
    SphericalGaussian,
    ZeroMeanGaussian,
)

FAMILIES = [Gaussian, DiagonalGaussian, SphericalGaussian, ZeroMeanGaussian, KnownCovarianceGaussian]
fast = {"random_state": 0, "n_jobs": 1}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def clusters(rng, n=300, D=3):
    """Three clusters, log-normal in all columns."""
    return np.exp(3.0 * rng.standard_normal((3, D))[rng.integers(3, size=n)] + 0.3 * rng.standard_normal((n, D)))


# What it is ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("columns", [None, [1], [2, 0]])
def test_it_is_the_family_of_the_logarithms_with_their_jacobian(family, columns, rng, naive):
    X = clusters(rng)
    logs = range(3) if columns is None else columns
    Z, jacobian = X.copy(), np.zeros(len(X))
    for d in logs:
        Z[:, d] = np.log(X[:, d])
        jacobian -= Z[:, d]
    own, plain = LogScale(family(), columns=columns).resolve(Sample.of(X)), family().resolve(Sample.of(Z))
    R = rng.dirichlet(np.ones(2), len(X))
    T = naive.features(own, X)
    np.testing.assert_allclose(T, naive.features(plain, Z), rtol=1e-12)
    N, S = R.sum(axis=0), R.T @ T
    np.testing.assert_allclose(own.log_base(X), plain.log_base(Z) + jacobian, rtol=1e-12)
    np.testing.assert_allclose(own.log_marginal(N, S), plain.log_marginal(N, S), rtol=1e-10)
    expected = plain.log_predictive(Z, N, S) + jacobian[:, None]
    np.testing.assert_allclose(own.log_predictive(X, N, S), expected, rtol=1e-10)
    np.testing.assert_allclose(own.divergence(X, X[:4]), plain.divergence(Z, Z[:4]), rtol=1e-10)
    for mine, other in zip(own.posterior(N, S), plain.posterior(N, S)):
        np.testing.assert_allclose(mine, other, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian", "spherical_gaussian"])
def test_whole_fits_are_those_of_the_logarithms(name, rng):
    """Searches end where a lap gains less than 0.01 nats for each cluster, laps from the same clusters in the same digits."""
    X = clusters(rng)
    jacobian = np.log(X).sum()
    family = {"gaussian": Gaussian, "diagonal_gaussian": DiagonalGaussian, "spherical_gaussian": SphericalGaussian}
    own, plain = Mixture(LogScale(family[name]()), **fast).fit(X), Mixture(name, **fast).fit(np.log(X))
    assert own.n_clusters_ == plain.n_clusters_ == 3
    np.testing.assert_array_equal(own.labels_, plain.labels_)
    assert own.lower_bound_ == pytest.approx(plain.lower_bound_ - jacobian, abs=0.01)
    own.set_params(init=own.labels_, moves=(), max_laps=5).fit(X)
    plain.set_params(init=plain.labels_, moves=(), max_laps=5).fit(np.log(X))
    np.testing.assert_allclose(own.lower_bounds_, np.array(plain.lower_bounds_) - jacobian, rtol=1e-12)
    np.testing.assert_allclose(own.means_, plain.means_, rtol=1e-10)


def test_missing_values_have_no_jacobian(rng):
    X = clusters(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    own = Mixture(LogScale(DiagonalGaussian()), tol=1e-6, **fast).fit(X)
    plain = Mixture("diagonal_gaussian", tol=1e-6, **fast).fit(np.log(X))
    assert own.lower_bound_ == pytest.approx(plain.lower_bound_ - np.nansum(np.log(X)), rel=1e-8)
    filled = own.impute(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert (filled > 0.0).all()


def test_single_precision_finds_the_same(rng):
    X = 1e4 * clusters(rng).astype(np.float32)
    single, double = (Mixture("log_scale", **fast).fit(rows) for rows in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(single.labels_, double.labels_)
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, rel=1e-6, abs=1e-2)


def test_the_profile_has_log_normal_moments(rng):
    X = np.exp(rng.normal(1.0, 0.5, (4000, 1)))
    likelihood = LogScale(DiagonalGaussian()).resolve(Sample.of(X))
    T = likelihood.features(X, np.empty((4000, 2)))
    profile = likelihood.profile(np.array([4000.0]), T.sum(axis=0, keepdims=True))
    assert profile.means[0, 0] == pytest.approx(np.exp(1.125), rel=0.03)
    assert profile.variances[0, 0] == pytest.approx((np.exp(0.25) - 1.0) * np.exp(2.25), rel=0.1)
    drawn = likelihood.sample(4000.0, T.sum(axis=0), rng, 4000)
    assert np.log(drawn).mean() == pytest.approx(1.0, abs=0.05)


def test_columns_of_a_product_by_name(rng):
    X = clusters(rng)
    frame = pd.DataFrame(X, columns=["income", "height", "price"])
    frame["member"] = rng.integers(2, size=len(X))
    parts = {
        "numbers": (LogScale(Gaussian(), columns=["price", "income"]), ["height", "price", "income"]),
        "bits": (Bernoulli(), ["member"]),
    }
    model = Mixture(Product(parts), **fast).fit(frame)
    np.testing.assert_array_equal(model.model_.likelihood.parts["numbers"][0].columns, [1, 2])
    assert model.n_clusters_ == 3
    mask = LogScale(columns=[True, False, True]).locate(None, 3)
    np.testing.assert_array_equal(mask.columns, [0, 2])


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_models_are_the_same_bits(family, rng, tmp_path):
    X = np.ceil(10.0 * clusters(rng))
    model = Mixture(LogScale(family(), columns=[0, 2]), max_laps=5, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.lower_bound_ == model.lower_bound_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


# Rounded values --------------------------------------------------------------------------------------------------------


def test_a_rounded_value_claims_no_more_than_the_probability_of_its_step():
    """E[log p(v)] + log(2 h / w) <= log(P(step) / w) for every Gaussian of the logarithm."""
    values = np.array([1.0, 2.0, 3.0, 10.0, 500.0])[:, None]
    x = np.repeat(values, [50, 40, 30, 20, 10], axis=0)
    likelihood = LogScale(DiagonalGaussian()).resolve(Sample.of(x))
    np.testing.assert_array_equal(likelihood.steps, [1.0])
    family = likelihood.family
    squares, z = likelihood.features(values, np.empty((5, 2))).T
    v, variance = family.origin + family.unit * z, family.unit**2 * (squares - z**2)
    jacobian = likelihood.log_base(values) - family.log_base(z[:, None])
    edges = np.log(np.hstack([values - 0.5, values + 0.5]))
    np.testing.assert_allclose(v, edges.mean(axis=1))
    np.testing.assert_allclose(np.sqrt(12.0 * variance), np.ptp(edges, axis=1))
    for mean in (-1.0, 0.0, 2.0, 6.0):
        for width in (1e-3, 0.1, 1.0, 10.0):
            claimed = norm.logpdf(v, mean, width) - 0.5 * variance / width**2 + jacobian
            step = norm.cdf(edges[:, 1], mean, width) - norm.cdf(edges[:, 0], mean, width)
            known = step > 0.0
            assert (claimed[known] <= np.log(step[known]) + 1e-9).all()


@pytest.mark.parametrize("family", [Gaussian, DiagonalGaussian, SphericalGaussian])
def test_the_bound_of_whole_numbers_is_one_on_their_probability(family, rng):
    """No distribution gives them more than their own frequencies do, however small the numbers."""
    X = rng.geometric(0.4, (2000, 1)).astype(float)
    model = Mixture(LogScale(family()), **fast).fit(X)
    shares = np.unique(X, return_counts=True)[1] / len(X)
    assert model.lower_bound_ < len(X) * xlogy(shares, shares).sum()
    assert np.isfinite(model.score(X))


def test_constant_columns_are_set_aside(rng):
    X = np.column_stack([clusters(rng), np.full(300, 7.0), np.resize([1.0, 1.0 + 2e-16], 300)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        wide, narrow = (Mixture(LogScale(), **fast).fit(rows) for rows in (X, X[:, :3]))
    np.testing.assert_array_equal(np.isinf(wide.model_.likelihood.steps), [False, False, False, True, True])
    np.testing.assert_array_equal(wide.labels_, narrow.labels_)


def test_the_bound_is_below_that_of_steps_as_narrow_as_rounding(rng):
    """Finer rounding changes the bound per unit of x by little, so bounds of either scale compare."""
    X = 40.0 * clusters(rng)
    exact, rounded = Mixture(LogScale(), **fast).fit(X), Mixture(LogScale(), **fast).fit(np.ceil(X))
    assert rounded.model_.likelihood.steps.max() == 1.0
    assert rounded.lower_bound_ == pytest.approx(exact.lower_bound_, rel=0.02)


# What is refused -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0: row 7, column 1 .'income'.. LogScale takes positive numbers"),
        (-2.0, "-2: row 7"),
        (1e-200, "1e-200: row 7"),
    ],
)
def test_other_than_positive_values_are_named(value, words, rng):
    frame = pd.DataFrame(clusters(rng), columns=["a", "income", "b"])
    frame["a"] -= 100.0  # is not on the log scale
    likelihood = LogScale(Gaussian(), columns=["income"])
    model = Mixture(likelihood, **fast).fit(frame)
    frame.loc[7, "income"] = value
    for method in (Mixture(likelihood, **fast).fit, model.predict, model.score_samples):
        with pytest.raises(ValueError, match=words):
            method(frame)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LogScale(Bernoulli()), "family must be a likelihood of measurements"),
        (lambda: LogScale("gaussian"), "family must be a likelihood of measurements"),
        (lambda: LogScale(LogScale()), "family must be a likelihood of measurements"),
        (lambda: LogScale(LinearRegression()).locate(None, 3), "family must be one that describes all columns"),
        (lambda: LogScale(columns=[]).locate(None, 3), "columns must be at least one column"),
        (lambda: LogScale(columns=[1, -2]).locate(None, 3), "columns must be columns that differ"),
        (lambda: LogScale(columns=[3]).locate(None, 3), "there is no column 3"),
        (lambda: LogScale(columns=["x"]).locate(["a", "b"], 2), "there is no column 'x'"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "change",
    [{"columns": np.array([0, 9])}, {"steps": np.array([-1.0, 0.0])}, {"n_columns": 5}, {"steps": np.zeros(3)}],
)
def test_models_from_files_are_checked(change, rng, naive):
    X = clusters(rng)
    likelihood = LogScale(columns=[0, 2]).resolve(Sample.of(X))
    S = naive.features(likelihood, X).sum(axis=0, keepdims=True)
    likelihood.check(3, np.array([300.0]), S)
    with pytest.raises(ValueError, match=r"must be|does not fit|no column"):
        replace(likelihood, **change).check(3, np.array([300.0]), S)


def test_hyperparameters_are_continued_only_between_the_same_columns(rng):
    X = clusters(rng)
    learnt = Mixture(LogScale(columns=[0]), **fast).fit(X).model_.likelihood
    names = learnt.tunables()
    same, other = (LogScale(columns=columns).locate(None, 3) for columns in ([0], [1]))
    np.testing.assert_array_equal(same.continued(names, learnt).family.scale, learnt.family.scale)
    assert other.continued(names, learnt) is other
