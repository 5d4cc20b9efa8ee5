"""Student's t: the bound against integrals over scales and parameters, its limits, and what it finds in heavy tails."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp, multigammaln
from sklearn.exceptions import ConvergenceWarning

from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.likelihoods import Gaussian, Product, Sample, StudentT
from stickbreak.model import Model, Summary, local_step

FLOAT = np.dtype(float)
TAILS = [1.5, 4.0, 30.0]


def rows(n, D, seed=0):
    """Two clusters and an outlier."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) + 3.0 * rng.integers(2, size=(n, 1))
    X[0] += 6.0
    return X


def resolved(X, **prior):
    prior = {"mean": 1.0, "mean_precision": 0.3, "degrees_of_freedom": X.shape[1] + 1.5, "scale": 2.0} | prior
    return StudentT(**prior).resolve(Sample.of(X))


# The bound


def weighted_evidence(likelihood, X, u):
    """log p(X | u), rows x_n ~ Normal(mu, (u_n Lambda)^-1), with mu and Lambda integrated out, for many u (m, n)."""
    kappa, nu, m0, B0 = (
        getattr(likelihood, name) for name in ("mean_precision", "degrees_of_freedom", "mean", "scale")
    )
    n, D = X.shape
    kappas, sums = kappa + u.sum(axis=1), kappa * m0 + u @ X
    B = B0 + kappa * np.outer(m0, m0) + np.einsum("mn,na,nb->mab", u, X, X)
    B -= sums[:, :, None] * sums[:, None, :] / kappas[:, None, None]
    before = 0.5 * nu * np.linalg.slogdet(B0)[1] - multigammaln(0.5 * nu, D)
    after = 0.5 * (nu + n) * np.linalg.slogdet(B)[1] - multigammaln(0.5 * (nu + n), D)
    base = -0.5 * n * D * np.log(np.pi) + 0.5 * D * (np.log(u).sum(axis=1) + np.log(kappa / kappas))
    return base + before - after


def block_evidence(likelihood, X, rng, draws=50_000):
    """log p(X) of rows of one cluster, by importance sampling of their scales, and its standard error."""
    model = Model(likelihood, FiniteDirichlet(1, 1.0))
    summary, n = None, len(X)
    T = likelihood.features(X, np.empty((n, likelihood.n_statistics)))
    N, S, nu, D = np.array([float(n)]), T.sum(axis=0)[None], likelihood.tails, X.shape[1]
    for _ in range(10):
        W, _ = likelihood.weights(N, S)
        delta = 2.0 * (0.5 * D - 1.0 - T @ W[0])
        u = (nu + D) / (nu + delta)
        summary, _ = local_step(model.likelihood, model.parameters(summary_of(N, S), FLOAT), X, np.ones(n))
        S = summary.S
    prior = stats.gamma(0.5 * nu, scale=2.0 / nu)
    wide = stats.gamma(0.3 * (nu + D), scale=u / (0.3 * (nu + D)))  # than q(u)
    half = np.arange(draws)[:, None] % 2 == 0
    drawn = np.where(half, prior.rvs((draws, n), rng), wide.rvs((draws, n), rng))
    chances = [family.logpdf(drawn).sum(axis=1) for family in (prior, wide)]
    log_w = weighted_evidence(likelihood, X, drawn) + chances[0] - np.logaddexp(*chances) + np.log(2.0)
    value = logsumexp(log_w) - np.log(draws)
    return value, float(np.exp(log_w - value).std() / np.sqrt(draws))


def summary_of(N, S):
    return Summary(N, S, np.zeros(len(N)), np.zeros(()))


def grid_evidence(likelihood, x):
    """log p(x) of one column of one cluster: Student densities on a grid of mu and of the logarithm of Lambda."""
    kappa, nu, m0, B0 = (
        getattr(likelihood, name) for name in ("mean_precision", "degrees_of_freedom", "mean", "scale")
    )
    v, dv = np.linspace(-14.0, 7.0, 400, retstep=True)
    mu, dmu = np.linspace(-60.0, 60.0, 3001, retstep=True)
    log_p = stats.gamma(0.5 * nu, scale=2.0 / B0[0, 0]).logpdf(np.exp(v)) + v
    total = log_p[:, None] + stats.norm.logpdf(mu, m0[0], np.exp(-0.5 * v)[:, None] / np.sqrt(kappa))
    for value in x:
        total = total + stats.t.logpdf(value, likelihood.tails, mu, np.exp(-0.5 * v)[:, None])
    return logsumexp(total) + np.log(dv * dmu)


