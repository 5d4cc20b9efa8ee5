"""Data, priors, models and plain dense references, shared by the tests of every likelihood and allocation."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from scipy.special import softmax, xlogy

from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.likelihoods import REGISTRY
from stickbreak.model import Model, Summary

settings.register_profile("stickbreak", max_examples=25, deadline=None, derandomize=True, database=None)
settings.load_profile("stickbreak")


def column_units(D):
    return 10.0 ** np.linspace(0.0, 1.0, D)


def gaussian_rows(rng, n, D):
    """Rows of three unlike clusters, away from the origin, in columns of unlike units."""
    centers, mixing = 3.0 * rng.standard_normal((3, D)), rng.standard_normal((3, D, D)) + np.eye(D)
    labels = rng.integers(3, size=n)
    rows = centers[labels] + np.einsum("nij,nj->ni", mixing[labels], rng.standard_normal((n, D)))
    return (rows + 4.0) * column_units(D)


def zero_mean_rows(rng, n, D):
    mixing = rng.standard_normal((3, D, D)) + np.eye(D)
    labels = rng.integers(3, size=n)
    return np.einsum("nij,nj->ni", mixing[labels], rng.standard_normal((n, D))) * column_units(D)


def matrix_prior(D):
    return (np.eye(D) + 0.4) * np.outer(column_units(D), column_units(D))


def real_line(X):
    """Points x = center + spread tan(u) of one column, and weights that integrate over the real line."""
    u, w = np.polynomial.legendre.leggauss(800)
    u, w = 0.5 * np.pi * u, 0.5 * np.pi * w
    return X.mean() + X.std() * np.tan(u)[:, None], w * X.std() / np.cos(u) ** 2


@dataclass(frozen=True)
class Family:
    """How the tests make data and priors for one likelihood.

    rows(rng, n, D) : data;  prior(D) : hyperparameters away from the defaults;
    everything(X) : for one column, all possible rows (or quadrature points) and their weights
    """

    name: str
    rows: Callable
    prior: Callable
    everything: Callable

    def likelihood(self, X, **prior):
        return REGISTRY[self.name](**(prior or self.prior(X.shape[1]))).resolve(X, np.ones(len(X)))


FAMILIES = {
    "gaussian": Family(
        "gaussian",
        gaussian_rows,
        lambda D: {
            "mean": 2.0 * column_units(D),
            "mean_precision": 0.7,
            "degrees_of_freedom": D + 1.5,
            "scale": matrix_prior(D),
        },
        real_line,
    ),
    "zero_mean_gaussian": Family(
        "zero_mean_gaussian",
        zero_mean_rows,
        lambda D: {"degrees_of_freedom": D + 1.5, "scale": matrix_prior(D)},
        real_line,
    ),
}


@pytest.fixture(scope="session", params=[f"{name}-{prior}" for name in REGISTRY for prior in ("given", "default")])
def family(request):
    name, prior = request.param.split("-")
    known = FAMILIES[name]  # a new family needs a line in FAMILIES
    return known if prior == "given" else Family(name, known.rows, lambda D: {}, known.everything)


@pytest.fixture(scope="session", params=["gaussian", "zero_mean_gaussian"])
def normal_family(request):
    """The families that are Gaussian given their parameters."""
    return FAMILIES[request.param]


@pytest.fixture(
    scope="session",
    params=[DirichletProcess(0.6), DirichletProcess(8.0), FiniteDirichlet(6, 0.6), FiniteDirichlet(7, 20.0)],
    ids=lambda a: f"{type(a).__name__}-{a.concentration}",
)
def allocation(request):
    return request.param


def features(likelihood, X, dtype=np.float64):
    X = X.astype(dtype, copy=False)
    return likelihood.features(X, np.empty((len(X), likelihood.n_statistics), dtype))


def summarise(likelihood, X, R, weights=None):
    """The summary of dense responsibilities R (n, K), by matrix products."""
    weights = np.ones(len(X)) if weights is None else weights
    wR = weights[:, None] * R
    H = -(weights[:, None] * xlogy(R, R)).sum(axis=0)
    return Summary(wR.sum(axis=0), wR.T @ features(likelihood, X), H, np.asarray(weights @ likelihood.log_base(X)))


def responsibilities(model, parameters, X, threshold=1e-12):
    """Dense responsibilities (n, K): softmax, small ones dropped, normalised again."""
    scores = features(model.likelihood, X) @ parameters.W.T + parameters.bias
    R = softmax(scores, axis=1)
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
        responsibilities=responsibilities,
        dense=dense,
        counted=counted,
        assert_same=assert_same,
    )


@pytest.fixture(scope="session")
def problem(family, allocation):
    """A function from a seed to a model, rows X, weights, random responsibilities R (some zero) and their summary."""

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
