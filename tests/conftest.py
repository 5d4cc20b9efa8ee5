"""Data, priors, models and plain dense references, shared by the tests of every likelihood and allocation."""

import gc
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

# pytest-xdist has a worker per core, and waiting BLAS threads of one worker take time from the others.  This must come
# before NumPy loads BLAS; tests of threads set limits of their own (inference/test_threads.py).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse, stats
from scipy.special import entr, expit, psi, roots_legendre, softmax, xlogy

from stickbreak import likelihoods as lk
from stickbreak.allocations import DirichletProcess, FiniteDirichlet, PitmanYor
from stickbreak.kernels.cells import best_cells_reference
from stickbreak.likelihoods.autoregressive_gaussian import AutoregressiveGaussian
from stickbreak.likelihoods.features import features as features_of
from stickbreak.likelihoods.linear_regression import LinearRegression
from stickbreak.model import Model, Summary

settings.register_profile("stickbreak", max_examples=10, deadline=None, derandomize=True, database=None)
settings.load_profile("stickbreak")


def pytest_configure():
    """A shell lets what it starts in the background ignore Ctrl-C, which tests of interrupts send."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Ten thousand tests are a million objects that stay: pytest makes them, and nobody looks for garbage among them afterwards.
def pytest_collection():
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


# Rows: three unlike clusters each --------------------------------------------------------------------------------------


def column_units(D):
    return 10.0 ** np.linspace(0.0, 1.0, D)


def gaussian_rows(rng, n, D):
    """Away from the origin, in columns of unlike units."""
    centers, mixing = 3.0 * rng.standard_normal((3, D)), rng.standard_normal((3, D, D)) + np.eye(D)
    labels = rng.integers(3, size=n)
    rows = centers[labels] + np.einsum("nij,nj->ni", mixing[labels], rng.standard_normal((n, D)))
    return (rows + 4.0) * column_units(D)


def dusty_rows(rng, n, D):
    """Of `gaussian_rows` a tenth, widely spread."""
    X = gaussian_rows(rng, n, D)
    return np.where(rng.random((n, 1)) < 0.1, X * rng.uniform(-8.0, 8.0, (n, D)), X)


def zero_mean_rows(rng, n, D):
    mixing = rng.standard_normal((3, D, D)) + np.eye(D)
    labels = rng.integers(3, size=n)
    return np.einsum("nij,nj->ni", mixing[labels], rng.standard_normal((n, D))) * column_units(D)


def bit_rows(rng, n, D):
    chance = rng.uniform(0.1, 0.9, (3, D))
    return (rng.random((n, D)) < chance[rng.integers(3, size=n)]).astype(float)


def few_levels(D):
    return np.resize([4, 2, 3, 5], D)


def many_levels(D):
    return np.resize([15, 30], D)


def code_rows(levels):
    def rows(rng, n, D):
        chances = [rng.dirichlet(np.full(L, 0.3), 3) for L in levels(D)]
        labels = rng.integers(3, size=n)
        return np.column_stack([[rng.choice(p.shape[1], p=p[k]) for k in labels] for p in chances]).astype(float)

    return rows


def count_rows(rng, n, D):
    rates = rng.gamma(1.0, 6.0, (3, D)) * column_units(D)
    return rng.poisson(rates[rng.integers(3, size=n)]).astype(float)


def exposed_rows(rng, n, D):
    """The first column holds the exposure."""
    e = rng.choice([0.5, 1.0, 7.3], (n, 1))
    rates = rng.gamma(1.0, 6.0, (3, D))
    return np.hstack([e, rng.poisson(e * rates[rng.integers(3, size=n)])])


def document_rows(rng, n, D):
    """Counts of D + 1 words; one row in ten is empty."""
    p = rng.dirichlet(np.full(D + 1, 0.5), 3)
    return rng.multinomial(rng.integers(1, 30, n) * (rng.random(n) < 0.9), p[rng.integers(3, size=n)]).astype(float)


def share_rows(rng, n, D):
    """Proportions of D + 1 parts."""
    alpha = rng.dirichlet(np.full(D + 1, 2.0), 3) * rng.uniform(5.0, 60.0, (3, 1)) + 0.5
    drawn = rng.standard_gamma(alpha[rng.integers(3, size=n)]) + 1e-9
    return drawn / drawn.sum(axis=1, keepdims=True)


def duration_rows(shape):
    def rows(rng, n, D):
        means = 10.0 ** rng.uniform(-1.0, 1.0, (3, D)) * column_units(D)
        return rng.gamma(shape, means[rng.integers(3, size=n)])

    return rows


def positive_rows(rng, n, D):
    """Log-normal in each cluster."""
    return np.exp(gaussian_rows(rng, n, D) / (20.0 * column_units(D)))


def line_rows(rng, n, D):
    """D regressors, then one target: two lines and a plane of noise."""
    X, slopes = gaussian_rows(rng, n, D), rng.standard_normal((3, D))
    y = (X * slopes[rng.integers(3, size=n)]).sum(axis=1) + 0.3 * rng.standard_normal(n)
    return np.column_stack([X, y])


def step_rows(rng, n, D):
    """Two steps of a sequence of D columns, the later one first."""
    before = zero_mean_rows(rng, n, D)
    dynamics = rng.standard_normal((3, D, D))
    after = np.einsum("nij,nj->ni", dynamics[rng.integers(3, size=n)], before) + rng.standard_normal((n, D))
    return np.hstack([after, before])


def mixed_rows(rng, n, D):
    """Measurements, codes of 3 levels, counts and bits in turn, column by column, all in the same clusters."""
    labels, columns = rng.integers(3, size=n), []
    for d in range(D):
        where, chance = rng.normal(0.0, 10.0, 3), rng.dirichlet(np.full(3, 0.4), 3)
        draw = (
            lambda k, where=where: rng.normal(where[k], 1.0),
            lambda k, chance=chance: rng.choice(3, p=chance[k]),
            lambda k, where=where: rng.poisson(abs(where[k])),
            lambda k, chance=chance: rng.binomial(1, chance[k, 0]),
        )[d % 4]
        columns.append([draw(k) for k in labels])
    return np.array(columns, float).T


def holes(rows, may_miss):
    """Rows with a fifth of the values missing where they may be, and all of them in the first of several rows."""

    def with_holes(rng, n, D):
        X = rows(rng, n, D)
        missing = rng.random(X.shape) < 0.2
        missing[: n > 1] = True
        X[missing & may_miss(X.shape[1])] = np.nan
        return X

    return with_holes


# Priors away from the defaults -----------------------------------------------------------------------------------------


def matrix_prior(D):
    return (np.eye(D) + 0.4) * np.outer(column_units(D), column_units(D))


def mixed_parts(D, given):
    """Parts that take their columns out of order."""
    parts = {
        "numbers": (lk.DiagonalGaussian(**({"shape": 2.5, "rate": 3.0} if given else {})), np.arange(D)[::4][::-1])
    }
    if D > 1:
        parts["codes"] = (lk.Categorical(0.7 if given else None, n_levels=3), np.arange(1, D, 4))
    if D > 2:
        parts["counts"] = (lk.Poisson(*((0.7, 0.2) if given else ())), np.arange(2, D, 4))
    if D > 3:
        parts["bits"] = (lk.Bernoulli(*((0.3, 0.8) if given else ())), np.arange(3, D, 4))
    return dict(reversed(parts.items()))


# All there is of one column --------------------------------------------------------------------------------------------


@cache
def legendre(n):
    """Points in [-1, 1] and their weights."""
    return roots_legendre(n)


def real_line(X):
    """Points x = center + spread tan(u) of one column, and weights that integrate over the real line."""
    u, w = (0.5 * np.pi * values for values in legendre(800))
    spread = np.nanstd(X)
    return np.nanmean(X) + spread * np.tan(u)[:, None], w * spread / np.cos(u) ** 2


def real_line_in_pieces(X):
    """Points x of one column and weights that integrate over the real line, apart in the box of the rows and on either side."""
    u, w = legendre(2000)
    low, high = X.min(), X.max()
    x, v = 0.5 * (low + high + (high - low) * u), 0.5 * (high - low) * w
    angle, spread = 0.25 * np.pi * (1.0 + u), high - low
    y, t = spread * np.tan(angle), 0.25 * np.pi * spread * w / np.cos(angle) ** 2
    return np.concatenate([low - y, x, high + y])[:, None], np.concatenate([t, v, t])


def positive_line(X):
    """Points x = center e^u by trapezoids, which are exact for functions like these."""
    u, du = np.linspace(-60.0, 60.0, 4001, retstep=True)
    x = np.nanmean(X) * np.exp(u)
    return x[:, None], x * du


def codes_below(L):
    return lambda X: (np.arange(float(L))[:, None], np.ones(L))


def counts(X):
    return np.arange(4000.0)[:, None], np.ones(4000)


def counts_of_one_exposure(X):
    return np.column_stack([np.ones(4000), np.arange(4000.0)]), np.ones(4000)


def targets_of_one_regressor(X):
    y, w = real_line(X[:, 1:])
    return np.column_stack([np.full(len(y), X[-1, 0]), y]), w


def steps_after_one(X):
    y, w = real_line(X[:, :1])
    return np.column_stack([y, np.full(len(y), X[-1, 1])]), w


def shares_of_two(X):
    """Points x = 1 / (1 + e^-u) by trapezoids, which are exact for functions like these."""
    u, du = np.linspace(-600.0, 600.0, 40_001, retstep=True)
    x = np.column_stack([expit(u), expit(-u)])
    return x, x.prod(axis=1) * du


def counts_of_two_words(X):
    """All ways to share out the total of one row."""
    n = X.sum(axis=1).max()
    return np.column_stack([np.arange(n + 1), n - np.arange(n + 1)]), np.ones(int(n) + 1)


@dataclass(frozen=True)
class Family:
    """How the tests make data and priors for one likelihood.

    rows(rng, n, D) : data;  prior(D) : hyperparameters away from the defaults, of a table with D columns
    everything(X) : for rows(.., 1), all possible rows (or quadrature points) and their weights
    always(D) : parameters that are no hyperparameters
    conditional : whether densities are given a part of the row, which draws make up
    conjugate : whether the log marginal is exact
    latent : whether rows have latent variables, so that the log marginal of hard assignments is a lower bound
    """

    name: str
    kind: type
    rows: Callable
    prior: Callable
    everything: Callable
    always: Callable = lambda D: {}
    conditional: bool = False
    conjugate: bool = True
    latent: bool = False

    def make(self, D, **prior):
        """The likelihood before it has seen data."""
        return self.kind(**{**self.always(D), **(prior or self.prior(D))})

    def likelihood(self, X, **prior):
        return self.make(X.shape[1], **prior).resolve(lk.Sample.of(X))


def gaussian_prior(D):
    """Away from the default."""
    return {
        "mean": 2.0 * column_units(D),
        "mean_precision": 0.7,
        "degrees_of_freedom": D + 1.5,
        "scale": matrix_prior(D),
    }


def two_before(D):
    """A network in which each column has the two before it as parents."""
    columns = np.arange(D)[:, None]
    return np.maximum(columns - [1, 2], -1)


def families():
    yield Family("gaussian", lk.Gaussian, gaussian_rows, gaussian_prior, real_line)
    yield Family(
        "zero_mean_gaussian",
        lk.ZeroMeanGaussian,
        zero_mean_rows,
        lambda D: {"degrees_of_freedom": D + 1.5, "scale": matrix_prior(D)},
        real_line,
    )
    yield Family(
        "diagonal_gaussian",
        lk.DiagonalGaussian,
        gaussian_rows,
        lambda D: {
            "mean": 2.0 * column_units(D),
            "mean_precision": 0.7,
            "shape": np.linspace(1.25, 2.0, D),
            "rate": column_units(D) ** 2,
        },
        real_line,
    )
    yield Family(
        "spherical_gaussian",
        lk.SphericalGaussian,
        gaussian_rows,
        lambda D: {"mean": 2.0 * column_units(D), "mean_precision": 0.7, "shape": 1.25, "rate": 3.0},
        real_line,
    )
    yield Family(
        "known_covariance_gaussian",
        lk.KnownCovarianceGaussian,
        gaussian_rows,
        lambda D: {"covariance": matrix_prior(D), "mean": 2.0 * column_units(D), "mean_precision": 0.7},
        real_line,
    )
    yield Family(
        "student_t",
        lk.StudentT,
        gaussian_rows,
        lambda D: gaussian_prior(D) | {"tails": 9.0},
        real_line,
        latent=True,
    )
    yield Family(
        "background",
        lk.Background,
        dusty_rows,
        lambda D: {"family": lk.Gaussian(**gaussian_prior(D)), "share": 0.2},
        real_line_in_pieces,
        lambda D: {"family": lk.DiagonalGaussian()},
        latent=True,
    )
    yield Family(
        "gaussian_network",
        lk.GaussianNetwork,
        gaussian_rows,
        lambda D: gaussian_prior(D),
        real_line,
        lambda D: {"n_parents": 2, "parents": two_before(D)},
    )
    yield Family(
        "bernoulli",
        lk.Bernoulli,
        bit_rows,
        lambda D: {"a": np.linspace(0.4, 2.0, D), "b": 1.3},
        codes_below(2),
    )
    yield Family(
        "categorical",
        lk.Categorical,
        code_rows(few_levels),
        lambda D: {"concentration": [np.linspace(0.3, 2.0, L) for L in few_levels(D)]},
        codes_below(4),
        lambda D: {"n_levels": few_levels(D)},
    )
    yield Family(
        "poisson",
        lk.Poisson,
        count_rows,
        lambda D: {"shape": np.linspace(0.7, 3.0, D), "rate": 0.2},
        counts,
    )
    yield Family(
        "exponential",
        lk.Exponential,
        duration_rows(1.0),
        lambda D: {"shape": np.linspace(0.7, 3.0, D), "rate": column_units(D)},
        positive_line,
    )
    yield Family(
        "gamma",
        lk.Gamma,
        duration_rows(0.6),
        lambda D: {"known_shape": 2.5, "shape": np.linspace(0.7, 3.0, D), "rate": column_units(D)},
        positive_line,
        lambda D: {"known_shape": 0.6},
    )
    yield Family(
        "multinomial",
        lk.Multinomial,
        document_rows,
        lambda D: {"concentration": np.linspace(0.4, 2.0, D)},
        counts_of_two_words,
        conditional=True,
    )
    yield Family(
        "dirichlet",
        lk.Dirichlet,
        share_rows,
        lambda D: {"median": np.linspace(1.0, 9.0, D), "spread": 0.7},
        shares_of_two,
        conjugate=False,
    )
    yield Family(
        "linear_regression",
        LinearRegression,
        line_rows,
        lambda D: {"mean": 0.3, "mean_precision": 0.2 * np.eye(D), "degrees_of_freedom": 2.5, "scale": 2.0},
        targets_of_one_regressor,
        conditional=True,
    )
    yield Family(
        "autoregressive_gaussian",
        AutoregressiveGaussian,
        step_rows,
        lambda D: {"mean": 0.3, "mean_precision": 0.2 * np.eye(D // 2 + 1), "degrees_of_freedom": D // 2 + 1.5},
        steps_after_one,
        conditional=True,
    )
    yield Family(
        "log_scale",
        lk.LogScale,
        positive_rows,
        lambda D: {"family": lk.DiagonalGaussian(mean=0.3, mean_precision=0.7, shape=20.0, rate=0.5)},
        positive_line,
        lambda D: {
            "family": lk.DiagonalGaussian(shape=30.0)
        },  # the tails of few degrees of freedom leave the range of numbers
    )
    yield Family(
        "product",
        lk.Product,
        mixed_rows,
        lambda D: {"parts": mixed_parts(D, True)},
        real_line,
        lambda D: {"parts": mixed_parts(D, False)},
    )


# Likelihoods in a setting that changes how they work
SETTINGS = {
    "many_levels": ("categorical", code_rows(many_levels), codes_below(15), lambda D: {"n_levels": many_levels(D)}),
    "exposure": ("poisson", exposed_rows, counts_of_one_exposure, lambda D: {"exposure": 0}),
}


def variants():
    """Each family with a prior that is given, with the default one and with missing values."""
    for known in families():
        default = replace(known, prior=lambda D: {})
        yield f"{known.name}-given", known
        yield f"{known.name}-default", default
        if known.kind.takes_missing or known.name == "linear_regression":
            kept = {"linear_regression": lambda D: np.arange(D) == D - 1}.get(known.name, lambda D: np.ones(D, bool))
            rows = holes(known.rows, kept)
            yield f"{known.name}-missing", replace(known, rows=rows, latent=known.kind.missing_latent)
    known = {family.name: family for family in families()}
    for name, (of, rows, everything, always) in SETTINGS.items():
        changed = replace(known[of], rows=rows, prior=lambda D: {}, everything=everything, always=always)
        yield f"{of}-{name}", changed
        kept = (lambda D: np.arange(D) > 0) if name == "exposure" else (lambda D: np.ones(D, bool))
        yield f"{of}-{name}_missing", replace(changed, rows=holes(rows, kept))


FAMILIES = dict(variants())


@pytest.fixture(scope="session")
def known_families():
    return FAMILIES


# Of families that differ little in how they use their prior, one stands for all where it is the default
LIKE_OTHERS = (
    "zero_mean",
    "spherical",
    "known_covariance",
    "diagonal",
    "exponential",
    "gamma",
    "autoregressive",
    "log_scale",
)


VARIED = [name for name in FAMILIES if not name.endswith("-default") or not name.startswith(LIKE_OTHERS)]


@pytest.fixture(scope="session", params=VARIED)
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="session", params=[name for name in VARIED if not FAMILIES[name].latent])
def exact_family(request):
    """A family without latent variables: its log marginal is that of hard assignments."""
    return FAMILIES[request.param]


@pytest.fixture(
    scope="session", params=[name for name in VARIED if FAMILIES[name].conjugate and not FAMILIES[name].latent]
)
def conjugate_family(request):
    """A family whose log marginal is that of a conjugate prior."""
    return FAMILIES[request.param]


@pytest.fixture(scope="session", params=[name for name in VARIED if not FAMILIES[name].conditional])
def joint_family(request):
    """A family whose densities are of whole rows, not of a part given the others."""
    return FAMILIES[request.param]


@pytest.fixture(scope="session", params=["gaussian", "zero_mean_gaussian"])
def normal_family(request):
    """The families that are Gaussian given their parameters, with a full covariance."""
    return FAMILIES[f"{request.param}-given"]


@pytest.fixture
def turn(request):
    """The sum of the numbers of a test's parameters: what is chosen by it takes turns with the values of each of them."""
    return sum(request.node.callspec.indices.values())


