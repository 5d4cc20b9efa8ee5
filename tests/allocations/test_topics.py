"""The priors of topic models against numerical derivatives, Monte Carlo and each other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logit, psi, roots_jacobi

from stickbreak.allocations import HierarchicalDirichletProcess, LatentDirichlet
from stickbreak.allocations._sticks import (
    best_sticks,
    expected_logs,
    stick_bound,
    stick_logits,
    stick_means,
    stick_weight,
)
from stickbreak.kernels.special import log_rise
from stickbreak.model import DocumentSummary

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=5)


def summary(seed, K=4, D=50, alpha=2.0):
    """The summary of documents whose proportions are known exactly: of each, its theta."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(K + 1))
    N = rng.poisson(20.0 * rng.dirichlet(alpha * shares[:K] + 1e-2, D)).astype(float)
    return of_counts(N, alpha * shares)


def of_counts(N, a):
    theta = np.column_stack([N, np.zeros(len(N))]) + a
    E = psi(theta) - psi(theta.sum(axis=1, keepdims=True))
    Q = gammaln(theta).sum(axis=0) - (a * E).sum(axis=0)
    K, P, zero = N.shape[1], E.sum(axis=0), np.zeros(())
    rest = Q[K] - gammaln(theta.sum(axis=1)).sum()
    return DocumentSummary(
        N.sum(axis=0), np.zeros((K, 0)), np.zeros(K), zero, P[:K], Q[:K], np.array(P[K]), np.array(rest),
        np.array(float(len(N))), np.zeros((K, 0), np.float32),
    )  # fmt: skip


ALLOCATIONS = [
    HierarchicalDirichletProcess(0.5, 1.0),
    HierarchicalDirichletProcess(30.0, 4.0),
    LatentDirichlet(6, 2.0),
    LatentDirichlet(6, 2.0, symmetric=True),
]
every = pytest.mark.parametrize("allocation", ALLOCATIONS, ids=str)


@few
@given(seed=SEEDS, K=st.integers(1, 5), alpha=st.sampled_from([0.1, 3.0, 100.0]), gamma=st.sampled_from([0.3, 5.0]))
def test_the_gradient_is_that_of_the_value(seed, K, alpha, gamma):
    rng, s = np.random.default_rng(seed), summary(seed, K)
    prior, P, x = HierarchicalDirichletProcess(alpha, gamma), np.append(s.P, s.P_rest), rng.normal(0.0, 1.5, K)
    value = prior._objective(P, 50.0, gamma)
    gradient = value(x)[1]
    for k in range(K):
        h = 1e-5 * np.eye(K)[k]
        numeric = (value(x + h)[0] - value(x - h)[0]) / 2e-5
        assert gradient[k] == pytest.approx(numeric, rel=1e-5, abs=1e-4 * (1.0 + np.abs(gradient).max()))


@pytest.mark.parametrize("alpha", [0.3, 3.0, 40.0])
def test_the_surrogate_is_below_the_expectation_and_close(alpha):
    """E[c(alpha beta)] by Monte Carlo over q(u)."""
    rng, D, gamma, K = np.random.default_rng(1), 30.0, 1.5, 3
    u, prior = np.array([0.4, 0.3, 0.6]), HierarchicalDirichletProcess(alpha, gamma)
    w = stick_weight(u, np.full(K + 1, float(D)), gamma, prior._strengths(float(D)))
    draws = rng.beta(u * w, (1.0 - u) * w, (200_000, K))
    beta = np.column_stack([draws, np.ones(len(draws))])
    beta[:, 1:] *= np.cumprod(1.0 - draws, axis=1)
    normaliser = gammaln(alpha) - gammaln(alpha * beta).sum(axis=1)
    log_u, log_v = expected_logs(u, w)
    before, posterior = K * np.log(gamma) + (gamma - 1.0) * log_v.sum(), ((u * w - 1.0) * log_u).sum()
    posterior += (((1.0 - u) * w - 1.0) * log_v + gammaln(w) - gammaln(u * w) - gammaln((1.0 - u) * w)).sum()
    P = np.log(np.full(K + 1, 0.2)) * D
    want = D * normaliser.mean() + alpha * beta.mean(axis=0) @ P + before - posterior
    error = 4.0 * D * normaliser.std() / np.sqrt(len(draws))
    found = prior._objective(P, D, gamma)(logit(u))[0]
    chord = D * (gammaln(alpha) - gammaln(1.0 + alpha) + (K + 1) * np.log(alpha))  # Thesis Eq. 5.24
    chord += (
        D * (log_u.sum() + (np.arange(K, 0, -1) * log_v).sum()) + alpha * beta.mean(axis=0) @ P + before - posterior
    )
    assert chord <= found <= want + error
    assert alpha > 10.0 or found >= want - 0.1 * D


