"""Gaussians whose columns depend on few others, against full Gaussians, and how the network is chosen."""

import numpy as np
import pytest

from stickbreak import Mixture
from stickbreak.likelihoods import Gaussian, GaussianNetwork, Sample
from stickbreak.likelihoods._network import NONE, choose_parents, topological_order
from stickbreak.likelihoods.features import features
from stickbreak.loading import load

COMPLETE = [[-1, -1, -1], [0, -1, -1], [1, 0, -1], [0, 1, 2]]


def correlated(seed, n=50, D=4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, D)) @ rng.standard_normal((D, D)) + 3.0


def chain(rng, n, D):
    """Rows whose columns follow each other, as a chain."""
    X = rng.standard_normal((n, D))
    for d in range(1, D):
        X[:, d] = 0.9 * X[:, d - 1] + 0.4 * X[:, d]
    return X


def sums(likelihood, X, K=3):
    R = np.random.default_rng(1).dirichlet(np.ones(K), size=len(X))
    return R.sum(axis=0), R.T @ features(likelihood, X)


@pytest.mark.parametrize("prior", [{}, {"mean_precision": 0.7, "degrees_of_freedom": 6.5, "correlation": 0.4}])
def test_a_complete_network_is_a_full_gaussian(prior):
    X = correlated(0)
    X[:, 0] = X[:, 0].round(1)  # tied, so that steps count
    full = Gaussian(**prior).resolve(Sample.of(X))
    network = GaussianNetwork(n_parents=3, parents=COMPLETE, **prior).resolve(Sample.of(X))
    (N, S), (_, T) = sums(full, X), sums(network, X)
    for method in ("log_marginal", "posterior"):
        one, other = getattr(full, method)(N, S), getattr(network, method)(N, T)
        one, other = (one, other) if method == "log_marginal" else (one.means, other.means)
        np.testing.assert_allclose(one, other, rtol=1e-10)
    (W, b), (V, c) = full.weights(N, S), network.weights(N, T)
    np.testing.assert_allclose(features(full, X) @ W.T + b, features(network, X) @ V.T + c, rtol=1e-9)
    np.testing.assert_allclose(full.log_predictive(X, N, S), network.log_predictive(X, N, T), rtol=1e-9)
    np.testing.assert_allclose(full.divergence(X, X[:3]), network.divergence(X, X[:3]), rtol=1e-8, atol=1e-10)
    for one, other in zip(full.fitted("scale", N, S), network.fitted("scale", N, T)):
        np.testing.assert_allclose(one.scale, other.scale, rtol=1e-9)


def test_no_parents_are_independent_columns():
    X = correlated(1)
    network = GaussianNetwork(n_parents=1, parents=np.full((4, 1), NONE)).resolve(Sample.of(X))
    N, S = sums(network, X)
    columns = [GaussianNetwork(degrees_of_freedom=3.0, scale=network.scale[d, d]) for d in range(4)]
    parts = [family.resolve(Sample.of(X[:, [d]])) for d, family in enumerate(columns)]
    alone = sum(part.log_marginal(N, sums(part, X[:, [d]])[1]) for d, part in enumerate(parts))
    np.testing.assert_allclose(network.log_marginal(N, S), alone, rtol=1e-10)


def test_the_posterior_describes_its_draws():
    rng = np.random.default_rng(2)
    X = chain(rng, 4000, 5)
    network = GaussianNetwork(n_parents=2).resolve(Sample.of(X))
    N, S = np.array([float(len(X))]), features(network, X).sum(axis=0)[None]
    drawn = network.sample(N[0], S[0], rng, 100_000)
    found = network.posterior(N, S)
    np.testing.assert_allclose(np.corrcoef(drawn.T), np.corrcoef(X.T), atol=0.03)
    np.testing.assert_allclose(found.variances[0], X.var(axis=0), rtol=0.05)
    np.testing.assert_allclose(found.variances[0], drawn.var(axis=0), rtol=0.03)
    assert found.residuals[0, topological_order(network.parents)[-1]] < 0.5 * found.variances[0].min()


