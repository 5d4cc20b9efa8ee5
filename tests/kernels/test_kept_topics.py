"""Documents of at most L topics (Thesis 7.3) against dense arithmetic and every set of topics."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi, xlogy

from stickbreak.kernels.document_statistics import document_statistics
from stickbreak.kernels.kept_topics import kept_counts

SEEDS = st.integers(0, 2**32 - 1)
LIMITS = st.integers(1, 3)


def problem(seed, n=6, V=9, K=5):
    """Counts with an empty document and one of a single word, likelihoods and a prior."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.5, (n, V)).astype(float)
    counts[0] = 0.0
    counts[1] = np.eye(V)[rng.integers(V)]
    E = np.exp(rng.normal(0.0, 2.0, (V, K)))
    E /= E.max(axis=1, keepdims=True)
    return counts, E, rng.exponential(0.3, K) + 0.02


def kept(counts, E, prior, L, start=None):
    """The counts of the kernel, from a cold start by default."""
    X = sparse.csr_array(counts)
    N = np.full((len(counts), len(prior)), np.nan) if start is None else start.copy()
    limits = np.full(len(counts), L)
    kept_counts(X.indptr, X.indices, X.data, E, np.log(E), prior, limits, 1e-9, 2000, N)
    return N


def statistics(counts, E, prior, L, start, choose):
    """What documents with a limit say: N, p, R, sums, and which have a single topic."""
    X = sparse.csr_array(counts)
    n = len(counts)
    N = start.copy()
    p = np.empty(start.shape)
    single = np.zeros(n, bool)
    log_Z, R, sums = np.empty(X.nnz), np.zeros(E.shape), np.zeros((4, len(prior)))
    limits = np.full(n, L)
    none = np.empty(0)
    document_statistics(
        X.indptr, X.indices, X.data, none, E, np.log(E), prior, limits, choose, single, N, p, log_Z, R, sums
    )
    return N, p, R, sums, single


def followed(c, E, prior, start, chosen):
    """One iteration of a document in a set of topics, with dense arrays: its counts, and its part of the bound."""
    N = np.zeros(len(prior))
    p = np.exp(psi(start[chosen] + prior[chosen]))
    r = E[:, chosen] * p
    Z = r.sum(axis=1)
    N[chosen] = c @ (r / Z[:, None])
    value = c @ np.log(Z) - N[chosen] @ np.log(p) + (gammaln(N + prior) - gammaln(prior)).sum()
    return N, value


def settled(c, E, prior, start, chosen):
    for _ in range(100):
        start, value = followed(c, E, prior, start, chosen)
    return value


def hard_bounds(counts, E, prior):
    """The part of the bound of documents for each topic that all their tokens may have, (n, K)."""
    n = counts.sum(axis=1, keepdims=True)
    return counts @ np.log(E) + gammaln(prior + n) - gammaln(prior)


@given(seed=SEEDS)
def test_one_topic_is_the_best_one(seed):
    counts, E, prior = problem(seed)
    N = kept(counts, E, prior, 1)
    values = hard_bounds(counts, E, prior)
    want = np.where(values == values.max(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True), 0.0)
    want[0] = 0.0
    np.testing.assert_array_equal(N, want)
    after, p, R, sums, _ = statistics(counts, E, prior, 1, N, True)
    np.testing.assert_allclose(after, want, rtol=1e-12)
    assert ((p > 0.0).sum(axis=1) == (counts.sum(axis=1) > 0.0)).all()
    np.testing.assert_allclose(R, counts.T @ (want > 0.0), atol=1e-12)
    np.testing.assert_allclose(sums[0], psi(want + prior).sum(axis=0), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sums[1], gammaln(want + prior).sum(axis=0), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sums[3] - sums[2] - (R * np.log(E)).sum(axis=0), 0.0, atol=1e-9)


