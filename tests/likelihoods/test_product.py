"""Products against their parts, and what they refuse."""

import numpy as np
import pandas as pd
import pytest

from stickbreak import Mixture
from stickbreak.likelihoods import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    LinearRegression,
    Multinomial,
    Poisson,
    Product,
    Sample,
)


def parts_of(rng, n=60):
    """Rows and parts whose columns come out of order and interleave; column 5 belongs to none."""
    X = np.empty((n, 9))
    X[:, [4, 0]] = rng.normal(50.0, [3.0, 8.0], (n, 2))
    X[:, [7, 2]] = rng.integers([3, 14], size=(n, 2))
    X[:, [1]] = rng.poisson(7.0, (n, 1))
    X[:, [3, 8, 6]] = rng.integers(2, size=(n, 3))
    X[:, 5] = rng.normal(size=n)
    parts = {
        "sizes": (Gaussian(degrees_of_freedom=5.0), [4, 0]),
        "kinds": (Categorical(0.7, n_levels=[3, 14]), [7, 2]),
        "counts": (Poisson(), [1]),
        "flags": (Bernoulli(0.5, 1.5), [3, 8, 6]),
    }
    return X, parts


def split(S, parts):
    sizes = np.cumsum([part.n_statistics for part in parts])
    return np.split(S, sizes[:-1], axis=-1)


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    X, parts = parts_of(rng)
    product = Product(parts).resolve(Sample.of(X))
    own = [(part.resolve(Sample.of(X[:, columns])), columns) for part, columns in parts.values()]
    return X, product, own, rng.dirichlet(np.full(3, 0.4), len(X))


def test_log_marginals_of_many_hyperparameters_in_turn(case, naive, monkeypatch):
    """Parts that are as they were are not computed again, and those that are not are."""
    X, product, _, R = case
    N, S = R.sum(axis=0), R.T @ naive.features(product, X)
    of = product.log_marginals_of(N, S)
    computed = []
    monkeypatch.setattr(
        Gaussian, "log_marginal", lambda *given, own=Gaussian.log_marginal: computed.append(1) or own(*given)
    )
    of(product)
    of(product.scaled("kinds.concentration", 2.0))
    assert len(computed) == 1
    monkeypatch.undo()
    others = [product]
    for name in ("kinds.concentration", "sizes.scale", "kinds.concentration", "counts.rate"):
        others += [others[-1].scaled(name, 1.7), others[-1].scaled(name, 0.3)]
    for other in [*others, product]:
        np.testing.assert_array_equal(of(other), other.log_marginal(N, S))


def test_a_product_is_the_sum_of_its_parts(case, naive):
    X, product, own, R = case
    T = naive.features(product, X)
    apart = [naive.features(part, X[:, columns]) for part, columns in own]
    np.testing.assert_array_equal(T, np.hstack(apart))
    assert product.n_statistics == T.shape[1] == sum(part.n_statistics for part, _ in own)
    N, S = R.sum(axis=0), R.T @ T
    sums = split(S, [part for part, _ in own])
    W, b = product.weights(N, S)
    weights = [part.weights(N, s) for (part, _), s in zip(own, sums)]
    np.testing.assert_array_equal(W, np.hstack([w for w, _ in weights]))
    np.testing.assert_allclose(b, sum(c for _, c in weights), rtol=1e-14)
    both = list(zip(own, sums))
    for got, want in (
        (product.log_base(X), sum(part.log_base(X[:, c]) for part, c in own)),
        (product.log_marginal(N, S), sum(part.log_marginal(N, s) for (part, _), s in both)),
        (product.log_predictive(X, N, S), sum(part.log_predictive(X[:, c], N, s) for (part, c), s in both)),
        (product.divergence(X, X[:4]), sum(part.divergence(X[:, c], X[:4, c]) for part, c in own)),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)
    posterior = product.posterior(N, S)
    assert list(posterior) == ["sizes", "kinds", "counts", "flags"]
    np.testing.assert_array_equal(posterior["counts"].rates, own[2][0].posterior(N, sums[2]).rates)
    profile = product.profile(N, S)
    np.testing.assert_array_equal(profile.columns, [4, 0] + [7] * 3 + [2] * 14 + [1, 3, 8, 6])
    np.testing.assert_array_equal(profile.levels, [-1, -1, *range(3), *range(14), -1, -1, -1, -1])
    assert profile.means.shape == profile.variances.shape == (3, 23)