ALLOCATIONS = {
    f"{type(a).__name__}-{a.concentration}": a
    for a in (
        DirichletProcess(0.6),
        DirichletProcess(8.0),
        FiniteDirichlet(6, 0.6),
        FiniteDirichlet(7, 20.0),
        PitmanYor(1.5, 0.4),
    )
}


@pytest.fixture(scope="session", params=ALLOCATIONS)
def allocation(request):
    return ALLOCATIONS[request.param]


def features(likelihood, X, dtype=np.float64):
    """Statistics as a dense array, whatever form the library prefers."""
    T = features_of(likelihood, X, dtype)
    return T.toarray() if sparse.issparse(T) else T


def gamma_terms(a, rate):
    """E[log u] - E[u] + 1 and the entropy of Gamma(a, rate)."""
    return psi(a) - np.log(rate) - a / rate + 1.0, stats.gamma(a, scale=1.0 / rate).entropy()


def squares(model, parameters, X):
    """E[(x - mu)' Lambda (x - mu)] of rows with latent scales, (n, K): what a score is short of that of x = mu."""
    D = model.likelihood.latent.columns
    return 2.0 * (0.5 * D - 1.0 - features(model.likelihood, X) @ parameters.W.T)


def latent(model, parameters, X):
    """The best q(u) of rows with latent variables: shape a and rates (n, K) of scales, and E[t] (n, K) of bits; or None.

    With missing cells that are latent, features (n, K, F).
    """
    found = model.likelihood.latent
    if model.likelihood.cells is not None:
        return filled(model.likelihood, parameters.W, X)
    if found is None:
        return None
    if isinstance(found, lk.Dust):
        return None, expit(features(model.likelihood, X) @ parameters.W.T)
    return 0.5 * (found.tails + found.columns), 0.5 * (found.tails + squares(model, parameters, X))


