"""Parameters drawn from the posterior of a cluster: their means are the expected natural parameters."""

import numpy as np
import pytest
from scipy.special import logsumexp

from stickbreak.likelihoods import Dirichlet, GaussianNetwork

NO_DRAWS = Dirichlet, GaussianNetwork
MANY = 4000  # draws, as clusters of the same rows


def drawn(naive, family, seed=3):
    """A likelihood, counts and statistics of a few rows, and weights of many draws given these."""
    rng = np.random.default_rng(seed)
    X = family.rows(rng, 40, 2)
    likelihood = family.likelihood(X)
    T = naive.features(likelihood, X[:12])
    N, S = np.array([12.0]), T.sum(axis=0)[None]
    W, b = likelihood.draw_weights(np.repeat(N, MANY), np.repeat(S, MANY, axis=0), rng)
    return likelihood, X, T, (N, S), (W, b)


def test_means_of_draws_are_the_expectations(naive, known_families):
    for name, family in known_families.items():
        if family.latent or family.kind in NO_DRAWS:
            continue
        likelihood, _, _, known, draws = drawn(naive, family)
        for found, expected in zip(draws, likelihood.weights(*known)):
            error = found.std(axis=0) / np.sqrt(MANY)
            scale = np.abs(expected[0]) + np.abs(found).max(axis=0)
            assert (np.abs(found.mean(axis=0) - expected[0]) <= 5.0 * error + 1e-9 * scale).all(), name


def test_the_mean_density_of_draws_is_the_predictive(naive, known_families):
    """E[p(x | phi)] over the posterior of phi, for rows like those of the cluster."""
    for name, family in known_families.items():
        if family.latent or family.kind in NO_DRAWS or family.conditional or "default" in name:
            continue
        likelihood, X, T, known, (W, b) = drawn(naive, family)
        log_p = T @ W.T + b + likelihood.log_base(X[:12])[:, None]
        found = logsumexp(log_p, axis=1) - np.log(MANY)
        error = np.exp(log_p - found[:, None]).std(axis=1) / np.sqrt(MANY)
        expected = likelihood.log_predictive(X[:12], *known)[:, 0]
        assert (np.abs(np.expm1(found - expected)) <= 6.0 * error + 1e-9).all(), name


def test_a_family_that_draws_no_parameters_says_so(known_families):
    family = known_families["gaussian_network-given"]
    likelihood = family.likelihood(family.rows(np.random.default_rng(0), 30, 2))
    with pytest.raises(TypeError, match=r'GaussianNetwork draws no parameters; use Gibbs\(kind="collapsed"\)'):
        likelihood.draw_weights(np.zeros(1), np.zeros((1, likelihood.n_statistics)), np.random.default_rng(0))