def test_draws_are_those_of_the_parts(case, naive):
    X, product, own, R = case
    N, S = R.sum(axis=0), R.T @ naive.features(product, X)
    drawn = product.sample(N[0], S[0], np.random.default_rng(1), 4000)
    assert drawn.shape == (4000, 9)
    assert np.isnan(drawn[:, 5]).all()
    for (part, columns), s in zip(own, split(S, [part for part, _ in own])):
        profile = part.profile(N[:1], s[:1])
        if part.n_statistics > 17 - 1:  # codes: how often each level is drawn
            levels = [np.mean(drawn[:, columns[c]] == level) for c, level in zip(profile.columns, profile.levels)]
            np.testing.assert_allclose(levels, profile.means[0], atol=0.04)
        else:
            error = 5.0 * drawn[:, columns].std(axis=0) / np.sqrt(4000)
            assert np.all(np.abs(drawn[:, columns].mean(axis=0) - profile.means[0]) < error)


def test_two_halves_of_a_diagonal_gaussian_are_the_whole():
    """Also when they are searched for clusters."""
    rng = np.random.default_rng(2)
    X = rng.normal(0.0, 1.0, (300, 4)) + 9.0 * rng.integers(3, size=(300, 1)) + [0.0, 50.0, -3.0, 1e4]
    X[rng.random(X.shape) < 0.1] = np.nan
    halves = Product({"odd": (DiagonalGaussian(), [3, 1]), "even": (DiagonalGaussian(), [0, 2])})
    whole, found = (
        Mixture(kind, learn=False, random_state=0, n_jobs=1).fit(X) for kind in (DiagonalGaussian(), halves)
    )
    assert whole.n_clusters_ == found.n_clusters_ == 3
    assert found.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-9)
    np.testing.assert_array_equal(found.labels_, whole.labels_)
    np.testing.assert_allclose(found.predict_proba(X), whole.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(found.score_samples(X), whole.score_samples(X), rtol=1e-7)
    np.testing.assert_allclose(found.impute(X), whole.impute(X), rtol=1e-7)
    np.testing.assert_allclose(found.parts_["odd"].means, whole.means_[:, [3, 1]], rtol=1e-7)


def test_a_product_of_products(case, naive):
    X, product, _, R = case
    parts = parts_of(np.random.default_rng(0))[1]
    inner = Product({"kinds": (parts["kinds"][0], [1, 0]), "counts": (Poisson(), [2])})  # of columns 2, 7 and 1
    outer = Product({"sizes": parts["sizes"], "inner": (inner, [2, 7, 1]), "flags": parts["flags"]})
    outer = outer.resolve(Sample.of(X))
    S, T = R.T @ naive.features(product, X), R.T @ naive.features(outer, X)
    N = R.sum(axis=0)
    np.testing.assert_allclose(outer.log_marginal(N, T), product.log_marginal(N, S), rtol=1e-13)
    np.testing.assert_allclose(outer.log_predictive(X, N, T), product.log_predictive(X, N, S), rtol=1e-12)
    assert "inner.kinds.concentration" in outer.tunables()
    assert outer.scaled("inner.kinds.concentration", 2.0).log_marginal(N, T)[0] != outer.log_marginal(N, T)[0]


def test_columns_by_name_and_from_the_end():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"kind": rng.choice(["a", "b"], 200), "n": rng.poisson(4.0, 200), "size": rng.normal(size=200)}
    )
    frame["size"] += np.where(frame["kind"] == "a", 0.0, 30.0)
    by_name = Product(
        {"size": (DiagonalGaussian(), ["size"]), "rest": (Categorical(), ["kind"]), "n": (Poisson(), "n")}
    )
    by_number = Product({"size": (DiagonalGaussian(), [-1]), "rest": (Categorical(), [0]), "n": (Poisson(), 1)})
    one, other = (Mixture(kind, random_state=0, n_jobs=1).fit(frame) for kind in (by_name, by_number))
    assert one.n_clusters_ == 2
    assert one.lower_bounds_ == other.lower_bounds_
    assert by_name.parts["size"][1] == ["size"]  # as it was given


def test_columns_of_no_part_are_ignored():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2)) + 20.0 * rng.integers(2, size=(200, 1))
    alone = Mixture(Product({"x": (DiagonalGaussian(), [0, 1])}), random_state=0, n_jobs=1).fit(X)
    junk = np.where(rng.random((200, 1)) < 0.5, np.nan, 1e300)
    more = Mixture(Product({"x": (DiagonalGaussian(), [0, 1])}), random_state=0, n_jobs=1).fit(np.hstack([X, junk]))
    np.testing.assert_array_equal(more.labels_, alone.labels_)
    assert more.lower_bound_ == pytest.approx(alone.lower_bound_, rel=1e-12)
    np.testing.assert_array_equal(more.impute(np.hstack([X, junk])), np.hstack([X, junk]))