@given(seed=SEEDS, L=st.integers(2, 4))
@settings(max_examples=30)
def test_the_bound_is_that_of_what_is_kept(seed, L):
    """By dense arithmetic in the topics of each document; and sums imply it."""
    counts, E, prior = problem(seed)
    N = kept(counts, E, prior, L)
    sets = [np.flatnonzero(row > 0.0) for row in N]
    assert max(map(len, sets)) <= L
    want = [followed(c, E, prior, row, own) for c, row, own in zip(counts[1:], N[1:], sets[1:])]
    np.testing.assert_allclose(N[1:], [row for row, _ in want], rtol=1e-3, atol=1e-5)  # a fixed point
    after, p, R, sums, _ = statistics(counts, E, prior, L, N, False)
    np.testing.assert_allclose(after[1:], [row for row, _ in want], rtol=1e-10, atol=1e-12)
    assert ((p > 0.0) == (N > 0.0)).all()
    np.testing.assert_allclose(R.sum(axis=1), counts.sum(axis=0), rtol=1e-10, atol=1e-10)
    value = sums[1].sum() + sums[3].sum() - sums[2].sum() - len(counts) * gammaln(prior).sum()
    assert value == pytest.approx(sum(value for _, value in want), rel=1e-10, abs=1e-9)


def test_what_is_kept_is_near_the_best_of_all_sets():
    """Of all sets of two of five topics; each document ends in one of them, at most at its value, and mostly in the best."""
    best = []
    for seed in range(4):
        counts, E, prior = problem(seed)
        N = kept(counts, E, prior, 2)
        for c, row in zip(counts[1:], N[1:]):
            _, value = followed(c, E, prior, row, np.flatnonzero(row > 0.0))
            starts = (np.full(5, c.sum() / 2), np.where(np.arange(5) % 2 == 0, 0.9, 0.1) * c.sum())
            values = [settled(c, E, prior, start, list(own)) for own in combinations(range(5), 2) for start in starts]
            assert value <= max(values) + 1e-6
            best.append(value > max(values) - 1e-3)
    assert np.mean(best) > 0.7


@given(seed=SEEDS, L=LIMITS)
def test_a_visit_to_a_document_never_lowers_its_bound(seed, L):
    counts, E, prior = problem(seed)
    rng = np.random.default_rng(seed)
    start = np.zeros((6, 5))
    for d in range(6):
        own = rng.permutation(5)[:L]
        start[d, own] = rng.dirichlet(np.ones(L)) * counts[d].sum()
    N = kept(counts, E, prior, L, start)
    assert ((N > 0.0).sum(axis=1) <= L).all()
    for d in range(1, 6):
        _, before = followed(counts[d], E, prior, start[d], np.flatnonzero(start[d] > 0.0))
        _, after = followed(counts[d], E, prior, N[d], np.flatnonzero(N[d] > 0.0))
        assert after >= before - 1e-9


@given(seed=SEEDS, L=LIMITS)
def test_a_single_uncertain_topic_is_one_of_as_many(seed, L):
    """Its probabilities have the highest bound of all sets of L topics, and are taken where this beats the mixed document."""
    counts, E, prior = problem(seed)
    N = kept(counts, E, prior, L)
    after, p, _, sums, single = statistics(counts, E, prior, L, N, True)
    values = hard_bounds(counts, E, prior)
    total = len(counts) * -gammaln(prior).sum() + sums[1].sum() + sums[3].sum() - sums[2].sum()
    want = 0.0
    for d in range(1, 6):
        own = max(combinations(range(5), L), key=lambda own: logsumexp(values[d, list(own)]))
        bound = logsumexp(values[d, list(own)])
        _, mixed = followed(counts[d], E, prior, N[d], np.flatnonzero(N[d] > 0.0))
        want += max(bound, mixed)
        if abs(bound - mixed) > 1e-9:
            assert single[d] == (bound > mixed)
        if single[d]:
            rho = np.zeros(5)
            rho[list(own)] = np.exp(values[d, list(own)] - bound)
            np.testing.assert_allclose(p[d], rho, rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(after[d], rho * counts[d].sum(), rtol=1e-9, atol=1e-12)
            assert logsumexp(values[d, list(own)]) == pytest.approx(rho @ values[d] - xlogy(rho, rho).sum())
    assert total == pytest.approx(want, rel=1e-9, abs=1e-8)