def test_parents_are_those_within_clusters():
    """Far clusters correlate all columns; differences of near rows do not."""
    rng = np.random.default_rng(3)
    X = chain(rng, 1200, 8) + np.repeat(30.0 * rng.standard_normal((4, 8)), 300, axis=0)
    parents = choose_parents((X - X.mean(axis=0)) / X.std(axis=0), 1)
    pairs = {frozenset((d, int(p))) for d, (p,) in enumerate(parents) if p != NONE}
    assert pairs == {frozenset((d, d + 1)) for d in range(7)}


def test_columns_in_another_order_have_the_same_network():
    rng = np.random.default_rng(4)
    X, order = chain(rng, 500, 6), rng.permutation(6)
    one, other = choose_parents(X, 2), choose_parents(X[:, order], 2)
    named = [{int(order[p]) for p in parents if p != NONE} for parents in other]
    assert [named[list(order).index(d)] for d in range(6)] == [{int(p) for p in row if p != NONE} for row in one]


def test_noise_has_no_parents():
    X = np.random.default_rng(5).standard_normal((400, 30))
    assert (choose_parents(X, 4) == NONE).all()


def test_parents_that_explain_only_together_are_found():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((800, 6)) @ rng.standard_normal((6, 6))
    full, network = Gaussian().resolve(Sample.of(x)), GaussianNetwork(n_parents=5).resolve(Sample.of(x))
    N = np.array([800.0])
    marginals = [family.log_marginal(N, features(family, x).sum(axis=0)[None]) for family in (full, network)]
    assert marginals[1] > marginals[0] - 10.0


@pytest.mark.filterwarnings("ignore:not converged")
def test_one_cluster_is_one():
    X = chain(np.random.default_rng(0), 300, 12)
    assert Mixture("gaussian_network", max_laps=80, random_state=0, n_jobs=1).fit(X).n_clusters_ == 1


def test_constant_columns_are_set_aside():
    X = correlated(6, 200)
    with_constants = np.column_stack([np.full(200, 7.0), X, np.zeros(200)])
    one, other = (GaussianNetwork().resolve(Sample.of(rows)) for rows in (X, with_constants))
    N = np.array([200.0])
    marginals = [
        family.log_marginal(N, features(family, rows).sum(axis=0)[None])
        for family, rows in ((one, X), (other, with_constants))
    ]
    np.testing.assert_allclose(*marginals, rtol=1e-9)
    draws = other.sample(200.0, features(other, with_constants).sum(axis=0), np.random.default_rng(0), 10)
    assert (draws[:, 0] == 7.0).all()


@pytest.mark.parametrize(
    ("parents", "error"),
    [
        ([[1], [2], [0], [-1]], "free of cycles"),
        ([[4], [-1], [-1], [-1]], "numbers of columns"),
        ([[-2], [-1], [-1], [-1]], "numbers of columns"),
        ([[0], [-1], [-1], [-1]], "free of cycles"),
        ([[0.5], [-1], [-1], [-1]], "whole numbers"),
        ([[-1], [0]], "shape"),
    ],
)
def test_impossible_networks_are_refused(parents, error):
    with pytest.raises(ValueError, match=error):
        GaussianNetwork(n_parents=1, parents=parents).resolve(Sample.of(correlated(7)))


@pytest.mark.parametrize("n_parents", [0, 65, 10**400, 1.5, "two", None, True])
def test_impossible_numbers_of_parents_are_refused(n_parents):
    with pytest.raises(ValueError, match="n_parents must be"):
        Mixture(GaussianNetwork(n_parents=n_parents)).fit(correlated(7))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:not converged")
def test_a_mixture_finds_clusters_whose_columns_follow_each_other(tmp_path):
    rng = np.random.default_rng(8)
    z = np.repeat(np.arange(3), 100)
    X = chain(rng, 300, 12) + 3.0 * rng.standard_normal((3, 12))[z]
    network = Mixture("gaussian_network", random_state=0, n_jobs=1).fit(X)
    diagonal = Mixture("diagonal_gaussian", max_laps=160, random_state=0, n_jobs=1).fit(X)
    assert network.n_clusters_ == 3
    assert network.lower_bound_ > diagonal.lower_bound_ + 300.0
    network.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").score_samples(X), network.score_samples(X))