def filled(likelihood, W, X):
    """Features (n, K, F) of rows under each cluster, with the best q of their missing cells."""
    T = np.repeat(features(likelihood, X)[:, None], len(W), axis=1)
    for first, D, holes in likelihood.cells.blocks:
        square = first + D * (D + 1) // 2
        a, b = np.triu_indices(D)
        for n, k in np.ndindex(T.shape[:2]):
            cells = holes[T[n, k, square + D :][: len(holes)] > 0.0]
            if len(cells):
                z = T[n, k, square : square + D]
                z[cells], V = best_cells_reference(W[k], z, cells, first)
                T[n, k, first:square] = z[a] * z[b]
                products = np.zeros((D, D))
                products[np.ix_(cells, cells)] = V
                T[n, k, first:square] += products[a, b]
                T[n, k, square + D + len(holes)] = 0.5 * np.linalg.slogdet(V)[1]
    return T


def latent_terms(likelihood, q):
    """E[u] (n, K), and by number the statistics that are no products with it."""
    if isinstance(likelihood.latent, lk.Dust):
        return q[1], {-1: entr(q[1]) + entr(1.0 - q[1])}
    h = 0.5 * (5.0 + likelihood.latent.columns)
    terms = zip((-2, -1), gamma_terms(*q), gamma_terms(h, h))
    return q[0] / q[1], {column: term - hard for column, term, hard in terms}


