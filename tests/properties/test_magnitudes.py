"""Numbers of any size: single precision, offsets, units, weights and rows far from every cluster."""

import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from stickbreak import HMM, Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.inference import Options, RowSearch, Session, Threads
from stickbreak.inference.init import one_cluster
from stickbreak.likelihoods import REGISTRY, DiagonalGaussian, Dust, Poisson, Product, Sample
from stickbreak.model import Model, Summary, local_step

MOVES = ("birth", "merge", "delete")
GAUSSIANS = (
    *("gaussian", "diagonal_gaussian", "spherical_gaussian", "zero_mean_gaussian", "known_covariance_gaussian"),
    *("student_t", "background"),
)


def three_clusters(n=300, D=2, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat([-9.0, 0.0, 9.0], n // 3)[:, None] + rng.standard_normal((n, D))


@cache
def of_three_clusters(name, dtype=np.float64):
    return Mixture(name, random_state=0, n_jobs=1).fit(three_clusters().astype(dtype))


def count_rows(scale):
    rng = np.random.default_rng(1)
    return rng.poisson(scale * np.repeat([1.0, 1.1, 1.3], 100)[:, None] * np.ones((1, 2))).astype(float)


def narrow_rows(width):
    """Two clusters at -1 and 1 that are as wide as ``width``."""
    return np.round(three_clusters() > 4.0) * 2.0 - 1.0 + width * np.random.default_rng(2).standard_normal((300, 2))


def line_rows(scale):
    rng = np.random.default_rng(3)
    x = scale * (1.0 + rng.random(300))
    slope = np.repeat([1.0, 1.5], 150)
    return np.column_stack([x, slope * x + 1e-3 * scale * rng.standard_normal(300)])


LARGE = {
    **{f"poisson-{scale:g}": ("poisson", count_rows(scale)) for scale in (1e2, 1e5, 1e6, 1e7)},
    **{f"{name}-narrow": (name, narrow_rows(1e-4)) for name in GAUSSIANS},
    **{f"{name}-offset": (name, 1e4 + three_clusters()) for name in GAUSSIANS},
    **{f"{name}-outlier": (name, np.vstack([three_clusters(), [[1e7, -1e7]]])) for name in GAUSSIANS},
    "linear_regression-1e7": ("linear_regression", line_rows(1e7)),
    "exponential-1e7": ("exponential", 1e7 * np.exp(three_clusters())),
    "product": (
        Product({"counts": (Poisson(), [0, 1]), "numbers": (DiagonalGaussian(), [2, 3])}),
        np.hstack([count_rows(1e6), narrow_rows(1e-4)]),
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_single_precision_claims_what_double_precision_does(case):
    likelihood, X = LARGE[case]
    single = X.astype(np.float32)
    found = REGISTRY[likelihood]() if isinstance(likelihood, str) else likelihood
    model = Model(found.resolve(Sample.of(single.astype(np.float64))), DirichletProcess(1.0))

    def search(rows):
        with Threads(1) as threads:
            options = Options(n_batches=2, max_laps=60, check=True)
            ascent = RowSearch(model, ArraySource(rows), MOVES, Session(threads), np.random.default_rng(0), options)
            ascent.run(one_cluster(model))
        return ascent

    one, other = search(single), search(single.astype(np.float64))
    assert one.total.K == other.total.K
    bound, double = model.bound(one.total), model.bound(other.total)
    assert bound == pytest.approx(double, rel=1e-6, abs=1e-2)
    step = model.parameters(one.total, np.dtype(np.float64))
    settled, _ = local_step(model.likelihood, step, single.astype(np.float64), np.ones(len(X)))
    assert bound <= model.bound(settled) + 1e-6 * abs(bound)  # what float64 makes of the same clusters is no less


@pytest.mark.parametrize("name", ["gaussian", "zero_mean_gaussian", "diagonal_gaussian", "spherical_gaussian"])
def test_clusters_of_repeated_rows_leave_the_bound_its_digits(name):
    """Rounding of sums S, with the derivative W of the bound, decides no more than a hundredth of a nat per row."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(4, 2))[rng.integers(4, size=60)]
    parameters = {"n_jobs": 1, "random_state": 0, "max_laps": 60}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = Mixture(name, **parameters).fit(X)
    model, total = fitted.model_, fitted.summary_
    W = model.parameters(total, np.dtype(float)).W
    assert np.abs(W * total.S).max() < 1e6  # no cluster is narrower than the steps between values
    assert np.finfo(float).eps * np.abs(W * total.S).sum() < 0.01 * len(X)
    after, _ = local_step(model.likelihood, model.parameters(total, np.dtype(float)), X, np.ones(len(X)))
    assert model.bound(after) == pytest.approx(fitted.lower_bound_, abs=0.01 * len(X))


def test_small_numbers_stay_in_single_precision():
    fitted = of_three_clusters("gaussian", np.float32)
    assert fitted.model_.parameters(fitted.summary_, np.dtype(np.float32)).W.dtype == np.float32


@pytest.mark.parametrize("name", [name for name in GAUSSIANS if name != "zero_mean_gaussian"])
def test_an_offset_costs_no_clusters(name, turn):
    offset = (-1e10, 1e12)[turn % 2]
    X = offset + max(1e-3, abs(offset) * 1e-13) * three_clusters()
    fitted = Mixture(name, random_state=0, n_jobs=1).fit(X)
    centred = Mixture(name, random_state=0, n_jobs=1).fit(X - offset)
    assert fitted.n_clusters_ == centred.n_clusters_ == 3
    assert fitted.lower_bound_ == pytest.approx(centred.lower_bound_, rel=1e-6)


def test_columns_that_spread_less_than_rounding_are_constant():
    X = np.column_stack([three_clusters()[:, 0], np.full(300, 1e10)])
    X[::2, 1] = np.nextafter(1e10, np.inf)
    fitted = Mixture("diagonal_gaussian", random_state=0, n_jobs=1).fit(X)
    assert fitted.n_clusters_ == 3
    assert fitted.model_.likelihood.unit[1] == 1.0


@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize(
    ("far", "dtype"),
    [*((far, np.float32) for far in (1e3, 1e6, 1e20, 1e37)), *((far, np.float64) for far in (1e3, 1e6, 1e20, 1e90))],
)
def test_rows_far_from_every_cluster_have_responsibilities(name, dtype, far):
    fitted = of_three_clusters(name, dtype)
    rows = far * np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 0.3], [0.0, 0.0]], dtype)
    R = fitted.predict_proba(rows.astype(dtype))
    np.testing.assert_allclose(R.sum(axis=1), 1.0, rtol=1e-6)
    assert np.isfinite(fitted.score_samples(rows.astype(dtype))).all()
    likelihood, summary = fitted.model_.likelihood, fitted.summary_
    W, bias, *_ = fitted.model_.parameters(summary, np.dtype(dtype))
    T = likelihood.features(rows.astype(np.float64), np.empty((4, likelihood.n_statistics)))
    for t, responsibilities in zip(T, R):
        scores = [sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(t, w)) for w in W]  # exact
        if isinstance(likelihood.latent, Dust):
            scores = [Fraction(float(np.logaddexp(0.0, float(max(score, Fraction(-(10**6))))))) for score in scores]
        elif likelihood.latent is not None:
            nu, D = likelihood.tails, 2
            scores = [Fraction(-0.5 * (nu + D) * np.log1p(float(D - 2 - 2 * score) / nu)) for score in scores]
        scores = [score + Fraction(float(b)) for score, b in zip(scores, bias)]
        exact = np.exp([float(max(score - max(scores), Fraction(-800))) for score in scores])
        np.testing.assert_allclose(responsibilities, exact / exact.sum(), atol=2e-3)


def test_rows_too_far_to_be_squared_are_refused():
    fitted = Mixture("diagonal_gaussian", random_state=0, n_jobs=1).fit(1e-30 * three_clusters())
    with pytest.raises(
        ValueError, match=r"1e\+90, a value too far from the data of the fit: row 0, column 1\. Leave out"
    ):
        fitted.predict_proba([[0.0, 1e90]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_states_explain_rows_far_from_all_of_them(dtype):
    X = np.tile(three_clusters(), (2, 1)).astype(dtype)
    fitted = HMM("gaussian", random_state=0, n_jobs=1, max_laps=300).fit(X)
    X[5] = 1e30
    R = fitted.predict_proba(X)
    np.testing.assert_allclose(R.sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:not converged")  # a lap may always gain more than some nats of so many
@pytest.mark.parametrize("name", [*GAUSSIANS, "exponential", "linear_regression"])
def test_huge_weights_are_huge_counts(name, turn):
    scale = (1e16, 1e100)[turn % 2]
    rng = np.random.default_rng(4)
    X = np.exp(three_clusters(39)) if name == "exponential" else three_clusters(15)
    weights = rng.random(len(X)) * scale
    given = {"learn": scale < 1e50, "max_laps": 60, "random_state": 0, "n_jobs": 1}
    fitted = Mixture(name, **given).fit(X, sample_weight=weights)
    assert np.isfinite(fitted.lower_bound_)
    assert np.isfinite(fitted.score_samples(X)).all()
    if name == "known_covariance_gaussian":  # wider than the clusters: half of one explains its rows no better
        assert fitted.n_clusters_ == 3
    else:
        assert fitted.n_clusters_ > 3  # as many rows of each kind are a cluster of their own
    assert fitted.summary_.N.sum() == pytest.approx(weights.sum())


@pytest.mark.parametrize("total", [1e-16, 1e-200, 1e-299])
def test_data_that_weigh_nothing_are_one_cluster(total):
    fitted = Mixture("gaussian", random_state=0, n_jobs=1).fit(
        three_clusters(), sample_weight=np.full(300, total / 300.0)
    )
    assert fitted.n_clusters_ == 1
    assert fitted.converged_


@pytest.mark.parametrize("total", [1e-301, 1e106, 1e155, 1e200, 1e300])
def test_weights_out_of_range_are_refused(total):
    weights = np.full(300, total / 300.0)
    with pytest.raises(ValueError, match="sample_weight must have a finite sum from 1e-300 to 1e\\+105"):
        Mixture("gaussian").fit(three_clusters(), sample_weight=weights)


@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-151])
def test_units_too_small_to_be_squared_are_refused(name, scale):
    X = three_clusters()
    X[:, 1] *= scale
    with pytest.raises(ValueError, match=r"column 1 has a standard deviation of .*too small to be squared. Multiply"):
        Mixture(name).fit(X)


@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian", "spherical_gaussian", "known_covariance_gaussian"])
def test_units_do_not_matter(name, turn):
    X, one = three_clusters(), of_three_clusters(name)
    for scale in ((1e-130, 1e30), (1e-30, 1e140))[turn % 2]:
        other = Mixture(name, random_state=0, n_jobs=1).fit(scale * X)
        assert one.n_clusters_ == other.n_clusters_
        assert other.lower_bound_ == pytest.approx(one.lower_bound_ - X.size * np.log(scale), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-130, 1e-30, 1e30, 1e140])
def test_units_do_not_matter_to_clusters_without_means(scale):
    X, labels = three_clusters(), np.abs(three_clusters()[:, 0]) > 4.0
    given = {"init": labels.astype(int), "moves": (), "random_state": 0, "n_jobs": 1}
    one, other = (Mixture("zero_mean_gaussian", **given).fit(rows) for rows in (X, scale * X))
    assert one.n_clusters_ == other.n_clusters_ == 2
    assert other.lower_bound_ == pytest.approx(one.lower_bound_ - X.size * np.log(scale), rel=1e-9)


def test_regressions_on_large_values_and_weights_have_covariances():
    X = 1e140 * (1.0 + np.abs(three_clusters(39)))
    fitted = Mixture("linear_regression", random_state=0, n_jobs=1).fit(X, sample_weight=np.full(39, 1e50))
    assert np.isfinite(fitted.covariances_).all()


def test_a_tiny_share_of_the_prior_is_in_range_in_single_precision():
    X = np.full((3, 1), 3.0, np.float32)
    given = {"allocation": "finite", "concentration": 1e-300, "moves": (), "random_state": 0, "n_jobs": 1}
    assert np.isfinite(Mixture("multinomial", **given).fit(X).lower_bound_)


HUGE_PRIORS = {
    "gaussian": {"mean": 1e300},
    "diagonal_gaussian": {"mean": 1e300},
    "spherical_gaussian": {"mean": 1e300},
    "known_covariance_gaussian": {"mean": 1e300},
    "zero_mean_gaussian": {"scale": 1e-300},
    "linear_regression": {"mean": 1e300},
    "autoregressive_gaussian": {"degrees_of_freedom": 1e-300},
}


@pytest.mark.parametrize("name", HUGE_PRIORS)
def test_priors_beyond_the_range_of_the_data_are_refused(name):
    (parameter,) = HUGE_PRIORS[name]
    with pytest.raises(ValueError, match=f"{parameter} must be .*; got 1e[+-]300"):
        Mixture(REGISTRY[name](**HUGE_PRIORS[name])).fit(three_clusters())


def test_a_bit_that_the_prior_excludes_seeds_clusters():
    X = (three_clusters() > 0.0).astype(float)
    fitted = Mixture(REGISTRY["bernoulli"](b=1e-300), init="k-means++", random_state=0, n_jobs=1).fit(X)
    assert np.isfinite(fitted.lower_bound_)


def test_large_counts_that_differ_little_seed_clusters():
    rng = np.random.default_rng(7)
    X = 1e10 + rng.poisson(5.0, (100, 3))
    likelihood = Poisson().resolve(Sample.of(X))
    D = likelihood.divergence(X, X[:5])
    exact = 0.5 * ((X[:, None] - X[:5]) ** 2).sum(axis=2) / (1.0 + likelihood.rate.mean()) / 1e10
    np.testing.assert_allclose(D, exact, rtol=1e-3, atol=1e-12)
    assert np.isfinite(Mixture("poisson", init="k-means++", n_init_clusters=9, moves=(), n_jobs=1).fit(X).lower_bound_)


@pytest.mark.parametrize("name", ["exponential", "gamma"])
def test_moments_beyond_all_numbers_are_the_largest(name):
    likelihood = REGISTRY[name](rate=1e300).resolve(Sample.of(np.exp(three_clusters() / 9.0)))
    profile = likelihood.profile(np.ones(1), np.ones((1, 2)))
    assert np.isfinite(profile.means).all()
    assert (profile.variances == np.finfo(float).max).all()


@pytest.mark.parametrize("name", ["exponential", "gamma"])
def test_durations_too_small_for_their_rates_are_refused(name):
    with pytest.raises(
        ValueError, match=r"rate must be finite and at least 1e-150 in column 0.*multiply the column by a constant"
    ):
        Mixture(name).fit(1e-310 * np.exp(three_clusters() / 9.0))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, {"shape": 1e300}) for name in ("exponential", "gamma", "diagonal_gaussian", "spherical_gaussian")),
        *((name, {"degrees_of_freedom": 1e300}) for name in ("gaussian", "zero_mean_gaussian", "linear_regression")),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
@pytest.mark.parametrize("scale", [1.0, 1e100])
def test_defaults_beyond_all_numbers_are_refused_by_what_made_them(name, given, scale):
    """By the message alone: warnings of NumPy are errors here."""
    X = scale * np.exp(three_clusters() / 9.0)
    (parameter,) = given
    if name in ("exponential", "gamma") and scale == 1.0:
        assert (REGISTRY[name](**given).resolve(Sample.of(X)).rate < np.inf).all()
        return
    with pytest.raises(ValueError, match=f"{parameter} must be such that|times its {parameter}"):
        REGISTRY[name](**given).resolve(Sample.of(X))


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_bits_of_very_unlike_weights_have_densities(kind):
    rng = np.random.default_rng(5)
    X, weights = (rng.random((40, 3)) < 0.5).astype(float), 10.0 ** rng.uniform(-8.0, 8.0, 40)
    fitted = Mixture("bernoulli", random_state=0, n_jobs=1).fit(kind(X), sample_weight=weights)
    assert np.isfinite(fitted.score_samples(kind(X))).all()


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_huge_counts_can_be_drawn(name):
    fitted = Mixture(name, random_state=0, n_jobs=1).fit(np.full((30, 2), 1e12))
    rows, _ = fitted.sample(5)
    np.testing.assert_allclose(rows.sum(axis=1), 2e12, rtol=0.5)


@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian", "spherical_gaussian"])
def test_one_row_or_one_distinct_row(name):
    for X in (np.full((1, 2), 1e12), np.full((2, 2), -1e-12), np.full((50, 2), 0.1)):
        fitted = Mixture(name, random_state=0, n_jobs=1).fit(X)
        assert fitted.n_clusters_ == 1
        assert np.isfinite(fitted.score_samples(X)).all()


def test_the_mean_of_a_sample_keeps_the_digits_below_an_offset():
    X = three_clusters()
    sample = Sample.of(1e10 + X)
    exact = np.array([float(sum(map(Fraction, column)) / len(column)) for column in (1e10 + X).T.tolist()])
    np.testing.assert_allclose(sample.mean(), exact, rtol=3e-16)
    np.testing.assert_allclose(sample.spread(sample.mean()), X.std(axis=0), rtol=1e-5)


def test_an_empty_summary_has_parameters_in_single_precision():
    model = Model(REGISTRY["gaussian"]().resolve(Sample.of(three_clusters())), DirichletProcess(1.0))
    parameters = model.parameters(Summary.zeros(2, model.likelihood.n_statistics), np.dtype(np.float32))
    assert parameters.W.dtype == np.float32


@pytest.mark.filterwarnings("ignore:not converged")
def test_rows_are_drawn_in_any_unit(family, turn):
    """From every fit that is not refused, and none is refused in ordinary units."""
    X = family.rows(np.random.default_rng(0), 60, 3)
    likelihood = family.make(X.shape[1])
    for scale in (1.0, (1e-100, 1e-8, 1e8, 1e100)[turn % 4]):
        try:
            fitted = Mixture(likelihood, random_state=0, n_jobs=1, max_laps=3).fit(scale * X)
        except (ValueError, FloatingPointError):
            assert scale != 1.0
            continue
        for n in (1, 200):
            drawn, _ = fitted.sample(n)
            assert drawn.shape == (n, X.shape[1])
            assert np.isfinite(drawn.astype(np.float64)).all()
