"""The data check finds what misleads clusters, names it, and says nothing of data that are fine."""

import time

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets

from stickbreak import likelihoods as lk
from stickbreak.data import ArraySource, SparseSource
from stickbreak.data.check import sampled_rows
from stickbreak.data.sparse_rows import sparse_rows
from stickbreak.estimators._check import checked
from stickbreak.inference import Threads

N = 1500


class Fit:
    """What the check asks of an estimator."""

    likelihood = None
    _takes_latent = False

    def __init__(self, names, D):
        self.n_features_in_ = D
        if names is not None:
            self.feature_names_in_ = names


def check(X, likelihood=None, names=None, weights=None, source=ArraySource):
    likelihood = (likelihood or lk.Gaussian()).locate(names, X.shape[1])
    with Threads(1) as threads:
        return checked(Fit(names, X.shape[1]), likelihood, source(X, weights), threads)[1]


def found(*args, **kwargs):
    """Kinds with their columns."""
    return [(finding.kind, *finding.columns) for finding in check(*args, **kwargs)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def blobs(rng, n=N, D=2, K=4, separation=8.0, shares=None):
    labels = rng.choice(K, n, p=shares)
    return rng.normal(0.0, separation, (K, D))[labels] + rng.standard_normal((n, D))


def ring_of_codes(rng, n, L):
    return np.eye(L)[rng.integers(L, size=n)]


# What is there is found ------------------------------------------------------------------------------------------------

ADDED = {  # columns that go after two good ones, and the findings, by the numbers of columns
    "constant": (lambda rng, X: np.full(N, 7.0), [("constant", 2)]),
    "copy": (lambda rng, X: X[:, 0], [("repeated", 0, 2)]),
    "copy in other units": (lambda rng, X: 3.0 - 0.01 * X[:, 1], [("repeated", 1, 2)]),
    "two copies": (lambda rng, X: np.column_stack([X[:, 0], -X[:, 0]]), [("repeated", 0, 2, 3)]),
    "copy with 0.1% of noise": (lambda rng, X: noisy(rng, X[:, 0], 0.001), [("repeated", 0, 2)]),
    "copy with 2% of noise": (lambda rng, X: noisy(rng, X[:, 0], 0.02), [("repeated", 0, 2)]),
    "logarithm": (lambda rng, X: on_two_scales(rng.gamma(9.0, 1.0, N), np.log10), [("repeated", 2, 3)]),
    "rounded logarithm": (lambda rng, X: on_two_scales(rng.gamma(9.0, 1.0, N), rounded_log), [("repeated", 2, 3)]),
    "power": (lambda rng, X: on_two_scales(rng.gamma(9.0, 1.0, N), lambda x: x**-1.5), [("repeated", 2, 3)]),
    "sum": (lambda rng, X: X.sum(axis=1), [("collinear", 0, 1, 2)]),
    "rounded sum": (lambda rng, X: np.round(X.sum(axis=1), 2), [("collinear", 0, 1, 2)]),
    "shares of a whole": (lambda rng, X: rng.dirichlet(np.ones(4), N), [("collinear", 2, 3, 4, 5)]),
    "row numbers": (lambda rng, X: np.arange(N) + 1.0, [("nearly unique", 2)]),
    "shuffled row numbers": (lambda rng, X: rng.permutation(N) + 100.0, [("nearly unique", 2)]),
    "codes": (lambda rng, X: rng.integers(5, size=N), [("integer-coded", 2)]),
    "bits": (lambda rng, X: rng.integers(2, size=N), [("integer-coded", 2)]),
    "standardised codes": (lambda rng, X: rng.integers(5, size=N) / np.sqrt(2.0) - 1.4, [("integer-coded", 2)]),
    "one-hot": (lambda rng, X: ring_of_codes(rng, N, 4), [("one-hot", 2, 3, 4, 5)]),
    "income": (lambda rng, X: rng.lognormal(10.0, 0.9, N), [("skewed", 2)]),
    "counts with a long tail": (lambda rng, X: np.floor(rng.lognormal(5.0, 1.5, N)), [("skewed", 2)]),
    "missing as -999": (lambda rng, X: np.where(rng.random(N) < 0.02, -999.0, X[:, 1] ** 2), [("sentinels", 2)]),
    "missing as 0": (lambda rng, X: np.where(rng.random(N) < 0.02, 0.0, rng.normal(120, 15, N)), [("sentinels", 2)]),
    "mostly 999": (lambda rng, X: np.where(rng.random(N) < 0.9, 999.0, rng.gamma(2.0, 3.0, N)), [("sentinels", 2)]),
    "missing as 5e6": (lambda rng, X: np.where(rng.random(N) < 0.3, 5e6, rng.normal(size=N)), [("sentinels", 2)]),
}


def on_two_scales(x, other):
    return np.column_stack([x, other(x)])


def rounded_log(x):
    return np.round(np.log(x), 3)


def noisy(rng, x, share):
    return x + share * x.std() * rng.standard_normal(len(x))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ADDED)