def summarise(likelihood, X, R, weights=None, q=None):
    """The summary of dense responsibilities R (n, K), by matrix products; with the q of `latent`, if any."""
    weights = np.ones(len(X)) if weights is None else weights
    wR = weights[:, None] * R
    H = -(weights[:, None] * xlogy(R, R)).sum(axis=0)
    T = features(likelihood, X)
    if q is None:
        S = wR.T @ T
    elif likelihood.cells is not None:
        S = np.einsum("nk,nkf->kf", wR, q)
    else:
        means, own = latent_terms(likelihood, q)
        S = (wR * means).T @ T
        for column, term in own.items():
            S[:, column] = (wR * term).sum(axis=0)
    return Summary(wR.sum(axis=0), S, H, np.asarray(weights @ likelihood.log_base(X)))


def scores(model, parameters, X):
    """Scores (n, K) of rows: with latent variables, the sum of the score given each and of its chance, at the best q(u)."""
    T, q = features(model.likelihood, X), latent(model, parameters, X)
    if q is None:
        return T @ parameters.W.T + parameters.bias
    if model.likelihood.cells is not None:
        return np.einsum("nkf,kf->nk", q, parameters.W) + parameters.bias
    means, own = latent_terms(model.likelihood, q)
    return means * (T @ parameters.W.T) + parameters.bias + sum(own[c] * parameters.W[:, c] for c in own)


