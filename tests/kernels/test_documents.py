"""The kernels of topic models against dense arithmetic and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import gammaln, psi

from stickbreak.kernels import documents

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


@given(seed=SEEDS, n=st.integers(2, 9), K=st.integers(1, 6))
def test_statistics_equal_dense_arithmetic(seed, n, K):
    rng, X, counts, E, prior = problem(seed, n=n, K=K)
    start = rng.exponential(2.0, (n, K))
    want = dense_statistics(counts, E, prior, start)
    N, p, log_Z = start.copy(), np.empty((n, K)), np.empty(X.nnz)
    R, sums = np.zeros(E.shape), np.zeros((4, K))
    documents.document_statistics(X.indptr, X.indices, X.data, np.empty(0), E, prior, N, p, log_Z, R, sums)
    np.testing.assert_allclose(N, want[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(p, want[1], rtol=1e-12)
    np.testing.assert_allclose(log_Z, want[2][counts > 0.0], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(R, want[3], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sums, want[4], rtol=1e-11, atol=1e-11)
    mass = np.empty(X.nnz)
    columns = rng.permutation(K)[: rng.integers(1, K + 1)]
    documents.entry_mass(X.indptr, X.indices, E, p, log_Z, columns, mass)
    r = E[None] * p[:, None]
    share = r[:, :, columns].sum(axis=2) / r.sum(axis=2)
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
    N, p, log_Z = start.copy(), np.empty(start.shape), np.empty(X.nnz)
    R, sums = np.zeros(E.shape), np.zeros((4, E.shape[1]))
    documents.document_statistics(X.indptr, X.indices, X.data, np.empty(0), E, prior, N, p, log_Z, R, sums)
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