def test_what_is_there_is_found_by_its_columns(rng, name, dtype):
    X = blobs(rng)
    added, expected = ADDED[name]
    table = np.column_stack([X, added(rng, X)]).astype(dtype)
    assert found(table) == expected
    assert found(table, lk.DiagonalGaussian()) == expected


def test_positive_columns_of_clusters_far_apart_are_on_no_common_scale(rng):
    for gap in (5.0, 50.0, 1e4):
        z = rng.integers(3, size=(N, 1))
        table = np.exp(0.1 * gap * z / 50.0) * (100.0 + gap * z + rng.standard_normal((N, 3)))
        assert not [kind for kind, *_ in found(table) if kind == "repeated"]


def test_one_row_far_away_is_found(rng):
    X = blobs(rng)
    X[777] = 1e4
    (finding,) = check(X)
    assert (finding.kind, finding.columns, finding.rows) == ("outliers", (0, 1), (777,))
    assert "row 777" in finding.message


@pytest.mark.parametrize("n", [100, N])
def test_one_row_far_away_makes_no_columns_alike(rng, n):
    for _ in range(20):
        X = blobs(rng, n, D=3, K=10)
        X[n // 3] = 1e4
        assert found(X) == [("outliers", 0, 1, 2)]


def test_rows_far_away_are_found_outside_the_sample(rng):
    X = rng.standard_normal((300_000, 3))
    rows = [5, 100_001, 299_998]
    X[rows, [0, 1, 0]] = [1e3, -500.0, 2e3]
    sampled = sampled_rows(ArraySource(X)).X
    assert np.abs(sampled).max() < 10.0
    (finding,) = check(X)
    assert (finding.columns, finding.rows) == ((0, 1), (5, 100_001, 299_998))


def test_rows_without_weight_do_not_count(rng):
    X, weights = blobs(rng), np.ones(N)
    X[10] = 1e4
    weights[10] = 0.0
    assert found(X, weights=weights) == []
    X[20] = 1e4
    assert check(X, weights=weights)[0].rows == (20,)


def test_a_small_cluster_is_no_outlier(rng):
    X = blobs(rng)
    X[:8] = 1e4 + rng.standard_normal((8, 2))
    assert found(X) == []


def test_a_column_that_varies_only_outside_the_sample_is_not_constant(rng):
    X = np.column_stack([rng.standard_normal(100_000), np.zeros(100_000)])
    assert found(X) == [("constant", 1)]
    X[50_003, 1] = 1.0
    assert found(X) == []


def test_columns_without_values(rng):
    X = np.column_stack([rng.standard_normal((N, 2)), np.full(N, np.nan)])
    (finding,) = check(X, lk.DiagonalGaussian())
    assert (finding.kind, finding.columns, finding.message) == ("constant", (2,), "no values in column 2")


@pytest.mark.parametrize("name", [name for name in ADDED if name != "one-hot"])  # whose bits must all be known
def test_missing_values_hide_nothing(rng, name):
    X = blobs(rng)
    added, expected = ADDED[name]
    table = np.column_stack([X, added(rng, X)]).astype(float)
    table[rng.random(table.shape) < 0.05] = np.nan
    assert found(table, lk.DiagonalGaussian()) == expected


def test_categories_that_name_the_rows(rng):
    X = np.column_stack([rng.permutation(N), rng.integers(0.8 * N, size=N), rng.integers(10, size=N)]).astype(float)
    assert found(X, lk.Categorical()) == [("nearly unique", 0, 1)]


def test_the_same_categories_by_other_names(rng):
    codes = rng.integers(6, size=(N, 2))
    renamed = np.array([4, 2, 0, 1, 5, 3])[codes[:, 0]]
    assert found(np.column_stack([codes, renamed]).astype(float), lk.Categorical()) == [("repeated", 0, 2)]


def test_opposite_bits_are_repeated_and_bits_of_one_hot_are_a_group(rng):
    bits = rng.integers(2, size=(N, 2))
    X = np.column_stack([bits, 1 - bits[:, 0], ring_of_codes(rng, N, 3)]).astype(float)
    assert found(X, lk.Bernoulli()) == [("one-hot", 3, 4, 5), ("repeated", 0, 2)]


def test_two_groups_of_one_hot_in_turn(rng):
    X = np.column_stack([ring_of_codes(rng, N, 3), ring_of_codes(rng, N, 4)])[:, [0, 3, 1, 4, 2, 5, 6]]
    assert {frozenset(f[1:]) for f in found(X)} == {frozenset({0, 2, 4}), frozenset({1, 3, 5, 6})}


def test_names_messages_and_cures(rng):
    X = blobs(rng)
    table = np.column_stack([X, X[:, 0], np.ones(N)])
    constant, repeated = check(table, names=["height", "weight", "height\nin inches", "unit"])
    assert constant.names == ("unit",)
    assert str(constant) == "a single value in column 'unit'; leave constant columns out."
    assert repeated.names == ("height", "height in inches")
    assert "columns 'height' and 'height in inches'" in repeated.message
    for finding in (constant, repeated):
        assert "\n" not in str(finding)
    unnamed = check(table)[0]
    assert (unnamed.names, unnamed.message) == (("column 3",), "a single value in column 3")


def test_many_columns_are_listed_in_short(rng):
    (finding,) = check(np.column_stack([rng.standard_normal((N, 2)), np.zeros((N, 9))]))
    assert finding.message == "a single value in columns 2, 3, 4 and 6 more"
    assert finding.columns == tuple(range(2, 11))


REPEATING = {  # tables in which rows repeat others exactly, and how many do
    "each row five times": (lambda rng: np.repeat(rng.standard_normal((20, 2)), 5, axis=0), "80 of 100"),
    "drawn with replacement": (lambda rng: blobs(rng)[np.arange(N) // 3 * 2], "1,000 of 1,500"),
    "two decimals, few rows": (
        lambda rng: np.repeat(np.round(10.0 * rng.standard_normal((40, 2)), 2), 3, axis=0),
        "80 of 120",
    ),
    "beside a coarse column": (
        lambda rng: np.repeat(np.column_stack([rng.integers(3, size=40), rng.standard_normal(40)]), 4, axis=0),
        "120 of 160",
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", REPEATING)
def test_continuous_rows_that_repeat_are_found(rng, name, dtype):
    make, number = REPEATING[name]
    for _ in range(10):
        first = next(finding for finding in check(make(rng).astype(dtype)) if finding.kind == "duplicates")
        assert first.message.startswith(f"{number} rows repeat others exactly")
        assert "drop_duplicates" in first.cure


@pytest.mark.parametrize("n_rows", [1, 3])
def test_few_rows_that_repeat_are_no_finding(rng, n_rows):
    X = blobs(rng)
    X[:200] = np.repeat(X[:n_rows], [200] if n_rows == 1 else [70, 70, 60], axis=0)
    assert "duplicates" not in [kind for kind, *_ in found(X)]


def test_repeats_among_many_rows_are_counted_wherever_they_are(rng):
    """Of a sample of rows evenly drawn, none would repeat another."""
    once = rng.standard_normal((150_000, 3))
    once[:, 0] *= once[:, 0] > 0.0  # half of the first column is zero
    (finding,) = check(np.concatenate([once, once[:50_000]]))
    assert finding.message.startswith("about 25% of the 200,000 rows repeat others exactly")


def test_rows_without_weight_repeat_none(rng):
    X = np.repeat(blobs(rng), 2, axis=0)
    weights = np.ones(len(X))
    assert found(X, weights=weights) == [("duplicates", 0, 1)]
    weights[::2] = 0.0
    assert found(X, weights=weights) == []


NATURAL = {  # repeats by chance: by rounding, on a grid of any shape, or from counts
    "no decimals": lambda rng, n: np.round(3.0 * rng.standard_normal((n, 2))),
    "one decimal": lambda rng, n: np.round(blobs(rng, n), 1),
    "two decimals of dependent columns": lambda rng, n: np.round(np.outer(rng.standard_normal(n), [1.0, 1.0]), 2),
    "in inches": lambda rng, n: 2.54 * np.round(rng.normal(170.0, 10.0, (n, 2)) / 2.54),
    "logarithms of counts": lambda rng, n: np.log1p(rng.poisson(20.0, (n, 2))),
    "a count on two scales": lambda rng, n: on_two_scales(np.floor(rng.lognormal(3.0, 1.5, n)), np.log1p),
    "ratios of counts": lambda rng, n: rng.poisson(20.0, (n, 2)) / (1.0 + rng.poisson(30.0, (n, 1))),
    "zeros": lambda rng, n: np.maximum(rng.standard_normal((n, 2)) - 0.5, 0.0),
    "three settings": lambda rng, n: rng.standard_normal((3, 2))[rng.integers(3, size=n)],
}


@pytest.mark.parametrize("n", [100, 1000, 20_000])
@pytest.mark.parametrize("name", NATURAL)
def test_rows_that_are_equal_by_chance_are_no_finding(rng, name, n):
    for _ in range(3):
        assert "duplicates" not in [kind for kind, *_ in found(NATURAL[name](rng, n))]


# Each likelihood has its own findings ----------------------------------------------------------------------------------


def test_what_a_likelihood_is_made_for_is_no_finding(rng):
    codes = rng.integers(5, size=(N, 3)).astype(float)
    assert found(codes, lk.Categorical()) == []
    assert found(codes, lk.Poisson()) == []
    assert found(codes) == [("integer-coded", 0, 1, 2)]
    durations = rng.lognormal(0.0, 1.0, (N, 2))
    assert found(durations, lk.Exponential()) == []
    assert found(durations) == [("skewed", 0, 1)]
    assert found(np.eye(3)[rng.integers(3, size=N)], lk.Multinomial()) == []


def test_a_product_has_the_findings_of_its_parts(rng):
    X = np.column_stack([rng.integers(5, size=N), rng.integers(5, size=N), np.ones(N), rng.standard_normal(N)])
    parts = {"codes": (lk.Categorical(), [0]), "numbers": (lk.DiagonalGaussian(), [1, 3])}
    assert found(X, lk.Product(parts)) == [("integer-coded", 1)]  # column 2 belongs to no part


def test_only_targets_of_a_regression_are_checked(rng):
    X = np.column_stack([np.ones(N), rng.standard_normal(N), rng.standard_normal(N)])
    assert found(X, lk.LinearRegression()) == []
    X[:, 2] = rng.integers(3, size=N)
    assert found(X, lk.LinearRegression()) == [("integer-coded", 2)]


# Nothing is said of data that are fine ---------------------------------------------------------------------------------

CLEAN = {
    "iris": lambda rng: datasets.load_iris().data,
    "wine": lambda rng: datasets.load_wine().data,
    "one cluster": lambda rng: rng.standard_normal((N, 5)),
    "blobs": lambda rng: blobs(rng, D=5, K=20),
    "two blobs far apart": lambda rng: blobs(rng, K=2, separation=1e4),
    "two blobs in many columns": lambda rng: blobs(rng, D=20, K=2, separation=1e4),
    "ten blobs far apart in many columns": lambda rng: blobs(rng, D=20, K=10, separation=1e3),
    "unlike blobs": lambda rng: blobs(rng, K=3, separation=1e3, shares=[0.9, 0.07, 0.03]),
    "rare cluster": lambda rng: blobs(rng, K=2, separation=30.0, shares=[0.99, 0.01]),
    "elongated": lambda rng: rng.standard_normal((N, 2)) @ np.array([[10.0, 10.0], [-0.5, 0.5]]),
    "rounded": lambda rng: np.round(blobs(rng, separation=100.0)),
    "large offset": lambda rng: 1e8 + blobs(rng),
    "huge": lambda rng: 1e140 * blobs(rng),
    "tiny": lambda rng: 1e-140 * blobs(rng),
    "Student t": lambda rng: rng.standard_t(3, (N, 3)),
    "uniform": lambda rng: rng.random((N, 3)),
    "positive": lambda rng: rng.gamma(4.0, 1.0, (N, 3)),
    "positive blobs": lambda rng: 100.0 + blobs(rng, K=3),
    "random walk": lambda rng: rng.standard_normal((N, 3)).cumsum(axis=0),
    "waves": lambda rng: np.sin(np.arange(N)[:, None] / [7.0, 13.0, 29.0]) + 0.1 * rng.standard_normal((N, 3)),
    "one column": lambda rng: blobs(rng, D=1),
    "two values": lambda rng: np.array([[0.0, 1.0]]),
    "constant, but few": lambda rng: np.ones((4, 2)),
    "twelve rows": lambda rng: rng.integers(3, size=(12, 3)).astype(float),
    "no more rows than columns": lambda rng: rng.standard_normal((30, 40)),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, np.float64) for name in CLEAN),
        *((name, np.float32) for name in CLEAN if name not in ("large offset", "huge", "tiny")),
    ],
)
def test_nothing_is_said_of_fine_measurements(rng, name, dtype):
    X = CLEAN[name](rng).astype(dtype)
    assert found(X) == []
    holes = X.copy()
    holes[rng.random(X.shape) < 0.05] = np.nan
    assert found(holes, lk.DiagonalGaussian()) == []


FITTING = {
    "counts": (lk.Poisson, lambda rng: rng.poisson(rng.gamma(1.0, 6.0, (3, 4))[rng.integers(3, size=N)])),
    "pixels": (lk.Poisson, lambda rng: datasets.load_digits().data),
    "bits": (lk.Bernoulli, lambda rng: rng.random((N, 6)) < rng.random((3, 6))[rng.integers(3, size=N)]),
    "rare bits": (lk.Bernoulli, lambda rng: rng.random((N, 200)) < 0.003),
    "codes": (lk.Categorical, lambda rng: rng.integers(8, size=(N, 4))),
    "durations": (lk.Exponential, lambda rng: rng.exponential(size=(N, 3))),
    "words": (lk.Multinomial, lambda rng: rng.multinomial(20, rng.dirichlet(np.full(30, 0.3)), N)),
}


@pytest.mark.parametrize("name", FITTING)
def test_nothing_is_said_of_data_that_fit_their_likelihood(rng, name):
    make, rows = FITTING[name]
    assert found(rows(rng).astype(float), make()) == []


def test_breast_cancer_has_nothing_but_long_tails():
    data = datasets.load_breast_cancer()
    (finding,) = check(data.data, names=list(data.feature_names))
    assert finding.kind == "skewed"
    assert "area error" in finding.names


def test_digits_have_nothing_but_constant_pixels():
    X = datasets.load_digits().data
    assert found(X) == [("constant", *np.flatnonzero(np.ptp(X, axis=0) == 0.0))]


def test_sparse_rows_are_not_checked(rng):
    X = sparse_rows(sparse.csr_array((rng.random((N, 50)) < 0.1).astype(float)))
    assert check(X, lk.Bernoulli(), source=SparseSource) == []


def test_the_check_is_quick(rng):
    """About 50 ms of processor time for 100 columns are allowed; 5 times as much for the sake of busy machines."""
    X = ArraySource(rng.standard_normal((50_000, 100)))
    wide = ArraySource(rng.standard_normal((2000, 3000)))
    for source, limit in ((X, 0.3), (wide, 1.5)):
        likelihood = lk.DiagonalGaussian()
        with Threads(1) as threads:
            began = time.process_time()
            assert checked(Fit(None, source.n_columns), likelihood, source, threads)[1] == []
            assert time.process_time() - began < limit