@pytest.mark.parametrize("alpha", [0.5, 20.0, 1e4])
@pytest.mark.parametrize("gamma", [0.4, 5.0])
def test_the_bound_of_one_document_is_between_that_of_chords_and_its_probability(alpha, gamma):
    """Two topics, that of each token known: the exact integral over sticks, and Thesis Eq. 5.24 at its own best sticks."""
    N, prior = np.array([[3.0, 2.0]]), HierarchicalDirichletProcess(alpha, gamma)
    x, p = roots_jacobi(8, gamma - 1.0, 0.0)
    u, v = np.meshgrid(0.5 + 0.5 * x, 0.5 + 0.5 * x, indexing="ij")
    a = alpha * np.stack([u, (1.0 - u) * v], axis=-1)
    chances = np.exp(log_rise(N[0], a).sum(axis=-1) - log_rise(5.0, alpha))
    exact = np.log((np.outer(p, p) * chances).sum() / p.sum() ** 2)

    def chord(s):
        P, rows, none = np.append(s.P, s.P_rest), np.ones(3), np.zeros(3)

        def of_means(m):
            value = gammaln(alpha) - gammaln(1.0 + alpha) + np.log(alpha * m).sum() + alpha * m @ P
            return float(value), alpha * m * P + 1.0, none, none

        start = prior._begin(s)
        return best_sticks(lambda x: stick_bound(x, rows, gamma, np.zeros((0, 2)), of_means), *start)[1]

    a = np.full(3, alpha / 3.0)
    for _ in range(20):
        s = of_counts(N, a)
        found = prior.bound(s)
        assert chord(s) + s.Q.sum() + s.Q_rest < found < exact
        a = prior.update(s, prior.solve(s)).prior


@every
@few
@given(seed=SEEDS, K=st.integers(1, 6))
def test_the_global_step_is_an_optimum(allocation, seed, K):
    rng, s = np.random.default_rng(seed), summary(seed, K)
    best, shares = allocation.bound(s), allocation.solve(s).shares
    assert shares.shape == (K + 1,)
    assert shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        allocation.update(s, allocation.solve(s)).prior, allocation.document_concentration * shares
    )
    assert allocation.bound_at(s, allocation.at(s, shares)) == pytest.approx(best, rel=1e-8)
    if getattr(allocation, "symmetric", False):
        return
    for _ in range(5):
        other = shares * np.exp(rng.normal(0.0, 0.3, K + 1))
        assert allocation.bound_at(s, allocation.at(s, other / other.sum())) <= best + 1e-6 * abs(best)


@every
@settings(max_examples=3)
@given(seed=SEEDS)
def test_learning_raises_the_bound_and_ends_where_nothing_is_gained(allocation, seed):
    s, names = summary(seed), ("document_concentration", "concentration")
    before, found = allocation.bound(s), allocation
    for _ in range(25):
        found = found.tuned(s, names, found.solve(s))[0]
        assert found.bound(s) >= before - 1e-9 * abs(before)
        before = found.bound(s)
    for factor in (0.8, 1.25):
        other = replace(found, document_concentration=found.document_concentration * factor)
        assert other.bound(s) <= before + 1e-6 * abs(before)
    assert allocation.tuned(s, (), allocation.solve(s))[0] == allocation


@pytest.mark.parametrize(("seed", "K"), [(0, 1), (1, 3), (2, 6)])
def test_an_empty_topic_lowers_the_bound_of_the_process(seed, K):
    """Thesis Fig. 5.3: every document pays for a share of what no document uses, at the best of shares for both."""
    rng = np.random.default_rng(seed)
    N = rng.poisson(20.0 * rng.dirichlet(np.ones(K), 100)).astype(float)
    prior = HierarchicalDirichletProcess(1.0, 1.0)

    def settled(counts):
        a = np.full(counts.shape[1] + 1, 1.0 / (counts.shape[1] + 1))
        for _ in range(150):
            s = of_counts(counts, a)
            a = prior.update(s, prior.solve(s)).prior
        return prior.bound(s)

    assert settled(np.column_stack([N, np.zeros(100)])) < settled(N)


def test_unused_topics_of_a_symmetric_prior_change_nothing():
    s, prior = summary(3, K=4), LatentDirichlet(9, 2.0, symmetric=True)
    a = prior.update(s, prior.solve(s)).prior
    rng = np.random.default_rng(0)
    N = rng.poisson(3.0, (20, 4)).astype(float)
    less = of_counts(N, a)
    more = of_counts(np.column_stack([N, np.zeros(20)]), np.append(a[:4], [a[4] / 5.0, a[4] * 4.0 / 5.0]))
    assert prior.bound(more) == pytest.approx(prior.bound(less), rel=1e-10)


def test_stick_means_and_logits_are_inverse():
    shares = np.array([0.5, 0.2, 0.2, 0.1])
    np.testing.assert_allclose(stick_means(1.0 / (1.0 + np.exp(-stick_logits(shares)))), shares, rtol=1e-10)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_concentrations_are_positive(wrong):
    for kind in (HierarchicalDirichletProcess, lambda **k: LatentDirichlet(3, **k)):
        with pytest.raises(ValueError, match="document_concentration must be a positive number"):
            kind(document_concentration=wrong)
    with pytest.raises(ValueError, match="n_topics must be a whole number"):
        LatentDirichlet(0)