@pytest.mark.parametrize("tails", TAILS)
def test_both_ways_to_integrate_agree(tails):
    X = rows(3, 1)
    likelihood = resolved(X, tails=tails)
    value, error = block_evidence(likelihood, X, np.random.default_rng(0))
    assert error < 0.01
    assert abs(value - grid_evidence(likelihood, X[:, 0])) < 4.0 * error + 1e-3


def chance(z, allocation):
    """log p(z) of labels in order of appearance, or of any labels of a finite mixture."""
    sizes, gamma, n = np.unique(z, return_counts=True)[1], allocation.concentration, len(z)
    if isinstance(allocation, DirichletProcess):
        return len(sizes) * np.log(gamma) + gammaln(sizes).sum() + gammaln(gamma) - gammaln(gamma + n)
    share, K = gamma / allocation.n_clusters, allocation.n_clusters
    one = gammaln(gamma) - gammaln(gamma + n) + (gammaln(sizes + share) - gammaln(share)).sum()
    return one + gammaln(K + 1) - gammaln(K - len(sizes) + 1) if len(sizes) <= K else -np.inf


def partitions(n):
    return [z for z in product(range(n), repeat=n) if all(k <= max(z[:i], default=-1) + 1 for i, k in enumerate(z))]


@pytest.mark.parametrize(("D", "n"), [(1, 6), (2, 4)])
@pytest.mark.parametrize("tails", [1.5, 4.0])
def test_bound_is_below_the_evidence_and_climbs(D, n, tails, turn):
    allocation = (DirichletProcess(0.7), FiniteDirichlet(3, 2.0))[turn % 2]
    X = rows(n, D)
    likelihood, rng = resolved(X, tails=tails), np.random.default_rng(1)
    blocks = [block for block in product([False, True], repeat=n) if any(block)]
    marginal = {block: block_evidence(likelihood, X[list(block)], rng, 4000) for block in blocks}
    assert max(error for _, error in marginal.values()) < 0.2
    terms = [chance(z, allocation) + sum(marginal[tuple(k == j for j in z)][0] for k in set(z)) for z in partitions(n)]
    exact, model = logsumexp(terms), Model(likelihood, allocation)
    for K in (1, 2, 3):
        R = rng.dirichlet(np.full(K, 0.3), n)
        T = likelihood.features(X, np.empty((n, likelihood.n_statistics)))
        summary, bounds = summary_of(R.sum(axis=0), R.T @ T), []
        for _ in range(30):
            summary, _ = local_step(model.likelihood, model.parameters(model.ordered(summary), FLOAT), X, np.ones(n))
            bounds.append(model.bound(model.ordered(summary)))
        assert np.all(np.diff(bounds) > -1e-10)
        assert bounds[-1] <= exact + 0.1  # the error of sampling
        assert bounds[-1] > exact - 12.0


@pytest.mark.parametrize("tails", TAILS)
@pytest.mark.parametrize("D", [1, 3])
def test_one_cluster_is_bounded_tightly(tails, D):
    """What the factor q(u) costs: a part of a nat for each row."""
    X = rows(8, D, seed=3)
    likelihood = resolved(X, tails=tails)
    exact, error = block_evidence(likelihood, X, np.random.default_rng(2))
    model = Model(likelihood, FiniteDirichlet(1, 1.0))
    summary = summary_of(
        np.full(1, 8.0), likelihood.features(X, np.empty((8, likelihood.n_statistics))).sum(axis=0)[None]
    )
    hard = model.bound(summary) + likelihood.log_base(X).sum()
    for _ in range(50):
        summary, _ = local_step(model.likelihood, model.parameters(summary, FLOAT), X, np.ones(8))
    bound = model.bound(summary)
    assert hard < bound < exact + 4.0 * error
    assert bound > exact - 0.3 * 8


