"""The local step of documents with answers: never lower, at a maximum, and the same as written out in NumPy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import gammaln, psi, softmax

from stickbreak.kernels.answered import answered_counts, answered_statistics
from stickbreak.model.document_step import Entries, tables

K, V, D = 4, 30, 120


class Problem:
    """Documents, tables, and a parabola for each document, ``scale`` times as strong."""

    def __init__(self, scale, seed=0):
        rng = np.random.default_rng(seed)
        phi = rng.dirichlet(np.full(V, 0.1), K)
        sizes = rng.choice([2, 8, 40], (D, 1))
        X = sparse.csr_array(rng.poisson(sizes * (rng.dirichlet(np.full(K, 0.3), D) @ phi)).astype(float))
        X = X[X.sum(axis=1) > 0]
        self.n = X.shape[0]
        self.entries = Entries(X.indptr, X.indices, X.data)
        self.tables = tables(np.log(phi.T + 1e-9), np.append(np.full(K, 0.2), 0.1))
        w = rng.normal(0.0, 3.0, (K, 2))
        self.A = scale * (w @ w.T + 0.1 * np.eye(K))
        self.g = scale * np.outer(rng.standard_normal(self.n), w[:, 0])
        self.h = rng.uniform(0.5, 2.0, self.n)
        diagonal = np.diagonal(self.A)
        self.spread = float((diagonal[:, None] + diagonal - 2.0 * self.A).max())

    def document(self, d):
        some = slice(*self.entries.indptr[d : d + 2])
        return self.tables.E[self.entries.rows[some]], self.entries.counts[some]

    def objective(self, d, r):
        """Of any responsibilities r (entries, K), with the best theta; up to a constant."""
        E, c = self.document(d)
        N = c @ r
        m = N / c.sum()
        words = (c[:, None] * r * (np.log(E) - np.log(np.maximum(r, 1e-300)))).sum()
        return words + gammaln(N + self.tables.prior).sum() + self.g[d] @ m - 0.5 * self.h[d] * m @ self.A @ m

    def step(self, N, most=100, tol=1e-3):
        """The kernel's factors and counts from counts N (n, K)."""
        N = np.array(N)
        x = np.zeros(N.shape)
        refits = answered_counts(
            *self.entries, self.tables.E, self.tables.prior, self.g, self.h, self.A, self.spread, tol, most, N, x
        )
        return x, N, refits

    def responsibilities(self, d, x):
        return softmax(np.log(self.document(d)[0]) + x[d], axis=1)


@pytest.mark.parametrize("most", [2, 100])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0, 1e7])
def test_no_document_ends_lower_than_it_began(scale, most):
    """From responsibilities of any kind, of which the step knows the counts alone."""
    problem = Problem(scale)
    rng = np.random.default_rng(1)
    first = []
    counts = np.empty((problem.n, K))
    for d in range(problem.n):
        E, c = problem.document(d)
        r = rng.dirichlet(np.full(K, 0.3), len(c)) if d % 2 else softmax(np.log(E) + rng.normal(0.0, 2.0, K), axis=1)
        first.append(problem.objective(d, r))
        counts[d] = c @ r
    x, N, _ = problem.step(counts, most)
    last = np.array([problem.objective(d, problem.responsibilities(d, x)) for d in range(problem.n)])
    assert (last >= np.array(first) - 1e-6 * np.abs(first)).all()
    for d in range(problem.n):
        E, c = problem.document(d)
        np.testing.assert_allclose(N[d], c @ problem.responsibilities(d, x), rtol=1e-9, atol=1e-9)


def test_it_ends_at_a_maximum():
    """No gradient step from there gains, by an optimiser over all responsibilities."""
    problem = Problem(5.0, seed=2)
    start = np.array(
        [problem.document(d)[1] @ np.full((len(problem.document(d)[1]), K), 1.0 / K) for d in range(problem.n)]
    )
    x, _, _ = problem.step(start, 20_000, 1e-9)
    for d in range(12):
        c = problem.document(d)[1]
        r = problem.responsibilities(d, x)

        def loss(logits, d=d, c=c):
            return -problem.objective(d, softmax(logits.reshape(len(c), K), axis=1))

        best = minimize(loss, np.log(np.maximum(r, 1e-12)).ravel(), method="L-BFGS-B")
        assert -best.fun - problem.objective(d, r) < 1e-4


def test_a_step_as_written_out():
    """Three updates, where none is checked afterwards."""
    problem = Problem(0.02, seed=3)
    N = np.random.default_rng(4).dirichlet(np.ones(K), problem.n)
    N *= np.array([problem.document(d)[1].sum() for d in range(problem.n)])[:, None]
    x, counts, refits = problem.step(N, 3, 0.0)
    assert refits == 0
    for d in range(problem.n):
        E, c = problem.document(d)
        n = c.sum()
        rho = 1.0 / (1.0 + problem.h[d] * problem.spread / (4.0 * n))
        if problem.h[d] * problem.spread > 4.0 * n:
            continue

        def slopes(N, d=d, n=n):
            return psi(N + problem.tables.prior) + (problem.g[d] - problem.h[d] * problem.A @ N / n) / n

        want = slopes(N[d])
        for _ in range(2):
            want = (1.0 - rho) * want + rho * slopes(c @ softmax(np.log(E) + want, axis=1))
        np.testing.assert_allclose(x[d], want, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(counts[d], c @ softmax(np.log(E) + want, axis=1), rtol=1e-9, atol=1e-12)


def test_statistics_are_those_of_the_responsibilities():
    problem = Problem(1.0, seed=5)
    rng = np.random.default_rng(6)
    x = rng.normal(0.0, 5.0, (problem.n, K)) + 100.0
    N, p = np.empty((2, problem.n, K))
    log_Z = np.empty(len(problem.entries.rows))
    R = np.zeros(problem.tables.E.shape)
    sums = np.zeros((4, K))
    answered_statistics(*problem.entries, problem.tables.E, problem.tables.prior, x, N, p, log_Z, R, sums)
    want_R = np.zeros(R.shape)
    entropy = np.zeros(K)
    prior = problem.tables.prior
    for d in range(problem.n):
        E, c = problem.document(d)
        some = slice(*problem.entries.indptr[d : d + 2])
        r = problem.responsibilities(d, x)
        np.testing.assert_allclose(E * p[d] / np.exp(log_Z[some])[:, None], r, atol=1e-12)
        np.testing.assert_allclose(N[d], c @ r, atol=1e-9)
        want_R[problem.entries.rows[some]] += c[:, None] * r
        entropy -= (c[:, None] * r * np.log(np.maximum(r, 1e-300))).sum(axis=0)
    np.testing.assert_allclose(R, want_R, atol=1e-9)
    np.testing.assert_allclose(sums[0], psi(N + prior).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(sums[1], gammaln(N + prior).sum(axis=0), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(sums[3] - sums[2] - (R * problem.tables.scores).sum(axis=0), entropy, atol=1e-7)
