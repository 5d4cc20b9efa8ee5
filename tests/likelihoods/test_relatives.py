"""Families that coincide where one is a case of the other."""

import numpy as np
import pytest

from stickbreak import Mixture
from stickbreak import likelihoods as lk
from stickbreak.likelihoods import Sample

R = np.random.default_rng(0).dirichlet([0.4, 0.4], 60)


def assert_same_likelihood(naive, one, X, other, Y, rtol=1e-9, divergence=True):
    """Two likelihoods say the same of rows X and of rows Y, which are the same data put otherwise."""
    sums = [(R.sum(axis=0), R.T @ naive.features(q, rows)) for q, rows in ((one, X), (other, Y))]
    both = list(zip((one, other), (X, Y), sums))
    base = [R.T @ q.log_base(rows) for q, rows, _ in both]
    marginal = [q.log_marginal(N, S) + b for (q, _, (N, S)), b in zip(both, base)]
    scores = []
    for q, rows, (N, S) in both:
        W, b = q.weights(N, S)
        scores.append(naive.features(q, rows) @ W.T + b + q.log_base(rows)[:, None])
    predictive = [q.log_predictive(rows, N, S) for q, rows, (N, S) in both]
    pairs = [marginal, scores, predictive]
    if divergence:
        pairs.append([q.divergence(rows, rows[:4]) for q, rows, _ in both])
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


def normal_rows(D=1, seed=1):
    rng = np.random.default_rng(seed)
    return 50.0 + 3.0 * rng.standard_normal((60, D)) + 20.0 * rng.integers(3, size=(60, 1))


@pytest.mark.parametrize("kind", ["given", "default"])
def test_gaussians_of_one_column_are_the_same(naive, kind):
    """Wishart(nu, B^-1) is Gamma(nu / 2, B / 2); by default nu = 3 and B is a tenth of the variance."""
    X = normal_rows()
    common = {"mean": 45.0, "mean_precision": 0.3} if kind == "given" else {}
    full, gamma = ({"degrees_of_freedom": 3.4, "scale": 5.0}, {"shape": 1.7, "rate": 2.5}) if common else ({}, {})
    gaussian = lk.Gaussian(**common, **full).resolve(Sample.of(X))
    for other in (lk.DiagonalGaussian, lk.SphericalGaussian):
        relative = other(**common, **gamma).resolve(Sample.of(X))
        assert_same_likelihood(naive, relative, X, gaussian, X)
        N, S = np.array([60.0]), naive.features(relative, X).sum(axis=0, keepdims=True)
        a = relative.posterior(N, S)
        b = gaussian.posterior(N, naive.features(gaussian, X).sum(axis=0, keepdims=True))
        np.testing.assert_allclose(a.means, b.means)
        np.testing.assert_allclose(np.ravel(a.variances), np.ravel(b.covariances))


def test_whole_fits_of_one_column_are_the_same():
    X = normal_rows()
    gaussian, diagonal, spherical = (
        Mixture(name, learn=False, random_state=0, n_jobs=1).fit(X)
        for name in ("gaussian", "diagonal_gaussian", "spherical_gaussian")
    )
    assert gaussian.n_clusters_ == 3
    for found in (diagonal, spherical):
        np.testing.assert_array_equal(found.labels_, gaussian.labels_)
        assert found.lower_bound_ == pytest.approx(gaussian.lower_bound_, rel=1e-8)


def test_a_known_diagonal_covariance_is_one_for_each_column(naive):
    X = normal_rows(3)
    whole = lk.KnownCovarianceGaussian([4.0, 1.0, 9.0], [40.0, 50.0, 60.0], 0.3).resolve(Sample.of(X))
    parts = lk.Product(
        {str(d): (lk.KnownCovarianceGaussian(s, m, 0.3), [d]) for d, (s, m) in enumerate([(4, 40), (1, 50), (9, 60)])}
    ).resolve(Sample.of(X))
    assert_same_likelihood(naive, whole, X, parts, X)


def test_a_gamma_of_shape_one_is_exponential(naive):
    X = np.random.default_rng(2).exponential([1.0, 20.0], (60, 2))
    for prior in ({}, {"shape": [0.7, 3.0], "rate": 5.0}):
        gamma, exponential = (kind(**prior).resolve(Sample.of(X)) for kind in (lk.Gamma, lk.Exponential))
        assert_same_likelihood(naive, gamma, X, exponential, X)


def test_durations_of_zero_are_exponential_only():
    X = np.array([[0.0, 2.0], [1.0, np.nan]])
    assert lk.Exponential().resolve(Sample.of(X)).valid(X).all()
    np.testing.assert_array_equal(lk.Gamma().resolve(Sample.of(X)).valid(X), [[False, True], [True, True]])


def test_bits_are_codes_of_two_levels(naive):
    X = np.random.default_rng(3).integers(2, size=(60, 3)).astype(float)
    X[7, 1] = X[8] = np.nan
    a, b = np.array([0.4, 1.0, 2.0]), np.array([1.3, 0.2, 1.0])
    bits = lk.Bernoulli(a, b).resolve(Sample.of(X))
    codes = lk.Categorical([[q, p] for p, q in zip(a, b)], n_levels=2).resolve(Sample.of(X))
    assert_same_likelihood(naive, bits, X, codes, X)
    N, S, T = R.sum(axis=0), R.T @ naive.features(bits, X), R.T @ naive.features(codes, X)
    np.testing.assert_array_equal(bits.impute(X, R, N, S), codes.impute(X, R, N, T))


