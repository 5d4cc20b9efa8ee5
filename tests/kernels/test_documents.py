"""The kernels of topic models against dense arithmetic and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi, xlogy

from stickbreak.kernels import document_statistics, documents

SEEDS = st.integers(0, 2**32 - 1)


def problem(seed, n=6, V=7, K=3):
    """Counts with an empty document and one of a single word, likelihoods, and a prior of very unlike sizes."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.0, (n, V)).astype(float)
    counts[0], counts[1] = 0.0, np.eye(V)[rng.integers(V)]
    E = np.exp(rng.normal(0.0, 3.0, (V, K)))
    E /= E.max(axis=1, keepdims=True)
    return rng, sparse.csr_array(counts), counts, E, np.exp(rng.normal(-2.0, 2.0, K))


def test_exp_digamma():
    x = np.geomspace(1e-6, 1e6, 5000).astype(np.float32)
    y = np.empty_like(x)
    documents._exp_digamma(x, y)
    want, large = np.exp(psi(x.astype(float))), x > 0.02
    np.testing.assert_allclose(y[large], want[large], rtol=3e-5)  # of exponents near 50 float32 knows no more
    np.testing.assert_allclose(y[x > 0.1], want[x > 0.1], rtol=3e-6)
    assert ((y[~large] >= 1e-26) & (y[~large] < 1e-20)).all()


def dense_statistics(counts, E, prior, start):
    """One exact update of every document with dense arrays."""
    p = np.exp(psi(start + prior))
    r = E[None] * p[:, None]
    Z = r.sum(axis=2, keepdims=True)
    r = counts[:, :, None] * r / Z
    N = r.sum(axis=1)
    theta = N + prior
    sums = [psi(theta).sum(axis=0), gammaln(theta).sum(axis=0), (N * np.log(p)).sum(axis=0)]
    sums.append((r * np.log(Z)).sum(axis=(0, 1)))
    return N, p, np.log(Z[:, :, 0]), r.sum(axis=0), np.array(sums)


def statistics(X, E, prior, start, single=None, mass=1.0):
    """What the kernel makes of documents: N, p, log_Z, R, sums, and which have a single topic.

    single : of a restricted step, whose documents have this probability ``mass``; by default one for all topics
    """
    n = X.shape[0]
    N, p, log_Z = start.copy(), np.empty(start.shape), np.empty(X.nnz)
    R, sums = np.zeros(E.shape), np.zeros((4, E.shape[1]))
    log_mass = np.empty(0) if single is None else np.full(X.nnz, np.log(mass))
    limits = np.empty(0, np.int64)
    choose = single is None
    single = np.zeros(n, bool) if single is None else single.copy()
    counts = mass * X.data
    document_statistics.document_statistics(
        X.indptr, X.indices, counts, log_mass, E, np.log(E), prior, limits, choose, single, N, p, log_Z, R, sums
    )
    return N, p, log_Z, R, sums, single


def mixed(n):
    """No document of n has a single topic."""
    return np.zeros(n, bool)


def dense_single_topic(counts, E, prior):
    """The bound of documents if all tokens of each have the same topic, -inf without tokens, and the topics' probabilities."""
    n = counts.sum(axis=1)[:, None]
    logs = counts @ np.log(E) + gammaln(prior + n) - gammaln(prior)
    bound = logsumexp(logs, axis=1)
    return np.where(n[:, 0] > 0.0, bound, -np.inf), np.exp(logs - bound[:, None])


@given(seed=SEEDS, n=st.integers(2, 9), K=st.integers(2, 6))
def test_a_single_topic_where_its_bound_is_higher(seed, n, K):
    """Both bounds by dense arithmetic; sums are those of the one that is higher, and the bound that they imply is its."""
    rng, X, counts, E, prior = problem(seed, n=n, K=K)
    start = rng.exponential(2.0, (n, K))
    N, p, log_Z, *_ = dense_statistics(counts, E, prior, start)
    bounds = (counts * log_Z).sum(axis=1) - (N * np.log(p)).sum(axis=1)
    bounds += (gammaln(N + prior) - gammaln(prior)).sum(axis=1)
    others, rho = dense_single_topic(counts, E, prior)
    got = statistics(X, E, prior, start)
    single = got[5]
    unsure = np.abs(others - bounds) < 1e-9
    np.testing.assert_array_equal(single[~unsure], (others > bounds)[~unsure])
    size = counts.sum(axis=1)[single]
    np.testing.assert_allclose(got[0][single], size[:, None] * rho[single], atol=1e-12)
    np.testing.assert_allclose(got[1][single], rho[single], atol=1e-12)
    prior_part = n * gammaln(prior).sum()
    value = got[4][1].sum() + got[4][3].sum() - got[4][2].sum() - prior_part
    assert value == pytest.approx(np.maximum(others, bounds).sum(), rel=1e-10, abs=1e-8)
    np.testing.assert_allclose(got[3].sum(axis=1), counts.sum(axis=0), rtol=1e-10, atol=1e-10)