def test_lines_may_share_their_regressors_with_a_part_that_models_them():
    """p(x) p(y | x): x has a cluster's distribution, and the line of y on x is one of the cluster too."""
    rng = np.random.default_rng(5)
    z = rng.integers(2, size=300)
    x = rng.normal(30.0 * z, 1.0)
    y = np.where(z, 5.0 - 2.0 * x, 3.0 * x) + 0.1 * rng.normal(size=300)
    kind = Product({"x": (DiagonalGaussian(), [0]), "line": (LinearRegression(), [0, 1])})
    found = Mixture(kind, random_state=0, n_jobs=1).fit(x[:, None], y)
    assert found.n_clusters_ == 2
    np.testing.assert_allclose(np.sort(found.parts_["line"].coefficients.ravel()), [-2.0, 3.0], atol=0.2)
    np.testing.assert_allclose(found.predict_targets(x[:, None]), y, atol=1.0)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (None, "parts must be a dict"),
        ({}, "parts must be a dict"),
        ({"a": DiagonalGaussian()}, "parts must be a dict"),
        ({"a": (DiagonalGaussian, [0])}, "parts must be a dict"),
        ({"a": ("gaussian", [0])}, "parts must be a dict"),
        ({"a": (DiagonalGaussian(), [0], 1)}, "parts must be a dict"),
    ],
)
def test_what_is_no_dict_of_parts_is_refused(parts, words):
    with pytest.raises(ValueError, match=words):
        Product(parts)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"a": (DiagonalGaussian(), [])}, "part 'a' of the product has no columns"),
        ({"a": (DiagonalGaussian(), [3])}, "no column 3: the table has 3"),
        ({"a": (DiagonalGaussian(), [-4])}, "no column -4: the table has 3"),
        ({"a": (DiagonalGaussian(), ["z"])}, "no column 'z': the table has no names"),
        ({"a": (DiagonalGaussian(), [0, 1]), "b": (Gaussian(), [1, 2])}, "column 1 belongs to more than one part"),
        ({"a": (DiagonalGaussian(), [0, 0])}, "column 0 belongs to more than one part"),
        ({"a": (DiagonalGaussian(), [0, -3])}, "column 0 belongs to more than one part"),
    ],
)
def test_wrong_columns_are_refused(parts, words):
    with pytest.raises(ValueError, match=words):
        Mixture(Product(parts)).fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_values_are_judged_by_the_part_they_belong_to():
    X, parts = parts_of(np.random.default_rng(0))
    found = Mixture(Product(parts), learn=False, random_state=0, max_laps=30, n_jobs=1).fit(X)
    for column, value, words in (
        (4, np.inf, r"contains infinity: row 3, column 4"),
        (7, 3.0, r"contains 3: row 3, column 7\. Categorical takes codes"),
        (2, 0.5, r"contains 0\.5: row 3, column 2\. Categorical takes codes"),
        (1, -1.0, r"contains -1: row 3, column 1\. Poisson takes whole numbers"),
        (8, 2.0, r"contains 2: row 3, column 8\. Bernoulli takes 0 or 1"),
    ):
        wrong = X.copy()
        wrong[3, column] = value
        for method in (Mixture(Product(parts)).fit, found.predict):
            with pytest.raises(ValueError, match=words):
                method(wrong)
    right = X.copy()
    right[3, [7, 2, 1, 3]] = np.nan
    assert found.predict(right).shape == (60,)
    np.testing.assert_array_equal(found.model_.likelihood.may_miss(9), True)
    np.testing.assert_array_equal(found.model_.likelihood.fills_in(9), [1, 0, 0, 0, 1, 0, 0, 0, 0])


def test_documents_may_be_a_part():
    rng = np.random.default_rng(6)
    z = rng.integers(2, size=200)
    words = rng.multinomial(20, np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])[z])
    X = np.column_stack([words, rng.normal(10.0 * z, 1.0)])
    kind = Product({"words": (Multinomial(), [0, 1, 2]), "size": (DiagonalGaussian(), [3])})
    found = Mixture(kind, random_state=0, n_jobs=1).fit(X)
    assert found.n_clusters_ == 2
    X[5, 3] = np.nan
    assert found.predict(X)[5] == found.labels_[5]
    X[5, 0] = np.nan
    with pytest.raises(ValueError, match="NaN: row 5, column 0"):
        found.predict(X)