def test_documents_of_one_word_are_codes(naive):
    codes = np.random.default_rng(4).integers(5, size=60)
    c = np.array([0.2, 1.0, 0.5, 2.0, 0.1])
    words = lk.Multinomial(c).resolve(Sample.of(np.eye(5)[codes]))
    X = codes[:, None].astype(float)
    levels = lk.Categorical(c, n_levels=5).resolve(Sample.of(X))
    assert_same_likelihood(naive, words, np.eye(5)[codes], levels, X, divergence=False)
    N = (c.sum() + 1.0) * levels.divergence(X, X[:4])  # documents count every word
    np.testing.assert_allclose(words.divergence(np.eye(5)[codes], np.eye(5)[codes[:4]]), N, rtol=1e-9, atol=1e-12)


# Exposures ------------------------------------------------------------------------------------------------------------


def test_an_exposure_of_one_is_none(naive):
    X = np.random.default_rng(5).poisson([2.0, 30.0], (60, 2)).astype(float)
    X[3, 1] = X[8] = np.nan
    plain = lk.Poisson([0.7, 2.0], 0.4).resolve(Sample.of(X))
    for place in (0, 2, -1):
        Y = np.insert(X, place % 3, 1.0, axis=1)
        shape = np.insert([0.7, 2.0], place % 3, 9.0)  # that of the column of exposures is not used
        exposed = lk.Poisson(shape, 0.4, exposure=place).resolve(Sample.of(Y))
        assert_same_likelihood(naive, exposed, Y, plain, X)
        N, S = R.sum(axis=0), R.T @ naive.features(exposed, Y)
        rates = exposed.posterior(N, S).rates
        assert np.isnan(rates[:, place]).all()
        np.testing.assert_allclose(
            np.delete(rates, place, axis=1), plain.posterior(N, R.T @ naive.features(plain, X)).rates
        )
        profile = exposed.profile(N, S)
        assert sorted(profile.columns) == sorted(set(range(3)) - {place % 3})


def test_an_exposure_of_whole_numbers_is_so_many_rows(naive):
    """A count over e units and e counts of one unit have the same posterior."""
    rng = np.random.default_rng(6)
    e = rng.integers(1, 4, 20)
    units = rng.poisson(4.0, e.sum()).astype(float)
    sums = np.add.reduceat(units, np.concatenate([[0], np.cumsum(e)[:-1]]))
    exposed = lk.Poisson(0.7, 0.2, exposure=0).resolve(Sample.of(np.column_stack([e, sums])))
    plain = lk.Poisson(0.7, 0.2).resolve(Sample.of(units[:, None]))
    N, S = np.array([20.0]), naive.features(exposed, np.column_stack([e, sums]).astype(float)).sum(axis=0)[None]
    n, s = np.array([float(e.sum())]), units.sum()[None, None]
    assert exposed.posterior(N, S).rates[0, 1] == pytest.approx(plain.posterior(n, s).rates[0, 0], rel=1e-14)
    assert exposed.log_marginal(N, S)[0] == pytest.approx(plain.log_marginal(n, s)[0], rel=1e-12)


def test_exposed_counts_are_negative_binomial(naive):
    from scipy import stats

    rng = np.random.default_rng(7)
    e = rng.uniform(0.1, 9.0, 60)
    X = np.column_stack([rng.poisson(e * 3.0), e, rng.poisson(e * 20.0)]).astype(float)
    q = lk.Poisson([0.7, 1.0, 2.0], [0.2, 1.0, 0.5], exposure=1).resolve(Sample.of(X))
    got = q.log_predictive(X, R.sum(axis=0), R.T @ naive.features(q, X))
    want = np.zeros((60, 2))
    for k, w in enumerate(R.T):
        for d in (0, 2):
            a, b = q.shape[d] + w @ X[:, d], q.rate[d] + w @ e
            want[:, k] += stats.nbinom(a, b / (b + e)).logpmf(X[:, d])
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_exposures_by_name_and_wrong_exposures():
    import pandas as pd

    rng = np.random.default_rng(8)
    e = rng.uniform(0.5, 8.0, 200)
    rate = np.where(np.arange(200) % 2, 2.0, 40.0)
    frame = pd.DataFrame({"events": rng.poisson(rate * e).astype(float), "years": e})
    found = Mixture(lk.Poisson(exposure="years"), random_state=0, n_jobs=1).fit(frame)
    assert found.n_clusters_ == 2
    np.testing.assert_allclose(np.sort(found.rates_[:, 0]), [2.0, 40.0], rtol=0.1)
    by_number = Mixture(lk.Poisson(exposure=-1), random_state=0, n_jobs=1).fit(frame.to_numpy())
    assert by_number.lower_bounds_ == found.lower_bounds_
    with pytest.raises(ValueError, match="no column 'age': there are events, years"):
        Mixture(lk.Poisson(exposure="age")).fit(frame)
    with pytest.raises(ValueError, match="no column 7: the table has 2"):
        Mixture(lk.Poisson(exposure=7)).fit(frame)
    for value, word in ((0.0, "0: row 3"), (-1.0, "-1: row 3"), (np.nan, "NaN: row 3"), (np.inf, "infinity: row 3")):
        wrong = frame.copy()
        wrong.loc[3, "years"] = value
        with pytest.raises(ValueError, match=rf"contains {word}, column 1 \('years'\)"):
            Mixture(lk.Poisson(exposure="years")).fit(wrong)