def responsibilities(model, parameters, X, threshold=1e-12):
    """Dense responsibilities (n, K): softmax, small ones dropped, normalised again."""
    R = softmax(scores(model, parameters, X), axis=1)
    R[threshold * R.max(axis=1, keepdims=True) >= R] = 0.0
    return R / R.sum(axis=1, keepdims=True)


def dense(kept, K):
    """Sparse responsibilities as an (n, K) array."""
    R = np.zeros((len(kept.indptr) - 1, K), kept.values.dtype)
    R[np.repeat(np.arange(len(R)), np.diff(kept.indptr)), kept.indices] = kept.values
    return R


def counted(N):
    """A summary with counts N alone."""
    return Summary(np.asarray(N, float), np.zeros((len(N), 0)), np.zeros(len(N)), np.zeros(()))


def leaves(posterior):
    """The arrays of a posterior, of a Product those of its parts."""
    if isinstance(posterior, np.ndarray):
        return [posterior]
    parts = posterior.values() if isinstance(posterior, dict) else posterior
    return [array for part in parts for array in leaves(part)]


def assert_same(one, other, rtol=1e-11):
    """Summaries agree to rounding, in each array relative to its largest entry."""
    for name in ("N", "S", "H", "base"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * (1.0 + np.abs(b).max(initial=0.0)), err_msg=name)


