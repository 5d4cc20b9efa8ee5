"""Proportions: the lower bound on their marginal likelihood, what fits find, and what is refused."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.inference import Gibbs, Options, RowSearch, Session, Threads
from stickbreak.inference.init import one_cluster
from stickbreak.kernels.dirichlet import best_shapes, objective
from stickbreak.likelihoods import Dirichlet, Gaussian, Product, Sample
from stickbreak.likelihoods.dirichlet import evenly_normal
from stickbreak.model import Model

CLUSTERS = np.array([[40.0, 10.0, 10.0], [4.0, 20.0, 60.0], [16.0, 16.0, 2.0]])


def proportions(alpha, rng, n=1):
    """Rows of Dirichlet distributions with parameters alpha (D,) or (n, D)."""
    drawn = rng.standard_gamma(np.broadcast_to(alpha, (n, np.shape(alpha)[-1])) if np.ndim(alpha) == 1 else alpha)
    return drawn / drawn.sum(axis=1, keepdims=True)


def clustered(n=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    return proportions(CLUSTERS[labels], rng), labels


@cache
def plain():
    """A fit of `clustered` rows."""
    return fit(clustered()[0])


def fit(X, likelihood="dirichlet", **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(likelihood, **({"random_state": 0, "n_jobs": 1} | parameters)).fit(X)


# The bound on the log marginal ----------------------------------------------------------------------------------------


def log_evidence(X, median, spread):
    """log p(X) of two columns, by trapezoids about the mode of the sum and the difference of the log parameters."""
    S = np.log(X).sum(axis=0)

    def log_joint(a, b):
        prior = sum(stats.norm.logpdf(t, np.log(m), spread) for t, m in zip((a, b), median))
        x, y = np.exp(a), np.exp(b)
        return prior + (x - 1.0) * S[0] + (y - 1.0) * S[1] + len(X) * (gammaln(x + y) - gammaln(x) - gammaln(y))

    options = {"xatol": 1e-9, "fatol": 1e-9}
    mode = minimize(lambda t: -log_joint(*t), np.log(median), method="Nelder-Mead", options=options).x
    t, dt = np.linspace(-12.0, 12.0, 401, retstep=True)
    both, apart = 1e-3 * np.sinh(t)[:, None], 1e-4 * np.sinh(t)  # steps that are fine at the mode, and reach far
    weights = np.log(1e-3 * np.cosh(t)[:, None] * dt) + np.log(1e-4 * np.cosh(t) * dt)
    with np.errstate(over="ignore", invalid="ignore"):
        joint = log_joint(mode[0] + both + 0.5 * apart, mode[1] + both - 0.5 * apart)
    return logsumexp(np.where(np.isnan(joint), -np.inf, joint) + weights)


@pytest.mark.parametrize("alpha", [(0.3, 0.6), (2.0, 5.0), (300.0, 100.0)])
@pytest.mark.parametrize("n", [1, 5, 200])
def test_the_bound_is_below_the_evidence_by_as_much_for_any_number_of_rows(alpha, n):
    """By about half the logarithm of the precision, for what the parameters have in common under the posterior."""
    X = proportions(np.array(alpha), np.random.default_rng(1), n)
    for prior in ({"median": [1.0, 3.0], "spread": 1.5}, {"median": 50.0, "spread": 0.5}, {}):
        likelihood = Dirichlet(**prior).resolve(
            Sample.of(X if n > 1 else proportions(np.ones(2), np.random.default_rng(0), 9))
        )
        N, S = np.full(1, float(n)), likelihood.features(X, np.empty(X.shape)).sum(axis=0)[None]
        bound = likelihood.log_marginal(N, S)[0] + likelihood.log_base(X).sum()
        gap = log_evidence(X, likelihood.median, likelihood.spread) - bound
        precision = likelihood.posterior(N, S).concentrations.sum()
        assert 0.0 < gap < 3.0 + 0.5 * np.log1p(precision), (prior, gap, precision)


@pytest.mark.parametrize(("mean", "variance"), [(0.02, 0.5), (0.7, 1.0), (3.0, 0.1), (500.0, 0.01)])
def test_the_expected_log_gamma_is_below_its_bound(mean, variance):
    """E[log Gamma(a)] <= log Gamma(m) + (m + 1) s / 2 for log a ~ Normal(log m - s / 2, s), and closely where s is small."""
    center, width = np.log(mean) - 0.5 * variance, np.sqrt(variance)
    expected, _ = quad(lambda z: stats.norm.pdf(z) * gammaln(np.exp(center + width * z)), -9.0, 9.0, limit=200)
    bound = gammaln(mean) + 0.5 * (mean + 1.0) * variance
    assert 0.0 < bound - expected < 0.5 * variance + 0.1 * variance**2


@pytest.mark.parametrize("seed", range(6))
def test_the_kernel_finds_the_maximum(seed):
    """From other starts L-BFGS finds nothing better, and the value is that of the plain statement."""
    rng = np.random.default_rng(seed)
    D, n = 2 + seed % 3, [1, 4, 300][seed % 3]
    X = proportions(np.exp(rng.normal(1.0, 2.0, D)) + 0.05, rng, n)
    median, variance = rng.normal(1.0, 2.0, D), [0.1, 2.25, 9.0][seed // 2]
    counts, S = np.array([float(n)]), np.log(X).sum(axis=0)[None]
    y, s, values = np.empty((1, D)), np.empty((1, D)), np.empty(1)
    best_shapes(counts, S, median, variance, y, s, values)
    np.testing.assert_allclose(objective(counts, S, median, variance, y, s), values, rtol=1e-10, atol=1e-9)

    def loss(z):
        return -objective(counts, S, median, variance, z[None, :D], np.exp(z[None, D:]))[0]

    starts = [np.append(median + spread, np.full(D, -2.0)) for spread in (-1.0, 0.0, 2.0)]
    best = max(-minimize(loss, start, method="L-BFGS-B", options={"maxiter": 200}).fun for start in starts)
    assert best <= values[0] + 1e-9 * (1.0 + abs(values[0]))


def test_sums_that_no_rows_have_are_those_of_equal_rows():
    """Extrapolated logarithms may sum to more than a whole; the weights stay finite, and rows beyond rounding are one row."""
    likelihood = Dirichlet().resolve(Sample.of(clustered(20)[0]))
    N, S = np.full(1, 7.0), 7.0 * np.log([[0.2, 0.3, 0.5]])
    equal = likelihood.weights(N, S)
    beyond = likelihood.weights(N, S + 0.1)
    assert np.isfinite(equal[0]).all()
    for one, other in zip(equal, beyond):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_points_are_evenly_normal():
    z = evenly_normal(4096, 3)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=5e-3)
    np.testing.assert_allclose(np.cov(z.T), np.eye(3), atol=0.05)


def test_the_predictive_of_many_rows_is_that_of_their_parameters():
    alpha = np.array([3.0, 5.0, 2.0])
    X = proportions(alpha, np.random.default_rng(0), 5000)
    likelihood = Dirichlet().resolve(Sample.of(X))
    S = likelihood.features(X, np.empty(X.shape)).sum(axis=0)[None]
    N = np.full(1, 5000.0)
    np.testing.assert_allclose(likelihood.posterior(N, S).concentrations[0], alpha, rtol=0.05)
    found = likelihood.log_predictive(X[:50], N, S)[:, 0]
    np.testing.assert_allclose(found, [stats.dirichlet.logpdf(x, alpha) for x in X[:50]], atol=0.15)
    profile = likelihood.profile(N, S)
    np.testing.assert_allclose(profile.means[0], X.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(profile.variances[0], X.var(axis=0), rtol=0.1)


@pytest.mark.parametrize("kind", ["clusters", "mixed up", "repeated"])
def test_the_bound_never_falls(kind):
    X, _ = clustered(90)
    rng = np.random.default_rng(3)
    if kind == "mixed up":
        X = rng.permuted(X, axis=0)
        X /= X.sum(axis=1, keepdims=True)
    if kind == "repeated":
        X = X[rng.integers(9, size=90)]
    model = Model(Dirichlet().resolve(Sample.of(X)), DirichletProcess(1.0))
    options = Options(3, max_laps=60, learn=("likelihood.median", "likelihood.spread"), check=True)
    with Threads(1) as threads:
        session = Session(threads)
        search = RowSearch(model, ArraySource(X), ("birth", "merge", "delete"), session, rng, options)
        search.run(one_cluster(model))
    bounds = np.array([lap.lower_bound for lap in session.history])
    assert np.all(np.diff(bounds) >= -1e-9 * abs(bounds[0]))
    assert bounds[-1] > bounds[0]
    assert search.outcome.bound == bounds[-1]


# What is found --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [{}, {"algorithm": "sequential"}, {"n_batches": 3, "learn": False}],
    ids=["laps", "one pass", "batches"],
)
def test_three_clusters_are_recovered(parameters):
    X, labels = clustered()
    found = fit(X, **parameters) if parameters else plain()
    assert found.n_clusters_ == 3
    assert adjusted_rand_score(labels, found.labels_) > 0.9
    order = [int(np.argmin(((found.posterior_.proportions - p) ** 2).sum(axis=1))) for p in CLUSTERS / 60.0]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(found.posterior_.concentrations[order], CLUSTERS, rtol=0.4)


@pytest.mark.parametrize("alpha", [(0.5, 0.7, 1.0), (4.0,) * 6])
def test_rows_of_one_distribution_are_one_cluster(alpha):
    assert fit(proportions(np.array(alpha), np.random.default_rng(2), 250)).n_clusters_ == 1


def test_rounded_and_repeated_rows_make_no_narrow_clusters():
    X, _ = clustered(200)
    rounded = np.round(X, 2)
    found = fit(rounded / rounded.sum(axis=1, keepdims=True) if (rounded > 0.0).all() else np.maximum(rounded, 0.01))
    assert found.n_clusters_ <= 4
    same = fit(np.repeat(X[:2], 40, axis=0))
    assert same.n_clusters_ == 2
    assert np.isfinite(same.posterior_.concentrations).all()
    assert np.isfinite(same.lower_bound_)


def test_single_precision_finds_the_same():
    double, single = plain(), fit(clustered()[0].astype(np.float32))
    assert single.n_clusters_ == double.n_clusters_ == 3
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, rel=1e-4)


def test_proportions_beside_other_columns():
    X, labels = clustered(120)
    Y = np.random.default_rng(1).normal(5.0 * labels[:, None], 1.0, (120, 1))
    likelihood = Product({"shares": (Dirichlet(), [0, 1, 2]), "size": (Gaussian(), [3])})
    found = fit(np.hstack([X, Y]), likelihood)
    assert found.n_clusters_ == 3
    with pytest.raises(ValueError, match="needs the marginal likelihood of a cluster"):
        fit(np.hstack([X, Y]), likelihood, algorithm=Gibbs(10, 10, 1))


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.0, 0.5, 0.5], r"contains 0: row 4, column 0. Dirichlet takes proportions above 0; give Dirichlet\(floor="),
        ([0.2, 0.5, 0.5], r"does not sum to 1: row 4, column 0. .* divide each row by its sum"),
        ([30.0, 50.0, 20.0], r"does not sum to 1: row 4"),
        ([-0.2, 0.6, 0.6], r"Negative values in data: .* row 4, column 0"),
        ([0.4, np.nan, 0.6], r"contains NaN: row 4, column 1"),
    ],
)
def test_rows_that_are_no_proportions_are_refused_with_their_place(row, message):
    X, _ = clustered(20)
    X[4] = row
    with pytest.raises(ValueError, match=message):
        fit(X)


def test_a_floor_takes_zeros():
    X, labels = clustered(200)
    X[X < 0.03] = 0.0
    X /= X.sum(axis=1, keepdims=True)
    found = fit(X, Dirichlet(floor=0.02))
    assert adjusted_rand_score(labels, found.labels_) > 0.8
    assert found.model_.likelihood.anew().floor == 0.02


def test_one_column_is_the_whole():
    """Whatever alpha is, x = 1 for sure."""
    found = fit(np.ones((20, 1)))
    assert found.n_clusters_ == 1
    np.testing.assert_allclose(found.score_samples(np.ones((2, 1))), 0.0, atol=1e-9)


def test_gibbs_needs_exact_marginals():
    with pytest.raises(ValueError, match=r'of which a Dirichlet has a lower bound; use algorithm="memoized"'):
        fit(clustered(30)[0], algorithm=Gibbs(10, 10, 1))