@given(seed=SEEDS, mass=st.sampled_from([1.0, 0.3]))
def test_a_part_of_documents_of_a_single_topic(seed, mass):
    """With probability ``mass`` the topic of all tokens is one of these: expectations and entropy by dense arithmetic."""
    _, X, counts, E, prior = problem(seed)
    K = E.shape[1]
    _, rho = dense_single_topic(counts, E, prior)
    some = counts.sum(axis=1) > 0.0
    rho = mass * rho[some]
    size = counts[some].sum(axis=1)[:, None]
    N, p, _, R, sums, _ = statistics(X, E, prior, np.ones((6, K)), some, mass)
    np.testing.assert_allclose(p[some], rho, atol=1e-12)
    np.testing.assert_allclose(N[some], size * rho, atol=1e-12)
    np.testing.assert_allclose(R, counts[some].T @ rho, rtol=1e-10, atol=1e-12)
    psi_theta = rho * psi(prior + size) + (1.0 - rho) * psi(prior)
    log_gamma = rho * gammaln(prior + size) + (1.0 - rho) * gammaln(prior)
    np.testing.assert_allclose(sums[0], psi_theta.sum(axis=0) + (~some).sum() * psi(prior), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums[1], log_gamma.sum(axis=0) + (~some).sum() * gammaln(prior), rtol=1e-9, atol=1e-9)
    entropy = sums[3] - sums[2] - (R * np.log(E)).sum(axis=0)
    np.testing.assert_allclose(entropy, -xlogy(rho, rho).sum(axis=0), rtol=1e-9, atol=1e-8)


@given(seed=SEEDS, n=st.integers(2, 9), K=st.integers(1, 6))
def test_statistics_equal_dense_arithmetic(seed, n, K):
    rng, X, counts, E, prior = problem(seed, n=n, K=K)
    start = rng.exponential(2.0, (n, K))
    want = dense_statistics(counts, E, prior, start)
    N, p, log_Z, R, sums, _ = statistics(X, E, prior, start, mixed(n))
    np.testing.assert_allclose(N, want[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(p, want[1], rtol=1e-12, atol=documents.FAINT)
    np.testing.assert_allclose(log_Z, want[2][counts > 0.0], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(R, want[3], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sums, want[4], rtol=1e-11, atol=1e-11)
    mass = np.empty(X.nnz)
    columns = rng.permutation(K)[: rng.integers(1, K + 1)]
    single = rng.random(n) < 0.3
    document_statistics.entry_mass(X.indptr, X.indices, E, single, p, log_Z, columns, mass)
    r = E[None] * p[:, None]
    share = r[:, :, columns].sum(axis=2) / r.sum(axis=2)
    share[single] = p[single][:, columns].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mass, share[counts > 0.0], rtol=1e-11)


def many_topics(seed, reach, K=40):
    """As `problem`, of topics with so small a prior that most are left out of a document; E down to exp(-reach)."""
    rng, X, counts, _, _ = problem(seed, K=K)
    E = np.exp(-reach * rng.random((7, K)))
    start = np.where(rng.random((6, K)) < 0.1, rng.exponential(5.0, (6, K)), 0.0)
    start[:, 0] = 1.0
    return X, counts, E / E.max(axis=1, keepdims=True), np.full(K, 0.01), start


@given(seed=SEEDS, reach=st.sampled_from([5.0, 150.0]))
def test_topics_left_out_do_not_matter(seed, reach):
    """With E down to exp(-150) some words are explained by topics without counts, which must not be left out."""
    X, counts, E, prior, start = many_topics(seed, reach)
    want = dense_statistics(counts, E, prior, start)
    N, p, log_Z, R, sums, _ = statistics(X, E, prior, start, mixed(len(start)))
    np.testing.assert_allclose(N, want[0], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(log_Z, want[2][counts > 0.0], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(R, want[3], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(sums, want[4], rtol=1e-10, atol=1e-9)
    if reach == 5.0:
        assert (p == 0.0).sum() > 0.5 * p.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=SEEDS, warm=st.booleans())
def test_iteration_that_leaves_topics_out_ends_at_a_fixed_point(dtype, seed, warm):
    X, counts, E, prior, start = many_topics(seed, 5.0)
    N = (start if warm else np.full(start.shape, np.nan)).astype(dtype)
    c = X.data.astype(dtype)
    documents.document_counts(
        X.indptr, X.indices, c, E.astype(dtype), prior.astype(dtype), dtype(1e-37), 1e-6, 100_000, N
    )
    after = dense_statistics(counts, E, prior, N.astype(float))[0]
    np.testing.assert_allclose(N, after, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(N.sum(axis=1), counts.sum(axis=1), rtol=1e-5, atol=1e-6)
    assert (N == 0.0).sum() > 0.5 * N.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=SEEDS, K=st.integers(2, 6), warm=st.booleans())
def test_iteration_ends_at_a_fixed_point(dtype, seed, K, warm):
    rng, X, counts, E, prior = problem(seed, K=K)
    prior = np.maximum(prior, 0.05)
    start = rng.exponential(2.0, (6, K)) if warm else np.full((6, K), np.nan)
    N = start.astype(np.float32)
    E, prior, c = E.astype(dtype), prior.astype(dtype), X.data.astype(dtype)
    N = N.astype(dtype)
    documents.document_counts(X.indptr, X.indices, c, E, prior, dtype(1e-37), 1e-6, 100_000, N)
    after = dense_statistics(counts, E, prior, N.astype(float))[0]
    np.testing.assert_allclose(N, after, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(N.sum(axis=1), counts.sum(axis=1), rtol=1e-5, atol=1e-6)
    assert (N[0] == 0.0).all()