@pytest.mark.parametrize("D", [1, 4])
def test_long_tails_end_in_a_gaussian(D):
    X = rows(200, D, seed=5)
    prior = {"mean": 1.0, "mean_precision": 0.3, "scale": 2.0}
    families = StudentT(tails=1e8, **prior).resolve(Sample.of(X)), Gaussian(**prior).resolve(Sample.of(X))
    bounds = []
    for family in families:
        model = Model(family, DirichletProcess(1.0))
        R = np.random.default_rng(0).dirichlet(np.ones(3), len(X))
        summary = summary_of(R.sum(axis=0), R.T @ family.features(X, np.empty((len(X), family.n_statistics))))
        for _ in range(5):
            summary, _ = local_step(model.likelihood, model.parameters(summary, FLOAT), X, np.ones(len(X)))
        bounds.append(model.bound(summary))
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-6)


def test_a_merge_is_a_lower_bound_that_the_next_steps_raise():
    X = rows(60, 2, seed=7)
    likelihood, n = resolved(X, tails=3.0), len(X)
    R = np.random.default_rng(0).dirichlet(np.full(3, 0.3), n)
    T = likelihood.features(X, np.empty((n, likelihood.n_statistics)))
    model, summary = Model(likelihood, DirichletProcess(1.0)), summary_of(R.sum(axis=0), R.T @ T)
    for _ in range(4):
        summary, _ = local_step(model.likelihood, model.parameters(model.ordered(summary), FLOAT), X, np.ones(n))
    whole = summary_of(np.full(1, float(n)), summary.S.sum(axis=0)[None])
    whole = replace(whole, base=summary.base)
    bounds = [model.bound(whole)]
    for _ in range(60):
        whole, _ = local_step(model.likelihood, model.parameters(whole, FLOAT), X, np.ones(n))
        bounds.append(model.bound(whole))
    assert np.all(np.diff(bounds) > -1e-10)
    labelled = summary_of(np.full(1, float(n)), T.sum(axis=0)[None])  # one cluster by labels
    for _ in range(60):
        labelled, _ = local_step(model.likelihood, model.parameters(labelled, FLOAT), X, np.ones(n))
    assert bounds[0] <= bounds[-1] == pytest.approx(model.bound(labelled), rel=1e-7)


# Predictive densities


def test_predictive_is_an_integral_over_scales():
    X = rows(40, 2, seed=9)
    likelihood = resolved(X, tails=2.5)
    T = likelihood.features(X, np.empty((40, likelihood.n_statistics)))
    N, S = np.array([40.0, 0.0]), np.stack([T.sum(axis=0), 0.0 * T[0]])
    far = np.vstack([X[:3], [[60.0, -50.0], [4e3, 1e3]]])
    got = likelihood.log_predictive(far, N, S)
    for k, kappa, nu in [(0, 40.3, 43.5), (1, 0.3, 3.5)]:
        means, covariances, _ = likelihood.posterior(N, S)
        B, dof = covariances[k] * (nu - 3.0), nu - 1.0
        for x, value in zip(far, got[:, k]):

            def density(v, x=x, B=B, dof=dof, kappa=kappa, mean=means[k]):
                u = np.exp(v)
                shape = B * (1.0 / u + 1.0 / kappa) / dof
                return u * stats.gamma(1.25, scale=0.8).pdf(u) * stats.multivariate_t(mean, shape, dof).pdf(x)

            want = integrate.quad(density, -40.0, 6.0, limit=400, points=[-10.0, 0.0], epsabs=0.0, epsrel=1e-10)[0]
            assert value == pytest.approx(np.log(want), rel=1e-7)


def test_parameters_that_are_known_leave_students_t():
    X = rows(30, 3)
    B = np.eye(3) + 0.3
    likelihood = StudentT(mean=0.5, mean_precision=1e9, degrees_of_freedom=1e9, scale=1e9 * B, tails=3.5)
    likelihood = likelihood.resolve(Sample.of(X))
    S = np.zeros((1, likelihood.n_statistics))
    want = stats.multivariate_t(np.full(3, 0.5), B, 3.5).logpdf(X)
    np.testing.assert_allclose(likelihood.log_predictive(X, np.zeros(1), S)[:, 0], want, rtol=1e-6)
    drawn = likelihood.sample(0.0, S[0], np.random.default_rng(0), 20_000)
    squares = np.einsum("na,ab,nb->n", drawn - 0.5, np.linalg.inv(B), drawn - 0.5)
    assert stats.kstest(squares / 3.0, stats.f(3, 3.5).cdf).pvalue > 1e-3


