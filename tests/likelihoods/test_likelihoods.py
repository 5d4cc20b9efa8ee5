"""Each likelihood against finite differences, quadrature, Monte Carlo and textbook formulas."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp, psi

from stickbreak.likelihoods import REGISTRY, Dust, Sample
from stickbreak.likelihoods._quadratic import GRAIN

SEEDS = st.integers(0, 2**32 - 1)


def clustered(family, naive, seed, n=40, K=3, D=3):
    """A likelihood, rows, their features, and the counts and statistics of K random clusters, the last one empty."""
    rng = np.random.default_rng(seed)
    X = family.rows(rng, n, D)
    likelihood = family.likelihood(X)
    R = np.hstack([rng.dirichlet(np.full(K - 1, 0.3), n), np.zeros((n, 1))])
    T = naive.features(likelihood, X)
    return SimpleNamespace(likelihood=likelihood, X=X, T=T, R=R, N=R.sum(axis=0), S=R.T @ T, rng=rng)


def slope(f, h):
    """Derivative of f at zero by central differences of fourth order."""
    return (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)


# ---- every family ----------------------------------------------------------------------------------------------------


@given(seed=SEEDS, D=st.integers(1, 4))
def test_weights_are_the_gradient_of_log_marginal(family, naive, seed, D):
    """Adding a row with weight e changes log Z by e (t(x) . W + b), and adding a bare count by e b."""
    c = clustered(family, naive, seed, D=D)
    N, S = c.N[:2] + 0.01 * len(c.T), c.S[:2] + 0.01 * c.T.sum(axis=0)  # every sum can shrink
    N += 3.0 * isinstance(c.likelihood.latent, Dust)  # rows of background
    W, b = c.likelihood.weights(N, S)
    rows = np.vstack([np.zeros(c.T.shape[1]), c.T])  # b alone, then each row
    for t in rows[:: max(1, len(rows) // 20)]:
        numeric = slope(lambda e, t=t: c.likelihood.log_marginal(N + e, S + e * t), 1e-4)
        np.testing.assert_allclose(
            numeric, W @ t + b, rtol=1e-8, atol=1e-8 * np.abs(c.likelihood.log_marginal(N, S)).max()
        )


@given(seed=SEEDS, D=st.integers(1, 4))
def test_log_marginal_is_the_chain_of_predictives(conjugate_family, naive, seed, D):
    c = clustered(conjugate_family, naive, seed, n=8, D=D)
    N, S, base, chain = np.zeros(1), np.zeros((1, c.T.shape[1])), 0.0, 0.0
    for x, t in zip(c.X[:, None], c.T):
        chain += c.likelihood.log_predictive(x, N, S)[0, 0]
        base += c.likelihood.log_base(x)[0]
        N, S = N + 1.0, S + t
        np.testing.assert_allclose(c.likelihood.log_marginal(N, S)[0] + base, chain, rtol=1e-10, atol=1e-10)


def test_empty_cluster_has_no_marginal_and_clusters_are_independent(family, naive):
    c = clustered(family, naive, 1)
    whole = c.likelihood.log_marginal(c.N, c.S)
    assert whole[-1] == 0.0
    for k in range(3):
        assert c.likelihood.log_marginal(c.N[k : k + 1], c.S[k : k + 1])[0] == pytest.approx(whole[k], rel=1e-13)


def test_predictive_sums_to_one(family, naive):
    c = clustered(family, naive, 2, D=1)
    x, w = family.everything(c.X)
    total = w @ np.exp(c.likelihood.log_predictive(x, c.N, c.S))
    np.testing.assert_allclose(total, 1.0, rtol=1e-10)


@pytest.mark.parametrize("k", [0, 1])
def test_sample_follows_the_predictive_in_one_column(joint_family, naive, k):
    c = clustered(joint_family, naive, 3, D=1)
    x, w = joint_family.everything(c.X)
    log_density = c.likelihood.log_predictive(x, c.N, c.S)[:, k]
    drawn = c.likelihood.sample(c.N[k], c.S[k], c.rng, 20_000)
    assert drawn.shape == (20_000, c.X.shape[1])
    drawn_density = c.likelihood.log_predictive(drawn, c.N, c.S)[:, k]
    for got, values in [(drawn[:, -1], x[:, -1]), (drawn[:, -1] ** 2, x[:, -1] ** 2), (drawn_density, log_density)]:
        want = w @ (np.exp(log_density) * values)
        assert abs(got.mean() - want) < 4.0 * got.std() / np.sqrt(got.size)


@given(seed=SEEDS, D=st.integers(1, 4))
def test_divergence_is_positive_and_zero_on_itself(family, naive, seed, D):
    c = clustered(family, naive, seed, n=20, D=D)
    divergence = c.likelihood.divergence(c.X, c.X[:7])
    assert divergence.shape == (20, 7)
    np.testing.assert_array_equal(c.likelihood.divergence_of(c.X)(c.X[:7]), divergence)
    assert np.all(divergence >= 0.0)
    np.testing.assert_allclose(divergence[range(7), range(7)], 0.0, atol=1e-12 * (1.0 + divergence.max()))
    assert divergence.max() > 1e-3


def test_single_precision_features_are_close(family, naive):
    c = clustered(family, naive, 4)
    single = naive.features(c.likelihood, c.X, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, c.T, rtol=0, atol=1e-6 * np.abs(c.T).max())
    W, b = c.likelihood.weights(c.N, c.S)
    scores = single @ W.astype(np.float32).T + b.astype(np.float32)
    terms = np.abs(c.T) @ np.abs(W).T + np.abs(b)  # rounding is relative to what is added up
    assert np.all(np.abs(scores - (c.T @ W.T + b)) <= 1e-6 * terms)


# ---- Gaussian families, against formulas in the units of the data ----------------------------------------------------


def textbook(likelihood, X, w):
    """Normal-Wishart posterior (kappa, nu, m, B) from deviations about the mean; kappa is infinite for a known mean."""
    kappa, m0 = getattr(likelihood, "mean_precision", np.inf), getattr(likelihood, "mean", np.zeros(X.shape[1]))
    n = w.sum()
    center = np.average(X, axis=0, weights=w)
    away = center - m0
    B = likelihood.scale + (w[:, None] * (X - center)).T @ (X - center)
    shrink = n if np.isinf(kappa) else kappa * n / (kappa + n)
    m = m0 if np.isinf(kappa) else (kappa * m0 + n * center) / (kappa + n)
    return kappa + n, likelihood.degrees_of_freedom + n, m, B + shrink * np.outer(away, away)


@given(seed=SEEDS, D=st.integers(1, 4))
def test_posterior_and_predictive_are_the_textbook_ones(normal_family, naive, seed, D):
    c = clustered(normal_family, naive, seed, D=D)
    posterior = c.likelihood.posterior(c.N, c.S)
    density = c.likelihood.log_predictive(c.X, c.N, c.S)
    for k in range(2):
        kappa, nu, m, B = textbook(c.likelihood, c.X, c.R[:, k])
        np.testing.assert_allclose(posterior.means[k], m, rtol=1e-11)
        np.testing.assert_allclose(posterior.covariances[k], B / (nu - D - 1), rtol=1e-11, atol=1e-12 * B.max())
        dof = nu - D + 1
        student = stats.multivariate_t(m, B * (1.0 + 1.0 / kappa) / dof, dof)
        np.testing.assert_allclose(density[:, k], student.logpdf(c.X), rtol=1e-10)


def integrated_log_evidence(likelihood, x):
    """log p(x_1 ... x_n) of one column by trapezoids over the mean mu and the precision e^u."""
    kappa, nu, m, B = textbook(likelihood, x[:, None], np.ones(len(x)))
    u, du = np.linspace(-14.0, 5.0, 500, retstep=True)
    precision = np.exp(u) * nu / B[0, 0]
    log_p = stats.gamma(0.5 * likelihood.degrees_of_freedom, scale=2.0 / likelihood.scale[0, 0]).logpdf(precision)
    log_p += np.log(precision * du)
    if np.isinf(kappa):
        return logsumexp(log_p + stats.norm.logpdf(x[:, None], 0.0, precision**-0.5).sum(axis=0))
    z, dz = np.linspace(-9.0, 9.0, 201, retstep=True)
    width = 1.0 / np.sqrt(precision * kappa)
    mu = m[0] + z[:, None] * width
    log_p = log_p + np.log(dz * width)
    log_p = log_p + stats.norm.logpdf(mu, likelihood.mean[0], (precision * likelihood.mean_precision) ** -0.5)
    return logsumexp(log_p + stats.norm.logpdf(x[:, None, None], mu, precision**-0.5).sum(axis=0))


@pytest.mark.parametrize("n", [1, 6])
def test_marginal_and_predictive_are_integrals_over_the_parameters(normal_family, naive, n):
    c = clustered(normal_family, naive, 5, n=12, D=1)
    X, T = c.X[: n + 1], c.T[: n + 1]
    N, S = np.array([float(n)]), T[:n].sum(axis=0, keepdims=True)
    now, after = (integrated_log_evidence(c.likelihood, X[:size, 0]) for size in (n, n + 1))
    base = c.likelihood.log_base(X)[0]
    assert c.likelihood.log_marginal(N, S)[0] + n * base == pytest.approx(now, rel=1e-9)
    assert c.likelihood.log_predictive(X[n:], N, S)[0, 0] == pytest.approx(after - now, rel=1e-9)


def expected_log_density(X, kappa, nu, m, B):
    """E[log Normal(x; mu, Lambda^-1)] under a Normal-Wishart, by Cholesky."""
    D = X.shape[1]
    squares = (np.linalg.solve(np.linalg.cholesky(B), (X - m).T) ** 2).sum(axis=0)
    log_precision = psi(0.5 * (nu - np.arange(D))).sum() + D * np.log(2.0) - np.linalg.slogdet(B)[1]
    return 0.5 * (log_precision - D * np.log(2.0 * np.pi) - D / kappa - nu * squares)


@pytest.mark.parametrize("width", [1.0, 1e-3])
@given(seed=SEEDS, D=st.integers(1, 4))
def test_expected_log_likelihood_is_that_of_cholesky(normal_family, naive, width, seed, D):
    """Also for clusters a thousand times narrower than their distance from the centre of the data."""
    rng = np.random.default_rng(seed)
    X = normal_family.rows(rng, 60, D)
    mixing = width * (rng.standard_normal((D, D)) + 2.0 * np.eye(D)) * X.std(axis=0)
    X[:30] = X[30] + rng.standard_normal((30, D)) @ mixing
    prior = normal_family.prior(D)
    likelihood = normal_family.likelihood(X, **(prior | {"scale": width**2 * prior["scale"]}))
    T, w = naive.features(likelihood, X), np.repeat([1.0, 0.0], 30)
    W, b = likelihood.weights(w.sum(keepdims=True), (w @ T)[None])
    got = (T @ W.T + b)[:30, 0] + likelihood.log_base(X[:30])
    kappa, nu, m, B = textbook(likelihood, X, w)
    grain, Z = GRAIN - 1.0, X - getattr(likelihood, "origin", 0.0)
    B = B + grain * np.diag(w @ Z**2)  # squares count for a little more, in sums and in scores
    want = expected_log_density(X[:30], kappa, nu, m, B)
    want -= 0.5 * nu * grain * (Z[:30] ** 2 @ np.diagonal(np.linalg.inv(B)))
    cancelled = np.abs(T) @ np.abs(W).T  # the size of the terms whose sum is the quadratic form
    np.testing.assert_allclose(got, want, rtol=0, atol=5e-14 * cancelled.max())


def test_sample_obeys_steins_identity(normal_family, naive):
    """E[(x - c)_i d log p / d x_j] = - delta_ij for draws from p: all second moments at once."""
    c = clustered(normal_family, naive, 7, D=3)
    X = c.likelihood.sample(c.N[0], c.S[0], c.rng, 20_000)
    center = c.likelihood.posterior(c.N, c.S).means[0]
    unit = c.X.std(axis=0)

    def density(step):
        return c.likelihood.log_predictive(X + step, c.N[:1], c.S[:1])[:, 0]

    gradient = np.column_stack([slope(lambda h, e=e: density(h * e), 1e-2) for e in np.diag(unit)])
    products = ((X - center) / unit)[:, :, None] * gradient[:, None, :]
    error = products.mean(axis=0) + np.eye(3)
    assert np.all(np.abs(error) < 4.0 * products.std(axis=0) / np.sqrt(len(X)))


def moved(likelihood, scale, shift):
    """The same prior in data units x -> scale x + shift."""
    prior = {"degrees_of_freedom": likelihood.degrees_of_freedom, "scale": likelihood.scale * np.outer(scale, scale)}
    if hasattr(likelihood, "mean"):
        prior |= {"mean": likelihood.mean * scale + shift, "mean_precision": likelihood.mean_precision}
    return prior


@pytest.mark.parametrize("powers", [(0, 0, 0), (-8, 0, 8), (8, 8, 8), (-8, -8, -8)])
@pytest.mark.parametrize(
    ("normal_family", "offset"),
    [("gaussian", 0.0), ("gaussian", 1e6), ("zero_mean_gaussian", 0.0)],  # a known mean of zero cannot be shifted
    indirect=["normal_family"],
)
def test_units_of_the_data_change_only_the_jacobian(normal_family, naive, powers, offset):
    c = clustered(normal_family, naive, 8)
    scale = 10.0 ** np.array(powers)
    shift = offset * scale * c.X.std(axis=0)
    X = c.X * scale + shift
    other = normal_family.likelihood(X, **moved(c.likelihood, scale, shift))
    S = c.R.T @ naive.features(other, X)
    tight = 1e-11 if offset == 0.0 else 1e-6  # adding 1e6 spreads to the data leaves ten digits of them
    want = c.likelihood.log_marginal(c.N, c.S) + c.N * (c.likelihood.log_base(c.X)[0] - np.log(scale).sum())
    np.testing.assert_allclose(other.log_marginal(c.N, S) + c.N * other.log_base(X)[0], want, rtol=tight)
    before, after = c.likelihood.posterior(c.N, c.S), other.posterior(c.N, S)
    np.testing.assert_allclose((after.means - shift) / scale, before.means, rtol=tight)
    np.testing.assert_allclose(after.covariances / np.outer(scale, scale), before.covariances, rtol=tight)
    want = c.likelihood.divergence(c.X, c.X[:3])
    np.testing.assert_allclose(other.divergence(X, X[:3]), want, rtol=tight, atol=tight)


def test_default_prior_expects_a_tenth_of_the_weighted_variance(normal_family):
    rng = np.random.default_rng(10)
    X, w = rng.uniform(-1.0, 1.0, (30, 3)) * [1.0, 3.0, 10.0] + 2.0, rng.integers(0, 3, 30)  # without outliers
    likelihood = REGISTRY[normal_family.name]().resolve(Sample.of(X, w.astype(float)))
    repeated = np.repeat(X, w, axis=0)
    center = repeated.mean(axis=0) if normal_family.name == "gaussian" else np.zeros(3)
    expected = likelihood.posterior(np.zeros(1), np.zeros((1, likelihood.n_statistics)))
    want = 0.1 * np.diag(((repeated - center) ** 2).mean(axis=0))
    np.testing.assert_allclose(expected.covariances[0], want, rtol=1e-12)
    np.testing.assert_allclose(expected.means[0], center, rtol=1e-12)


def test_divergence_against_its_definition(normal_family, naive):
    c = clustered(normal_family, naive, 11)
    nu, B = c.likelihood.degrees_of_freedom, c.likelihood.scale
    gaps = c.X[:, None] - c.X[:4]
    want = 0.5 * np.einsum("nja,ab,njb->nj", gaps, nu * np.linalg.inv(B), gaps)
    if normal_family.name == "zero_mean_gaussian":  # KL[Normal(0, M(x)) || Normal(0, M(c))]
        M = (B + c.X[:, :, None] * c.X[:, None, :]) / (nu + 1.0)
        ratio = np.linalg.solve(M[None, :4], M[:, None])  # M(c)^-1 M(x)
        want = 0.5 * (np.trace(ratio, axis1=2, axis2=3) - 3.0 - np.linalg.slogdet(ratio)[1])
    np.testing.assert_allclose(c.likelihood.divergence(c.X, c.X[:4]), want, rtol=1e-10, atol=1e-11)


ASYMMETRIC = np.eye(3) + 0.5 * np.eye(3, k=1)
BAD = {
    "degrees_of_freedom": [2.0, -1.0, np.nan, np.inf],
    "scale": [0.0, -1.0, np.nan, np.diag([1.0, np.nan, 1.0]), np.ones((3, 3)) - 0.5 * np.eye(3), ASYMMETRIC],
    "mean_precision": [0.0, -2.0, np.nan, np.inf],
    "mean": [1.0 * np.arange(2), np.nan, np.zeros((3, 3)), [1.0, np.inf, 0.0]],
}
BAD["scale"] += [np.ones((3, 2)), np.ones(2), [1.0, 0.0, 1.0]]


@pytest.mark.parametrize("name", BAD)
def test_bad_hyperparameters_are_refused_by_name(normal_family, name):
    kind, X = REGISTRY[normal_family.name], np.random.default_rng(12).standard_normal((20, 3))
    for value in BAD[name] if name in {f.name for f in fields(kind)} else []:
        with pytest.raises(ValueError, match=f"^{name} must be .*; got "):
            kind(**{name: value}).resolve(Sample.of(X))


def test_symmetry_of_the_scale_is_judged_in_the_units_of_the_data(normal_family):
    with pytest.raises(ValueError, match=r"^scale must be symmetric"):
        normal_family.likelihood(1e-6 * np.random.default_rng(12).standard_normal((20, 3)), scale=1e-12 * ASYMMETRIC)


def test_constant_columns_keep_a_usable_prior(normal_family):
    X = np.column_stack([np.arange(5.0), np.full(5, 1e6 + 0.1), np.zeros(5)])
    likelihood = REGISTRY[normal_family.name]().resolve(Sample.of(X))
    assert np.isfinite(likelihood.log_predictive(X, np.zeros(1), np.zeros((1, likelihood.n_statistics)))).all()


def test_scatter_lost_to_rounding_is_an_error_with_a_cure(normal_family, naive):
    X = np.repeat(np.random.default_rng(13).standard_normal((20, 1)), 2, axis=1)  # a duplicated column
    likelihood = normal_family.likelihood(X, scale=1e-40)
    S = naive.features(likelihood, X).sum(axis=0, keepdims=True)
    S[0, 0] *= 1.0 - 1e-12
    with pytest.raises(FloatingPointError, match="raise the prior's `scale`"):
        likelihood.log_marginal(np.array([20.0]), S)
