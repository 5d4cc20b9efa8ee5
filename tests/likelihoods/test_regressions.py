"""Regressions against textbook formulas in the units of the data, quadrature and finite differences."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from stickbreak.likelihoods._sample import Sample
from stickbreak.likelihoods.autoregressive_gaussian import AutoregressiveGaussian
from stickbreak.likelihoods.features import features
from stickbreak.likelihoods.linear_regression import LinearRegression

UNITS = np.array([0.2, 30.0, 4.0, 1.0, 9.0, 0.5])
OFFSETS = np.array([3.0, -50.0, 0.0, 2.0, 70.0, -1.0])


def symmetric(rng, M):
    root = rng.standard_normal((M, M))
    return root @ root.T + 0.5 * np.eye(M)


def given_prior(rng, q, M, y_units, r_units):
    """A prior away from the defaults, in the units of the data."""
    return {
        "mean": rng.standard_normal((q, M)) * np.divide.outer(y_units, r_units),
        "mean_precision": symmetric(rng, M) * np.outer(r_units, r_units),
        "degrees_of_freedom": q + 1.5,
        "scale": symmetric(rng, q) * np.outer(y_units, y_units),
    }


# name -> the likelihood's class, its structure, targets q, regressors P, whether its prior is given
CASES = {
    "ar": (AutoregressiveGaussian, {"order": 1}, 2, 2, True),
    "ar-default": (AutoregressiveGaussian, {"order": 2}, 2, 4, False),
    "ar-through-zero": (AutoregressiveGaussian, {"order": 3, "intercept": False}, 1, 3, True),
    "lines": (LinearRegression, {}, 1, 2, True),
    "lines-default": (LinearRegression, {"targets": 2}, 2, 3, False),
    "lines-through-zero": (LinearRegression, {"targets": 2, "intercept": False}, 2, 2, True),
    "lines-through-zero-default": (LinearRegression, {"targets": 1, "intercept": False}, 1, 1, False),
}


def make(name, seed=0, n=40, absent=0.0):
    """A likelihood, rows (some without targets), features, and counts and statistics of three clusters, the last empty."""
    kind, structure, q, P, given = CASES[name]
    rng = np.random.default_rng(seed)
    y, r = (
        (np.arange(q), np.arange(q, q + P)) if kind is AutoregressiveGaussian else (np.arange(P, P + q), np.arange(P))
    )
    units, intercept = UNITS[: q + P], structure.get("intercept", True)
    Z = rng.standard_normal((n, q + P))
    labels = rng.integers(2, size=n)
    slopes = rng.standard_normal((2, q, P))
    Z[:, y] = np.einsum("nqp,np->nq", slopes[labels], Z[:, r]) + 0.3 * Z[:, y]
    X = OFFSETS[: q + P] + Z * units
    X[np.ix_(rng.random(n) < absent, y)] = np.nan
    prior = given_prior(rng, q, P + intercept, units[y], np.append(units[r], np.ones(int(intercept)))) if given else {}
    likelihood = kind(**structure, **prior).resolve(Sample.of(X))
    R = np.hstack([rng.dirichlet(np.full(2, 0.3), n), np.zeros((n, 1))])
    T = features(likelihood, X)
    return SimpleNamespace(
        likelihood=likelihood, X=X, T=T, R=R, N=R.sum(axis=0), S=R.T @ T, rng=rng, y=y, r=r, q=q, intercept=intercept
    )


@pytest.fixture(params=CASES)
def case(request):
    return make(request.param)


@pytest.fixture(params=[name for name in CASES if name.startswith("lines")])
def holed(request):
    return make(request.param, absent=0.3)


def regressors(c, X):
    return np.hstack([X[:, c.r], np.ones((len(X), int(c.intercept)))])


def prior_precision(c):
    """K0 in the units of the data, by the definition of a number: pseudo-rows with the spread of the data."""
    K0 = np.asarray(c.likelihood.mean_precision)
    if K0.ndim:
        return K0
    center = c.X[:, c.r].mean(axis=0) if c.intercept else np.zeros(len(c.r))
    spread = np.sqrt(((c.X[:, c.r] - center) ** 2).mean(axis=0))
    G = np.diag(np.append(spread, np.ones(int(c.intercept))))
    if c.intercept:
        G[:-1, -1] = center
    return K0 * G @ G.T


def textbook(c, X, w):
    """The matrix-normal-Wishart posterior M, K, nu, B after rows with weights, in the units of the data."""
    M0, K0 = c.likelihood.mean, prior_precision(c)
    r, y = regressors(c, X), X[:, c.y]
    K = K0 + (w[:, None] * r).T @ r
    M = np.linalg.solve(K, (M0 @ K0 + (w[:, None] * y).T @ r).T).T
    errors, shift = y - r @ M.T, M - M0
    B = c.likelihood.scale + (w[:, None] * errors).T @ errors + shift @ K0 @ shift.T
    return M, K, c.likelihood.degrees_of_freedom + w.sum(), B


# ---- every family ----------------------------------------------------------------------------------------------------


def slope(f, h):
    """Derivative of f at zero by central differences of fourth order."""
    return (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)


@pytest.mark.parametrize("absent", [0.0, 0.4])
@pytest.mark.parametrize("name", CASES)
def test_weights_are_the_gradient_of_log_marginal(name, absent):
    c = make(name, seed=1, absent=absent if name.startswith("lines") else 0.0)
    N, S = c.N[:2], c.S[:2]
    W, b = c.likelihood.weights(N, S)
    for t in np.vstack([np.zeros(c.T.shape[1]), c.T[::4]]):
        numeric = slope(lambda e, t=t: c.likelihood.log_marginal(N + e, S + e * t), 1e-3)
        np.testing.assert_allclose(
            numeric, W @ t + b, rtol=1e-8, atol=1e-8 * np.abs(c.likelihood.log_marginal(N, S)).max()
        )


def test_log_marginal_is_the_chain_of_predictives(case):
    c = case
    N, S, chain = np.zeros(1), np.zeros((1, c.T.shape[1])), 0.0
    for x, t in zip(c.X[:8, None], c.T):
        chain += c.likelihood.log_predictive(x, N, S)[0, 0]
        N, S = N + 1.0, S + t
        whole = c.likelihood.log_marginal(N, S)[0] + N[0] * c.likelihood.log_base(x)[0]
        np.testing.assert_allclose(whole, chain, rtol=1e-10, atol=1e-10)


def test_empty_cluster_has_no_marginal_and_clusters_are_independent(case):
    whole = case.likelihood.log_marginal(case.N, case.S)
    assert whole[-1] == 0.0
    for k in range(3):
        assert case.likelihood.log_marginal(case.N[[k]], case.S[[k]])[0] == pytest.approx(whole[k], rel=1e-12)


def test_posterior_and_predictive_are_the_textbook_ones(case):
    c, posterior = case, case.likelihood.posterior(case.N, case.S)
    density = c.likelihood.log_predictive(c.X, c.N, c.S)
    for k in range(3):
        M, K, nu, B = textbook(c, c.X, c.R[:, k])
        r, dof = regressors(c, c.X), nu - c.q + 1.0
        got = np.hstack([posterior.coefficients[k], posterior.intercepts[k][:, None]])
        want = M if c.intercept else np.hstack([M, np.zeros((c.q, 1))])
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10 * np.abs(want).max())
        spare = nu - c.q - 1.0 if nu > c.q + 1.0 else nu
        np.testing.assert_allclose(posterior.covariances[k], B / spare, rtol=1e-8, atol=1e-10 * B.max())
        for n in range(0, len(c.X), 5):
            shape = B * (1.0 + r[n] @ np.linalg.solve(K, r[n])) / dof
            want = stats.multivariate_t(M @ r[n], shape, dof).logpdf(c.X[n, c.y])
            assert density[n, k] == pytest.approx(want, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("name", ["ar-through-zero", "lines", "lines-through-zero-default"])
def test_evidence_of_one_target_is_a_student_t_of_all_rows(name):
    """y ~ t_nu(R M0', (I + R K0^-1 R') B / nu), the slopes and the precision integrated out."""
    c = make(name, n=9)
    r, nu = regressors(c, c.X), c.likelihood.degrees_of_freedom
    shape = (np.eye(9) + r @ np.linalg.solve(prior_precision(c), r.T)) * c.likelihood.scale[0, 0] / nu
    want = stats.multivariate_t(r @ c.likelihood.mean[0], shape, nu).logpdf(c.X[:, c.y[0]])
    N, S = np.array([9.0]), c.T.sum(axis=0, keepdims=True)
    assert c.likelihood.log_marginal(N, S)[0] + c.likelihood.log_base(c.X).sum() == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("name", ["ar-through-zero", "lines", "lines-through-zero-default"])
def test_predictive_of_one_target_integrates_to_one(name):
    c = make(name)
    u, w = np.polynomial.legendre.leggauss(800)
    u, w = 0.5 * np.pi * u, 0.5 * np.pi * w
    center, spread = c.X[:, c.y].mean(), c.X[:, c.y].std()
    for row in c.X[:3]:
        X = np.tile(row, (len(u), 1))
        X[:, c.y[0]] = center + spread * np.tan(u)
        total = (w * spread / np.cos(u) ** 2) @ np.exp(c.likelihood.log_predictive(X, c.N, c.S))
        np.testing.assert_allclose(total, 1.0, rtol=1e-8)


def normal_gamma(c, row):
    """Log density of (slope, log precision) on a grid after one row, for one regressor and no intercept."""
    M, K, nu, B = textbook(c, row, np.ones(1))
    return lambda a, u: (
        stats.norm.logpdf(a, M[0, 0], np.exp(-0.5 * u) / np.sqrt(K[0, 0]))
        + stats.gamma.logpdf(np.exp(u), 0.5 * nu, scale=2.0 / B[0, 0])
        + u
    )


def test_divergence_is_the_divergence_of_beliefs():
    """KL[q_c || q_x] by trapezoids over the slope and the log precision."""
    c = make("lines-through-zero-default")
    x, center = c.X[:1], c.X[7:8]
    M, K, nu, B = textbook(c, center, np.ones(1))
    u = np.log(nu / B[0, 0]) + np.linspace(-20.0, 5.0, 1001)[:, None]
    a = M[0, 0] + np.linspace(-9.0, 9.0, 801) * np.exp(-0.5 * u) / np.sqrt(K[0, 0])
    log_c, log_x = normal_gamma(c, center)(a, u), normal_gamma(c, x)(a, u)
    over_slopes = np.trapezoid(np.exp(log_c) * (log_c - log_x), a, axis=1)
    assert c.likelihood.divergence(x, center)[0, 0] == pytest.approx(np.trapezoid(over_slopes, u[:, 0]), rel=1e-6)


def test_divergence_is_positive_and_zero_on_itself(case):
    divergence = case.likelihood.divergence(case.X, case.X[:7])
    assert divergence.shape == (40, 7)
    assert np.all(divergence >= 0.0)
    np.testing.assert_allclose(divergence[range(7), range(7)], 0.0, atol=1e-12 * (1.0 + divergence.max()))
    assert np.sort(divergence, axis=0)[1].min() > 1e-6


def test_single_precision_features_are_close(case):
    c = case
    single = features(c.likelihood, c.X, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, c.T, rtol=0, atol=2e-6 * np.abs(c.T).max())
    W, b = c.likelihood.weights(c.N, c.S)
    scores = single @ W.astype(np.float32).T + b.astype(np.float32)
    terms = np.abs(c.T) @ np.abs(W).T + np.abs(b)
    assert np.all(np.abs(scores - (c.T @ W.T + b)) < 5e-6 * terms)


def in_other_units(c, factor, shift):
    """The same likelihood for rows X * factor + shift: its prior carried over by the definition of the model."""
    likelihood, q = c.likelihood, c.q
    G = np.diag(np.append(factor[c.r], np.ones(int(c.intercept))))
    moved = np.zeros((q, len(G)))
    if c.intercept:
        G[:-1, -1], moved[:, -1] = shift[c.r], shift[c.y]
    K0 = prior_precision(c)
    return type(likelihood)(
        **{k: getattr(likelihood, k) for k in ("order", "targets", "intercept") if hasattr(likelihood, k)},
        mean=(factor[c.y, None] * likelihood.mean + moved) @ np.linalg.inv(G),
        mean_precision=G @ K0 @ G.T,
        degrees_of_freedom=likelihood.degrees_of_freedom,
        scale=likelihood.scale * np.outer(factor[c.y], factor[c.y]),
    )


@pytest.mark.parametrize("prior", ["carried over", "default"])
def test_units_of_the_data_change_only_the_jacobian(case, prior):
    c = case
    factor = c.rng.permutation(10.0 ** np.linspace(-2.0, 2.0, c.X.shape[1]))
    shift = 40.0 * factor * c.rng.standard_normal(len(factor)) * c.intercept
    X = c.X * factor + shift
    other, here = in_other_units(c, factor, shift), c.likelihood
    if prior == "default":
        structure = {k: getattr(here, k) for k in ("order", "targets", "intercept") if hasattr(here, k)}
        other = type(here)(**structure)
        here = other.resolve(Sample.of(c.X))
    other = other.resolve(Sample.of(X))
    S, moved = c.R.T @ features(here, c.X), c.R.T @ features(other, X)
    jacobian = np.log(factor[c.y]).sum()
    np.testing.assert_allclose(other.log_marginal(c.N, moved), here.log_marginal(c.N, S), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.log_base(X), here.log_base(c.X) - jacobian, rtol=1e-12)
    want = here.log_predictive(c.X, c.N, S) - jacobian
    np.testing.assert_allclose(other.log_predictive(X, c.N, moved), want, rtol=1e-7, atol=1e-7)
    near = here.divergence(c.X, c.X[:3])
    np.testing.assert_allclose(other.divergence(X, X[:3]), near, rtol=1e-7, atol=1e-9 * near.max())


def test_an_offset_costs_no_precision():
    c = make("lines-default")
    X = c.X + 1e6 * c.X.std(axis=0)
    far = LinearRegression(targets=2).resolve(Sample.of(X))
    S = c.R.T @ features(far, X)
    np.testing.assert_allclose(far.log_marginal(c.N, S), c.likelihood.log_marginal(c.N, c.S), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["ar", "lines", "lines-default"])
def test_an_intercept_is_a_regressor_that_is_one(name):
    c = make(name)
    place = c.r[-1] + 1  # after the regressors, so that the order of the coefficients is the same
    X = np.insert(c.X, place, 1.0, axis=1)
    kept = {k: getattr(c.likelihood, k) for k in ("mean", "degrees_of_freedom", "scale")}
    if name == "ar":  # rows [y, r, 1] of an autoregression are rows [r, 1, y] of a regression
        X = np.hstack([X[:, 2:], X[:, :2]])
    through = LinearRegression(targets=c.q, intercept=False, mean_precision=prior_precision(c), **kept).resolve(
        Sample.of(X)
    )
    S = c.R.T @ features(through, X)
    change = c.N * (c.likelihood.log_base(c.X)[0] - through.log_base(X)[0])  # the units of the targets are other
    np.testing.assert_allclose(
        c.likelihood.log_marginal(c.N, c.S) + change, through.log_marginal(c.N, S), rtol=1e-8, atol=1e-7
    )
    want = c.likelihood.log_predictive(c.X, c.N, c.S)
    np.testing.assert_allclose(through.log_predictive(X, c.N, S), want, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("k", [0, 2])
def test_sample_draws_regressors_by_their_moments_and_targets_from_the_predictive(case, k):
    c, size = case, 4000
    X = c.likelihood.sample(c.N[k], c.S[k], np.random.default_rng(5), size)
    assert X.shape == (size, c.X.shape[1])
    w = c.R[:, k] if c.N[k] > 0.0 else np.ones(len(c.X))
    mean = np.average(c.X[:, c.r], axis=0, weights=w)
    spread = np.sqrt(np.average((c.X[:, c.r] - mean) ** 2, axis=0, weights=w))
    if not c.intercept and c.N[k] == 0.0:
        mean, spread = np.zeros(len(c.r)), np.sqrt((c.X[:, c.r] ** 2).mean(axis=0))
    assert np.all(np.abs(X[:, c.r].mean(axis=0) - mean) < 4.5 * spread / np.sqrt(size))
    np.testing.assert_allclose(X[:, c.r].std(axis=0), spread, rtol=0.08)
    if c.N[k] > 0.0 and len(c.r) > 1:
        want = np.cov(c.X[:, c.r].T, aweights=w, ddof=0) / np.outer(spread, spread)
        np.testing.assert_allclose(np.corrcoef(X[:, c.r].T), want, atol=0.08)
    M, K, nu, B = textbook(c, c.X, c.R[:, k])
    r, dof = regressors(c, X), nu - c.q + 1.0
    leverage = np.einsum("nm,nm->n", r, np.linalg.solve(K, r.T).T)
    whitened = np.linalg.solve(np.linalg.cholesky(B / dof), (X[:, c.y] - r @ M.T).T) / np.sqrt(1.0 + leverage)
    for errors in whitened:
        assert stats.kstest(errors, stats.t(dof).cdf).pvalue > 1e-4


def test_profile_is_the_line_at_the_mean_regressors(case):
    c, profile = case, case.likelihood.profile(case.N, case.S)
    np.testing.assert_array_equal(profile.columns, c.y)
    np.testing.assert_array_equal(c.likelihood.describes(c.X.shape[1]), np.isin(range(c.X.shape[1]), c.y))
    posterior = c.likelihood.posterior(c.N, c.S)
    for k in range(2):
        M = textbook(c, c.X, c.R[:, k])[0]
        center = np.average(regressors(c, c.X), axis=0, weights=c.R[:, k])
        np.testing.assert_allclose(profile.means[k], M @ center, rtol=1e-6)
        np.testing.assert_allclose(profile.variances[k], np.diag(posterior.covariances[k]), rtol=1e-12)
    assert np.isfinite(profile.means).all()


# ---- missing targets -------------------------------------------------------------------------------------------------


def test_rows_without_targets_add_nothing(holed):
    c, absent = holed, np.isnan(holed.X[:, holed.y[0]])
    assert 0 < absent.sum() < 40
    np.testing.assert_array_equal(c.T[absent, :-1], 0.0)
    np.testing.assert_array_equal(c.T[:, -1], absent)
    complete = type(c.likelihood)(
        targets=c.q,
        intercept=c.intercept,
        **{k: getattr(c.likelihood, k) for k in ("mean", "degrees_of_freedom", "scale")},
        mean_precision=prior_precision(c),
    ).resolve(Sample.of(c.X[~absent]))
    N, S = c.R[~absent].sum(axis=0), c.R[~absent].T @ features(complete, c.X[~absent])
    units = N * (complete.log_base(c.X[~absent])[0] - c.likelihood.log_base(c.X[~absent])[0])
    np.testing.assert_allclose(
        c.likelihood.log_marginal(c.N, c.S), complete.log_marginal(N, S) + units, rtol=1e-8, atol=1e-8
    )
    W, b = c.likelihood.weights(c.N, c.S)
    np.testing.assert_allclose((c.T @ W.T + b)[absent], 0.0, atol=1e-12)
    np.testing.assert_array_equal(c.likelihood.log_base(c.X)[absent], 0.0)
    np.testing.assert_array_equal(c.likelihood.log_predictive(c.X, c.N, c.S)[absent], 0.0)
    assert np.abs(c.likelihood.log_predictive(c.X, c.N, c.S)[~absent]).min() > 0.0
    divergence = c.likelihood.divergence(c.X, c.X)
    np.testing.assert_array_equal(divergence[absent], 0.0)
    assert np.isfinite(divergence).all()
    assert divergence[~absent].max() > 1.0


def test_missing_targets_become_their_predictions(holed):
    c, absent = holed, np.isnan(holed.X).any(axis=1)
    seen = c.X[~absent]
    lines = [textbook(c, seen, c.R[~absent, k])[0] for k in range(3)]
    R = c.rng.dirichlet(np.ones(3), len(c.X))
    want = sum(R[:, [k]] * (regressors(c, c.X) @ lines[k].T) for k in range(3))
    np.testing.assert_allclose(c.likelihood.predict_targets(c.X, R, c.N, c.S), want, rtol=1e-6)
    filled = c.likelihood.impute(c.X, R, c.N, c.S)
    np.testing.assert_array_equal(filled[~absent], seen)
    np.testing.assert_array_equal(filled[:, c.r], c.X[:, c.r])
    np.testing.assert_allclose(filled[np.ix_(absent, c.y)], want[absent], rtol=1e-6)


def test_a_model_of_complete_rows_takes_rows_without_targets():
    c = make("lines-default")
    wide, S = c.likelihood.with_missing(np.array([False, False, False, True, True]), c.S)
    np.testing.assert_allclose(wide.log_marginal(c.N, S), c.likelihood.log_marginal(c.N, c.S), rtol=1e-13)
    X = c.X.copy()
    X[:5, c.y] = np.nan
    want = c.likelihood.log_predictive(c.X, c.N, c.S)
    want[:5] = 0.0
    np.testing.assert_allclose(wide.log_predictive(X, c.N, S), want, rtol=1e-13)
    same, again = wide.with_missing(np.ones(5, bool), S)
    assert same is wide
    assert again is S
    assert c.likelihood.with_missing(np.zeros(5, bool), c.S)[0] is c.likelihood


def test_only_all_targets_of_a_row_may_be_missing():
    likelihood = LinearRegression(targets=2)
    np.testing.assert_array_equal(likelihood.may_miss(4), [False, False, True, True])
    X = np.ones((5, 4))
    X[0, 2:], X[1, 3], X[2, 0], X[3, 1], X[4, 2] = np.nan, np.nan, np.nan, np.inf, 1e200
    want = np.ones((5, 4), bool)
    want[[1, 2, 3, 4], [3, 0, 1, 2]] = False
    np.testing.assert_array_equal(likelihood.valid(X), want)
    assert not AutoregressiveGaussian().may_miss(4).any()
    assert not AutoregressiveGaussian().valid(np.full((1, 4), np.nan)).any()


# ---- priors ----------------------------------------------------------------------------------------------------------


def test_defaults_are_the_documented_ones_and_the_scale_is_half_the_residual_variance_of_one_line():
    rng = np.random.default_rng(3)
    X, w = rng.standard_normal((4000, 3)) * UNITS[:3] + OFFSETS[:3], rng.choice([0.5, 1.0, 3.0], 4000)
    X[:, 2] += 8.0 * X[:, 0]
    r = np.column_stack([X[:, :2], np.ones(4000)]) * np.sqrt(w)[:, None]
    residual = np.linalg.lstsq(r, X[:, 2] * np.sqrt(w), rcond=None)[1][0] / w.sum()
    for nu, spare in [(None, 1.0), (7.0, 5.0)]:
        likelihood = LinearRegression(degrees_of_freedom=nu).resolve(Sample.of(X, w))
        assert likelihood.scale[0, 0] == pytest.approx(0.5 * residual * spare, rel=1e-3)
        assert likelihood.degrees_of_freedom == (nu or 3.0)
    assert likelihood.mean_precision == 1e-2
    np.testing.assert_allclose(likelihood.mean, [[0.0, 0.0, np.average(X[:, 2], weights=w)]])


def test_resolving_twice_changes_nothing(case):
    again = case.likelihood.resolve(Sample.of(case.X))
    for name in ("mean", "mean_precision", "degrees_of_freedom", "scale", "origin", "unit"):
        np.testing.assert_array_equal(getattr(again, name), getattr(case.likelihood, name))


@pytest.mark.parametrize("name", ["ar", "ar-default"])
def test_tunable_hyperparameters_scale(name):
    c = make(name)
    least = {"degrees_of_freedom": len(c.likelihood.scale) - 1.0, "correlation": 1.0}  # the nearer to 1, the smaller
    for field in c.likelihood.tunable:
        other, start = c.likelihood.scaled(field, 1.0 / 3.0), least.get(field, 0.0)
        before, after = (np.asarray(getattr(q, field)) - start for q in (c.likelihood, other))
        if field == "mean":  # of the history, about the mean of the data
            P = len(c.r)
            center = np.append(c.likelihood.origin[c.r], 1.0)
            np.testing.assert_allclose(after @ center, before @ center)
            before, after = before[:, :P], after[:, :P]
        np.testing.assert_allclose(after, before / 3.0)
        uncorrelated = field == "correlation" and np.array_equal(c.likelihood.pattern, np.eye(len(c.likelihood.scale)))
        if before.any() and not uncorrelated:
            change = 1e-5 if field == "mean" else 1e-3  # rows that hardly follow their history hardly tell of it
            assert abs(other.log_marginal(c.N, c.S)[0] - c.likelihood.log_marginal(c.N, c.S)[0]) > change


def test_constant_and_collinear_columns_keep_a_usable_prior():
    steps = np.arange(6.0)
    X = np.column_stack([steps, np.full(6, 1e6 + 0.1), np.zeros(6), 2.0 * steps, np.full(6, 3.0)])
    likelihood = LinearRegression(targets=2).resolve(Sample.of(X))
    assert np.isfinite(likelihood.log_predictive(X, np.zeros(1), np.zeros((1, likelihood.n_statistics)))).all()
    assert np.isfinite(
        likelihood.log_marginal(np.array([6.0]), features(likelihood, X).sum(axis=0, keepdims=True))
    ).all()


ASYMMETRIC = np.eye(3) + 0.5 * np.eye(3, k=1)
BAD = {
    "targets": [0, 4, -1, 1.5, True],
    "intercept": [None, "yes", 2],
    "mean": [np.zeros(3), np.zeros((2, 3)), np.nan, [[0.0, np.inf, 0.0]]],
    "mean_precision": [0.0, -1.0, np.nan, np.ones(3), np.eye(2), ASYMMETRIC, -np.eye(3), np.diag([1.0, np.nan, 1.0])],
    "degrees_of_freedom": [0.0, -1.0, np.nan],
    "scale": [0.0, -1.0, np.nan, np.eye(2), [1.0, 1.0]],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_hyperparameters_are_refused_by_name(name):
    X = np.random.default_rng(12).standard_normal((20, 3))
    for value in BAD[name]:
        with pytest.raises(ValueError, match=rf"^{name} must be [\s\S]*; got "):
            LinearRegression(**{name: value}).resolve(Sample.of(X))


@pytest.mark.parametrize(("order", "D"), [(0, 4), (1.0, 4), (1, 3), (2, 4), (True, 4)])
def test_bad_orders_are_refused(order, D):
    with pytest.raises(ValueError, match=r"^order must be .*; got "):
        AutoregressiveGaussian(order=order).resolve(Sample.of(np.random.default_rng(1).standard_normal((20, D))))


def test_without_data_there_is_an_error_with_a_cure():
    with pytest.raises(TypeError, match=r"call resolve\(sample\) first"):
        _ = LinearRegression().n_statistics


# ---- rows of sequences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(("lengths", "order"), [(None, 1), ([12], 3), ([5, 3, 4], 1), ([5, 3, 4], 2)])
def test_rows_are_steps_with_their_history(lengths, order, dtype):
    X = np.arange(24).reshape(12, 2).astype(dtype)
    want, start = [], 0
    for length in lengths or [12]:
        sequence, start = X[start : start + length], start + length
        for t in range(order, length):
            want.append(np.concatenate([sequence[t - lag] for lag in range(order + 1)]))
    rows = AutoregressiveGaussian.rows(X, lengths, order)
    np.testing.assert_array_equal(rows, want)
    assert rows.dtype == (np.float32 if dtype == np.float32 else np.float64)


@pytest.mark.parametrize(
    ("X", "lengths", "order", "message"),
    [
        (np.zeros(5), None, 1, "X must have two axes"),
        (np.zeros((5, 1)), [2, 2], 1, "lengths must be numbers that add up to the 5 rows of X"),
        (np.zeros((5, 1)), [], 1, "lengths must be a list of whole numbers"),
        (np.zeros((5, 1)), [2.5, 2.5], 1, "lengths must be a list of whole numbers"),
        (np.zeros((5, 1)), [3, 2], 2, "sequence 1 has 2 steps; order 2 needs at least 3"),
        (np.zeros((5, 1)), [7, -2], 1, "sequence 1 has -2 steps"),
        (np.zeros((5, 1)), None, 0, "order must be a whole number"),
    ],
)
def test_wrong_sequences_are_refused(X, lengths, order, message):
    with pytest.raises(ValueError, match=message):
        AutoregressiveGaussian.rows(X, lengths, order)


def test_autoregression_finds_the_dynamics():
    rng = np.random.default_rng(8)
    A, shift, x = np.array([[0.8, 0.3], [-0.3, 0.8]]), np.array([5.0, -2.0]), np.zeros((4000, 2))
    for t in range(1, 4000):
        x[t] = A @ x[t - 1] + shift + 0.1 * rng.standard_normal(2)
    X = AutoregressiveGaussian.rows(x)
    likelihood = AutoregressiveGaussian().resolve(Sample.of(X))
    posterior = likelihood.posterior(np.array([float(len(X))]), features(likelihood, X).sum(axis=0, keepdims=True))
    np.testing.assert_allclose(posterior.coefficients[0], A, atol=0.02)
    np.testing.assert_allclose(posterior.intercepts[0], shift, atol=0.3)
    np.testing.assert_allclose(posterior.covariances[0], 0.01 * np.eye(2), atol=0.001)


@pytest.mark.parametrize("name", CASES)
def test_log_marginals_from_determinants_alone_are_those_from_factors(name, monkeypatch):
    """Of few columns a compiled loop keeps no factors; of many LAPACK makes them."""
    c = make(name, absent=0.2)
    few = c.likelihood.log_marginal(c.N, c.S)
    monkeypatch.setattr("stickbreak.likelihoods._quadratic.COMPILED", 0)
    many = replace(c.likelihood)  # what it has computed is computed anew
    np.testing.assert_allclose(few, many.log_marginal(c.N, c.S), rtol=1e-10, atol=1e-9)
    assert few[-1] == 0.0  # of an empty cluster


@pytest.mark.parametrize("name", CASES)
def test_log_marginals_of_one_prior_after_another_eliminate_regressors_only_where_the_line_changes(name, monkeypatch):
    c = make(name, absent=0.2)
    line = [c.likelihood.scaled(field, 2.0) for field in c.likelihood.tunables() if field.startswith("mean")]
    noise = [c.likelihood.scaled(field, 0.5) for field in ("scale", "degrees_of_freedom", "correlation")]
    others = [c.likelihood, *noise, *line, *noise]
    wanted = [other.log_marginal(c.N, c.S) for other in others]
    calls = []
    left = type(c.likelihood).left
    monkeypatch.setattr(type(c.likelihood), "left", lambda *sums: calls.append(sums) or left(*sums))
    of = c.likelihood.log_marginals_of(c.N, c.S)
    np.testing.assert_allclose([of(other) for other in others], wanted, rtol=1e-12, atol=1e-10)
    assert len(calls) == 2 + len(line)


def test_a_width_below_rounding_is_refused_with_a_cure():
    c = make("ar")
    with pytest.raises(FloatingPointError, match="precision of the data"):
        c.likelihood.log_marginal(c.N, -c.S)
    with pytest.raises(FloatingPointError, match="precision of the data"):
        c.likelihood.log_marginals_of(c.N, -c.S)(c.likelihood)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_by_default_columns_follow_their_own_history_as_all_do_on_average(order, intercept):
    rng = np.random.default_rng(order)
    X = np.zeros((3000, 3))
    for t in range(2, len(X)):
        X[t] = [0.9, 1.2, 0.7] * X[t - 1] - [0.0, 0.5, 0.1] * X[t - 2] + rng.standard_normal(3)
    X = X * [1.0, 30.0, 0.2] + intercept * np.array([5.0, -100.0, 0.0])
    rows = AutoregressiveGaussian.rows(X, order=order)
    found = AutoregressiveGaussian(order=order, intercept=intercept).resolve(Sample.of(rows))
    Z = (rows - intercept * rows.mean(axis=0)) / X.std(axis=0)[np.arange(3 * (order + 1)) % 3]
    history = np.stack([Z[:, 3 * i : 3 * i + 3].ravel() for i in range(1, order + 1)], axis=1)
    phi = np.linalg.lstsq(history, Z[:, :3].ravel(), rcond=None)[0]
    wanted = np.hstack([share * np.eye(3) for share in phi])
    np.testing.assert_allclose(found.mean[:, : 3 * order], wanted, atol=5e-3)
    if intercept:
        np.testing.assert_allclose(found.mean @ np.append(rows.mean(axis=0)[3:], 1.0), rows.mean(axis=0)[:3])
    given = AutoregressiveGaussian(order=order, intercept=intercept, mean=0.0).resolve(Sample.of(rows))
    assert not given.mean.any()
    assert "mean" not in AutoregressiveGaussian(mean=0.0).not_given()


def test_a_constant_series_has_no_history_to_follow():
    found = AutoregressiveGaussian().resolve(Sample.of(np.ones((5, 2))))
    np.testing.assert_array_equal(found.mean, [[0.0, 1.0]])


@pytest.mark.parametrize("n", [40, 100, 200])
def test_residuals_of_many_regressors_have_no_correlations_by_chance(n):
    """Those of n rows after a line of 50 regressors are as free as n - 50, so their correlations are larger than of n rows."""
    X = AutoregressiveGaussian.rows(np.random.default_rng(n).standard_normal((n + 1, 50)))
    found = AutoregressiveGaussian().resolve(Sample.of(X))
    np.testing.assert_array_equal(found.pattern, np.eye(50))
