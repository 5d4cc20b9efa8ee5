"""Each family against distributions of SciPy, with posteriors written out from the definition of its prior."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import binom, gammaln

from stickbreak.likelihoods import REGISTRY, Bernoulli, Categorical, DiagonalGaussian, Multinomial, Product, Sample

COLUMNS = ("bernoulli", "categorical", "diagonal_gaussian", "exponential", "gamma", "poisson")
WHOLE = ("multinomial", "spherical_gaussian", "known_covariance_gaussian")
variants = [f"{name}-{kind}" for name in COLUMNS for kind in ("given", "default", "missing")]
variants += [f"{name}-{kind}" for name in WHOLE for kind in ("given", "default")]
every_closed_form = pytest.mark.parametrize("family", variants, indirect=True)


def clustered(family, naive, D=3, n=40, seed=0):
    """A likelihood, rows, and counts and statistics of two clusters and an empty one."""
    rng = np.random.default_rng(seed)
    X = family.rows(rng, n, D)
    R = np.hstack([rng.dirichlet([0.4, 0.4], n), np.zeros((n, 1))])
    likelihood = family.likelihood(X)
    T = naive.features(likelihood, X)
    return SimpleNamespace(likelihood=likelihood, X=X, R=R, T=T, N=R.sum(axis=0), S=R.T @ T, rng=rng)


def normal_gamma(x, w, m, kappa, a, b):
    """Student-t of a Normal-Gamma posterior: degrees of freedom, location and scale; for x (n, D) one a and b."""
    n, s = w.sum(), w @ x
    center = (kappa * m + s) / (kappa + n)
    a += 0.5 * n * np.size(m)
    b += 0.5 * np.sum(w @ (x - center) ** 2 + kappa * (m - center) ** 2)
    return 2.0 * a, center, np.sqrt(b / a * (1.0 + 1.0 / (kappa + n)))


def column_predictive(likelihood, d, x, w):
    """The predictive of column d after its observed values x with weights w."""
    n, s, kind = w.sum(), w @ x, type(likelihood).__name__
    if kind == "Bernoulli":
        a, b = likelihood.a[d] + s, likelihood.b[d] + n - s
        return stats.betabinom(1, a, b)
    if kind == "Poisson":
        a, b = likelihood.shape[d] + s, likelihood.rate[d] + n
        return stats.nbinom(a, b / (b + 1.0))
    if kind == "Exponential":
        return stats.lomax(likelihood.shape[d] + n, scale=likelihood.rate[d] + s)
    if kind == "Gamma":
        shape = likelihood.known_shape
        return stats.betaprime(shape, likelihood.shape[d] + shape * n, scale=likelihood.rate[d] + s)
    if kind == "DiagonalGaussian":
        prior = likelihood.mean[d], likelihood.mean_precision[d], likelihood.shape[d], likelihood.rate[d]
        return stats.t(*normal_gamma(x, w, *prior))
    counts = np.array([w[x == level].sum() for level in range(likelihood.n_levels[d])])
    c = np.split(likelihood.concentration, np.cumsum(likelihood.n_levels)[:-1])[d] + counts
    return stats.rv_discrete(values=(np.arange(len(c)), c / c.sum()))


def log_density(distribution, x):
    return distribution.logpdf(x) if hasattr(distribution.dist, "logpdf") else distribution.logpmf(x)


def predictive(likelihood, X, w):
    """Log densities of rows X after rows X with weights w, (n,)."""
    kind = type(likelihood).__name__
    if kind == "SphericalGaussian":
        prior = likelihood.mean, likelihood.mean_precision, likelihood.shape, likelihood.rate
        dof, center, scale = normal_gamma(X, w, *prior)
        return stats.multivariate_t(center, scale**2 * np.eye(X.shape[1]), dof).logpdf(X)
    if kind == "KnownCovarianceGaussian":
        kappa = likelihood.mean_precision + w.sum()
        center = (likelihood.mean_precision * likelihood.mean + w @ X) / kappa
        return stats.multivariate_normal(center, likelihood.covariance * (1.0 + 1.0 / kappa)).logpdf(X)
    if kind == "Multinomial":
        c = likelihood.concentration + w @ X
        totals = X.sum(axis=1).astype(int)
        some = [stats.dirichlet_multinomial(c, n).logpmf(x.astype(int)) if n else 0.0 for x, n in zip(X, totals)]
        return np.array(some)
    out = np.zeros(len(X))
    for d, x in enumerate(X.T):
        seen = ~np.isnan(x)
        after = column_predictive(likelihood, d, x[seen], w[seen])
        out[seen] += after.logpmf(x[seen]) if kind == "Categorical" else log_density(after, x[seen])
    return out


@every_closed_form
def test_the_predictive_is_that_of_scipy(family, naive):
    c = clustered(family, naive)
    want = np.column_stack([predictive(c.likelihood, c.X, w) for w in c.R.T])
    np.testing.assert_allclose(c.likelihood.log_predictive(c.X, c.N, c.S), want, rtol=1e-9, atol=1e-9)


def test_bits_in_a_cluster_are_beta_binomial(known_families, naive):
    X = known_families["bernoulli-given"].rows(np.random.default_rng(1), 20, 3)
    likelihood = known_families["bernoulli-given"].likelihood(X)
    N, S = np.array([20.0]), naive.features(likelihood, X).sum(axis=0, keepdims=True)
    ones = X.sum(axis=0)
    want = stats.betabinom(20, likelihood.a, likelihood.b).logpmf(ones) - np.log(binom(20, ones))
    assert likelihood.log_marginal(N, S)[0] == pytest.approx(want.sum(), rel=1e-12)


def test_codes_in_a_cluster_are_dirichlet_multinomial(known_families, naive):
    X = known_families["categorical-given"].rows(np.random.default_rng(1), 20, 2)
    likelihood = known_families["categorical-given"].likelihood(X)
    N, S = np.array([20.0]), naive.features(likelihood, X).sum(axis=0, keepdims=True)
    want = 0.0
    for x, c in zip(X.T, np.split(likelihood.concentration, [4])):
        counts = np.bincount(x.astype(int), minlength=len(c))
        ways = gammaln(21.0) - gammaln(counts + 1.0).sum()
        want += stats.dirichlet_multinomial(c, 20).logpmf(counts) - ways
    assert likelihood.log_marginal(N, S)[0] == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("kind", ["given", "default"])
def test_posterior_means_are_those_of_the_conjugate_posteriors(known_families, naive, kind):
    for name, mean in {
        "bernoulli": lambda q, n, s: stats.beta(q.a + s, q.b + n - s).mean(),
        "poisson": lambda q, n, s: stats.gamma(q.shape + s, scale=1.0 / (q.rate + n)).mean(),
        "exponential": lambda q, n, s: stats.gamma(q.shape + n, scale=1.0 / (q.rate + s)).mean(),
        "gamma": lambda q, n, s: stats.gamma(q.shape + q.known_shape * n, scale=1.0 / (q.rate + s)).mean(),
        "multinomial": lambda q, n, s: stats.dirichlet(q.concentration + s).mean(),
    }.items():
        c = clustered(known_families[f"{name}-{kind}"], naive)
        (found,) = c.likelihood.posterior(c.N, c.S)
        for k, w in enumerate(c.R.T):
            np.testing.assert_allclose(found[k], mean(c.likelihood, w.sum(), w @ c.X), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "exponential", "gamma"])
@pytest.mark.parametrize("kind", ["given", "missing"])
def test_the_profile_has_the_moments_of_the_predictive(known_families, naive, name, kind):
    c = clustered(known_families[f"{name}-{kind}"], naive)
    profile = c.likelihood.profile(c.N, c.S)
    np.testing.assert_array_equal(profile.columns, [0, 1, 2])
    for k in range(2):
        for d, x in enumerate(c.X.T):
            seen = ~np.isnan(x)
            mean, variance = column_predictive(c.likelihood, d, x[seen], c.R[seen, k]).stats("mv")
            assert profile.means[k, d] == pytest.approx(float(mean), rel=1e-9)
            assert profile.variances[k, d] == pytest.approx(float(variance), rel=1e-9)


@pytest.mark.parametrize(
    "family",
    [name for name in variants if name.endswith("-default") and not name.startswith(("categorical", "multinomial"))],
    indirect=True,
)
def test_default_priors_expect_the_data(family, naive):
    """The mean row of an empty cluster is the weighted mean of the observed data, of durations their median."""
    assert not family.prior(3)
    rng = np.random.default_rng(3)
    X, w = family.rows(rng, 30, 3), rng.choice([0.5, 1.0, 3.0], 30)
    likelihood = family.make(3).resolve(Sample.of(X, w))
    seen = ~np.isnan(X)
    mean = w @ np.where(seen, X, 0.0) / (w @ seen)
    if family.name in ("exponential", "gamma"):
        repeated = np.repeat(X, (2.0 * w).astype(int), axis=0)
        median = np.nanquantile(repeated, 0.5, axis=0, method="inverted_cdf")
        np.testing.assert_allclose(likelihood.rate / likelihood.shape, median, rtol=1e-12)
        return
    profile = likelihood.profile(np.zeros(1), np.zeros((1, likelihood.n_statistics)))
    tight = 0.05 if family.name == "bernoulli" else 1e-9  # bits: with half a one and half a zero more
    np.testing.assert_allclose(profile.means[0], mean, atol=tight * (1.0 + mean.max()))
    if family.name.endswith("gaussian"):
        variance = w @ np.where(seen, (X - mean) ** 2, 0.0) / (w @ seen)
        variance = np.full(3, variance.mean()) if family.name == "spherical_gaussian" else variance
        np.testing.assert_allclose(profile.variances[0], 0.1 * variance, rtol=1e-9)


def test_draws_of_documents_have_the_moments_of_the_dirichlet_multinomial(known_families, naive):
    c = clustered(known_families["multinomial-given"], naive)
    for k in range(2):
        X = c.likelihood.sample(c.N[k], c.S[k], c.rng, 20_000)
        length, a = c.S[k].sum() / c.N[k], c.likelihood.concentration + c.S[k]
        p, total = a / a.sum(), X.sum(axis=1)
        assert abs(total.mean() - length) < 4.0 * np.sqrt(length / 20_000)
        np.testing.assert_allclose(total.var(), length, rtol=0.05)
        np.testing.assert_allclose(X.mean(axis=0), length * p, atol=5.0 * np.sqrt(length / 20_000))
        spare = (X - total[:, None] * p) ** 2  # of one kind given the total: n p (1 - p) (n + A) / (1 + A)
        want = total[:, None] * p * (1.0 - p) * (total[:, None] + a.sum()) / (1.0 + a.sum())
        assert np.all(np.abs((spare - want).mean(axis=0)) < 5.0 * spare.std(axis=0) / np.sqrt(20_000))
    empty = c.likelihood.sample(0.0, np.zeros(4), c.rng, 20_000)
    assert empty.sum(axis=1).mean() == pytest.approx(c.X.sum(axis=1).mean(), rel=0.02)


# Divergences ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "exponential", "gamma", "diagonal_gaussian"])
def test_divergences_are_kl_of_the_smoothed_rows(known_families, name):
    """KL between the family at the parameter that a row alone suggests and at the one that the center suggests."""
    family = known_families[f"{name}-given"]
    X = family.rows(np.random.default_rng(4), 12, 1)
    q, x = family.likelihood(X), X[:, 0]
    got = q.divergence(X, X[:3])
    u = np.linspace(-40.0, 20.0, 6001)
    if name == "bernoulli":
        p = (q.a + x) / (q.a + q.b + 1.0)
        want = [[stats.entropy([a, 1 - a], [b, 1 - b]) for b in p[:3]] for a in p]
    elif name == "poisson":
        log_pmf = [stats.poisson(r).logpmf(np.arange(600)) for r in (q.shape + x) / (q.rate + 1.0)]
        want = [[np.sum(np.exp(a) * (a - b)) for b in log_pmf[:3]] for a in log_pmf]
    elif name == "diagonal_gaussian":
        want = 0.5 * q.shape / q.rate * (x[:, None] - x[:3]) ** 2
    else:
        mean = (q.rate + x) / (q.shape + q.known_shape)  # of x / known_shape
        laws = [stats.gamma(q.known_shape, scale=m) for m in mean]
        grid, du = x.max() * np.exp(u), u[1] - u[0]
        log_pdf = [law.logpdf(grid) for law in laws]
        want = [[np.sum(np.exp(a) * (a - b) * grid) * du for b in log_pdf[:3]] for a in log_pdf]
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_divergences_of_codes_and_documents_are_kl_of_frequencies(known_families):
    codes = known_families["categorical-given"]
    X = codes.rows(np.random.default_rng(5), 12, 2)
    q = codes.likelihood(X)
    want = np.zeros((12, 3))
    for d, c in enumerate(np.split(q.concentration, [4])):
        p = [(c + (np.arange(len(c)) == x)) / (c.sum() + 1.0) for x in X[:, d]]
        want += [[stats.entropy(a, b) for b in p[:3]] for a in p]
    np.testing.assert_allclose(q.divergence(X, X[:3]), want, rtol=1e-10, atol=1e-12)
    documents = known_families["multinomial-given"]
    X = documents.rows(np.random.default_rng(5), 12, 3)
    q = documents.likelihood(X)
    mass = q.concentration + X
    want = [[a.sum() * stats.entropy(a, b) for b in mass[:3]] for a in mass]
    np.testing.assert_allclose(q.divergence(X, X[:3]), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "poisson"])
def test_a_center_without_a_value_suggests_the_prior(known_families, name):
    family = known_families[f"{name}-given"]
    X = family.rows(np.random.default_rng(8), 12, 1)
    q, x, nothing = family.likelihood(X), X[:, 0], np.full((1, 1), np.nan)
    if name == "poisson":
        counts = np.arange(200)
        here, prior = (
            stats.poisson(r).pmf(counts) for r in ((q.shape + x[:, None]) / (q.rate + 1.0), q.shape / q.rate)
        )
    else:
        c = np.array([q.b[0], q.a[0]]) if name == "bernoulli" else q.concentration
        here = (c + (np.arange(len(c)) == x[:, None])) / (c.sum() + 1.0)
        prior = c / c.sum()
    want = [stats.entropy(row, prior) for row in here]
    got = q.divergence(X, nothing)[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-8)
    assert got.min() > 0.0
    wide, _ = q.with_missing(np.ones(1, bool), np.zeros((1, q.n_statistics)))
    np.testing.assert_array_equal(wide.divergence(nothing, X), 0.0)


# Hyperparameters ------------------------------------------------------------------------------------------------------

POSITIVE = [0.0, -1.0, np.nan, np.inf]
COLUMNWISE = [*POSITIVE, np.ones(2), np.ones((3, 3)), [1.0, 0.0, 1.0]]
BAD = {
    "background": {"share": [0.0, 1.0, -0.1, 1.5, np.nan, np.inf, [0.1, 0.2]]},
    "bernoulli": {"a": COLUMNWISE, "b": COLUMNWISE},
    "categorical": {
        "concentration": [*POSITIVE, np.ones(2), [np.ones(4)], [np.ones(4), np.ones(2), np.zeros(3)]],
        "n_levels": [0, -1, 2.5, [4, 2], [4.0, 2.5, 3.0], "many"],
    },
    "diagonal_gaussian": {
        "mean": [np.nan, np.zeros(2), np.zeros((3, 3))],
        "mean_precision": POSITIVE,
        "shape": COLUMNWISE,
        "rate": COLUMNWISE,
    },
    "dirichlet": {
        "median": COLUMNWISE,
        "spread": [*POSITIVE, 1e-4, 11.0, np.ones(3)],
        "floor": [-0.1, 0.6, np.nan, np.inf, np.zeros(3)],
    },
    "exponential": {"shape": COLUMNWISE, "rate": COLUMNWISE},
    "gamma": {"known_shape": POSITIVE, "shape": COLUMNWISE, "rate": COLUMNWISE},
    "known_covariance_gaussian": {
        "covariance": [0.0, -1.0, np.nan, np.ones(2), np.ones((2, 2)), np.ones((3, 3)) - 2.0 * np.eye(3)],
        "mean": [np.nan, np.zeros(2)],
        "mean_precision": POSITIVE,
    },
    "multinomial": {"concentration": COLUMNWISE},
    "poisson": {"shape": COLUMNWISE, "rate": COLUMNWISE},
    "spherical_gaussian": {
        "mean": [np.nan, np.zeros(2)],
        "mean_precision": POSITIVE,
        "shape": POSITIVE,
        "rate": POSITIVE,
    },
}


@pytest.mark.parametrize(("name", "field"), [(name, field) for name, fields in BAD.items() for field in fields])
def test_bad_hyperparameters_are_refused_by_name(known_families, name, field):
    family = known_families[f"{name}-default"]
    X = family.rows(np.random.default_rng(12), 20, 2 if name in ("multinomial", "dirichlet") else 3)
    for value in BAD[name][field]:
        with pytest.raises(ValueError, match=rf"^{field} must be [\s\S]*; got "):
            family.make(3, **{field: value}).resolve(Sample.of(X))


def test_every_likelihood_is_tested(known_families):
    assert {family.kind for family in known_families.values()} == {*REGISTRY.values(), Product}


def test_without_data_there_is_an_error_with_a_cure(family):
    likelihood = family.make(4)
    with pytest.raises(TypeError, match=r"no data yet; call .*resolve"):
        _ = likelihood.n_statistics


def test_resolving_twice_changes_nothing(family, naive):
    X = family.rows(np.random.default_rng(6), 30, 3)
    once = family.likelihood(X)
    twice = once.resolve(Sample.of(X))
    N, S = np.array([30.0]), naive.features(once, X).sum(axis=0, keepdims=True)
    np.testing.assert_array_equal(naive.features(twice, X), naive.features(once, X))
    assert twice.log_marginal(N, S)[0] == once.log_marginal(N, S)[0]
    np.testing.assert_array_equal(twice.log_predictive(X, N, S), once.log_predictive(X, N, S))


def test_a_smoothed_prior_is_smoothed(family, naive):
    X = family.rows(np.random.default_rng(7), 30, 4)
    likelihood = family.likelihood(X)
    N, S = np.array([30.0]), naive.features(likelihood, X).sum(axis=0, keepdims=True)
    once = likelihood.smoothed(0.5)
    assert once.smoothed(0.5).log_marginal(N, S)[0] == once.log_marginal(N, S)[0]
    assert once.tunables() == likelihood.tunables()


def test_outcomes_have_half_a_pseudo_count_under_a_smoothed_prior():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(4, size=30), rng.integers(2, size=30), rng.lognormal(size=30)]).astype(float)
    parts = Product({"codes": (Categorical(), [0]), "bits": (Bernoulli(), [1]), "size": (DiagonalGaussian(), [2])})
    likelihood = parts.resolve(Sample.of(X))
    codes, bits, size = (part for part, _ in likelihood.parts.values())
    smooth = likelihood.smoothed(0.5).parts
    assert (codes.concentration == 0.25).all()
    assert (smooth["codes"][0].concentration == 0.5).all()
    assert bits.a + bits.b == pytest.approx(1.0)
    assert (smooth["bits"][0].a, smooth["bits"][0].b) == (max(bits.a, 0.5), max(bits.b, 0.5))
    assert smooth["size"][0] is size
    assert (codes.scaled("concentration", 9.0).smoothed(0.5).concentration == 2.25).all()
    words = Multinomial(np.array([0.1, 0.5, 2.0])).resolve(Sample.of(np.ones((2, 3))))
    assert list(words.smoothed(0.5).concentration) == [0.5, 0.5, 2.0]


def test_a_tunable_hyperparameter_changes_the_marginal(family, naive):
    """Each on its own, and by exactly the factor given."""
    X = family.rows(np.random.default_rng(7), 30, 4)
    likelihood = family.likelihood(X)
    N, S = np.array([30.0]), naive.features(likelihood, X).sum(axis=0, keepdims=True)
    now = likelihood.log_marginal(N, S)[0]
    assert likelihood.tunables()
    for name in likelihood.tunables():
        other = likelihood.scaled(name, 1.0 / 3.0)
        family = getattr(likelihood, "family", likelihood)
        if name.endswith("common"):  # a choice of columns, which no factor changes
            continue
        if name != "correlation" or (family.correlation < 1.0 and len(family.scale) > 1):
            assert abs(other.log_marginal(N, S)[0] - now) > 1e-3, name
        again = other.scaled(name, 3.0)
        assert again.log_marginal(N, S)[0] == pytest.approx(now, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["bernoulli", "categorical", "exponential", "gamma", "multinomial", "poisson", "poisson-exposure"]
)
def test_sums_that_miss_zero_are_zero(known_families, name):
    """Extrapolation between laps, and differences of sums, may go a little below."""
    family = known_families[name if "-" in name else f"{name}-given"]
    likelihood = family.likelihood(family.rows(np.random.default_rng(9), 30, 3))
    N, S = np.full(1, 5.0), np.zeros((1, likelihood.n_statistics))
    for below in (-1e-13, -0.5, -1e3):
        for got, want in zip(likelihood.weights(N, S + below), likelihood.weights(N, S)):
            np.testing.assert_allclose(got, want, rtol=1e-9)


def test_variances_that_do_not_exist_are_reported_as_the_inverse_precision(known_families):
    """E[variance] = b / (a - 1) needs a > 1, and B / (nu - D - 1) needs nu > D + 1; else b / a, and B / nu."""
    X = known_families["gaussian-given"].rows(np.random.default_rng(10), 30, 2)
    for name, prior, want in (
        ("diagonal_gaussian", {"shape": [0.5, 1.0], "rate": [3.0, 4.0]}, [6.0, 4.0]),
        ("diagonal_gaussian", {"shape": [1.5, 3.0], "rate": [3.0, 4.0]}, [6.0, 2.0]),
        ("spherical_gaussian", {"shape": 0.5, "rate": 3.0}, 6.0),
        ("spherical_gaussian", {"shape": 3.0, "rate": 4.0}, 2.0),
        ("gaussian", {"degrees_of_freedom": 3.0, "scale": [6.0, 9.0]}, [2.0, 3.0]),
        ("gaussian", {"degrees_of_freedom": 5.0, "scale": [6.0, 9.0]}, [3.0, 4.5]),
        ("zero_mean_gaussian", {"degrees_of_freedom": 2.0, "scale": [6.0, 9.0]}, [3.0, 4.5]),
    ):
        likelihood = known_families[f"{name}-default"].likelihood(X, **prior)
        posterior = likelihood.posterior(np.zeros(1), np.zeros((1, likelihood.n_statistics)))
        spread = np.diag(posterior.covariances[0]) if hasattr(posterior, "covariances") else posterior.variances[0]
        np.testing.assert_allclose(spread, want, rtol=1e-12)