# Data


def heavy_rows(seed, tails=3.0, n=3000, D=4, K=6):
    """Clusters of multivariate Student's t, and their labels."""
    rng = np.random.default_rng(seed)
    centers, z = 12.0 * rng.normal(size=(K, D)), rng.integers(K, size=n)
    widths = np.ones(n) if np.isinf(tails) else np.sqrt(tails / rng.chisquare(tails, n))
    return centers[z] + rng.standard_normal((n, D)) * widths[:, None], z


@pytest.mark.long
def test_heavy_tails_are_one_cluster_each():
    X, _ = heavy_rows(0, n=900)
    fitted = Mixture("student_t", random_state=0, n_jobs=1).fit(X)
    assert fitted.n_clusters_ == 6
    assert 2.5 < fitted.posterior_.tails[0] < 3.6
    gaussian = Mixture("gaussian", random_state=0, n_jobs=1).fit(X)
    assert gaussian.n_clusters_ > 6
    assert gaussian.lower_bound_ < fitted.lower_bound_


def test_tails_of_gaussian_clusters_are_long():
    X, _ = heavy_rows(1, np.inf, n=1500)
    fitted = Mixture("student_t", random_state=0, n_jobs=1).fit(X)
    gaussian = Mixture("gaussian", random_state=0, n_jobs=1).fit(X)
    assert fitted.n_clusters_ == gaussian.n_clusters_ == 6
    assert fitted.model_.likelihood.tails > 100.0
    assert fitted.lower_bound_ == pytest.approx(gaussian.lower_bound_, abs=2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_far_row_does_no_harm(dtype):
    X, z = heavy_rows(2, n=1500, K=3)
    X[17] = 1e4
    fitted = Mixture("student_t", random_state=0, n_jobs=1, init=z, moves=()).fit(X.astype(dtype))
    centers = np.array([np.median(X[z == k], axis=0) for k in range(3)])
    away = np.abs(fitted.posterior_.means[:, None] - centers).max(axis=2).min(axis=1)
    assert away.max() < 0.3
    assert np.all(fitted.posterior_.covariances.diagonal(axis1=1, axis2=2) < 2.0)


def test_the_number_of_threads_changes_no_bit():
    X, _ = heavy_rows(3, n=9000, K=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two = (Mixture("student_t", random_state=0, n_jobs=jobs, max_laps=12).fit(X) for jobs in (1, 2))
    assert one.lower_bounds_ == two.lower_bounds_
    assert one.summary_.S.tobytes() == two.summary_.S.tobytes()


def test_a_model_is_saved_and_loaded(tmp_path):
    X, _ = heavy_rows(4, n=600, K=3)
    fitted = Mixture("student_t", random_state=0, n_jobs=1).fit(X)
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    assert again.model_.likelihood.tails == fitted.model_.likelihood.tails


@pytest.mark.parametrize("tails", [0.0, -1.0, np.nan, np.inf, 0.01, 1e9, [3.0, 4.0]])
def test_tails_out_of_range_are_refused(tails):
    with pytest.raises(ValueError, match=r"^tails must be a number from 0.1 to 1e\+08; got "):
        StudentT(tails=tails).resolve(Sample.of(rows(9, 2)))


def test_what_has_no_scales_is_refused_with_what_to_use():
    X = rows(30, 2)
    with pytest.raises(ValueError, match="only Mixture can use; use Gaussian"):
        HMM("student_t").fit(X)
    with pytest.raises(ValueError, match="only Mixture can use; use Gaussian"):
        TopicModel("student_t").fit(X, lengths=[10, 20])
    with pytest.raises(ValueError, match=r"part 'a' is a StudentT.*use Gaussian"):
        Mixture(Product({"a": (StudentT(), [0, 1])})).fit(X)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="StudentT cannot use missing values"):
        Mixture("student_t").fit(X)