@pytest.fixture(scope="session")
def naive():
    """The library's operations written plainly, on dense arrays."""
    return SimpleNamespace(
        features=features,
        summarise=summarise,
        latent=latent,
        scores=scores,
        responsibilities=responsibilities,
        dense=dense,
        counted=counted,
        leaves=leaves,
        assert_same=assert_same,
    )


def pairs():
    """Every family with one allocation, and one family with all."""
    each = [(name, list(ALLOCATIONS)[i % len(ALLOCATIONS)]) for i, name in enumerate(FAMILIES)]
    return dict.fromkeys([*each, *(("gaussian-given", allocation) for allocation in ALLOCATIONS)])


@pytest.fixture(scope="session", params=pairs(), ids="-".join)
def pair(request):
    """A family and an allocation."""
    name, allocation = request.param
    return FAMILIES[name], ALLOCATIONS[allocation]


@pytest.fixture(scope="session")
def problem(pair):
    """A function from a seed to a model, rows X, weights, random responsibilities R (some zero) and their summary."""
    family, allocation = pair

    def make(seed, n=50, K=4, D=2):
        rng = np.random.default_rng(seed)
        X = family.rows(rng, n, D)
        weights = rng.choice([1.0, 0.5, 2.0], n)
        R = rng.dirichlet(np.full(K, 0.5), n)
        R = np.where(R < 0.05, 0.0, R)
        R /= R.sum(axis=1, keepdims=True)
        model = Model(family.likelihood(X), allocation)
        summary = summarise(model.likelihood, X, R, weights)
        return SimpleNamespace(model=model, X=X, weights=weights, R=R, summary=summary, rng=rng)

    return make
