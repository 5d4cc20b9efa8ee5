"""Missing cells: kernels against the plain statement, and against perturbed distributions of the cells."""

import numpy as np
import pytest

from stickbreak.kernels.cells import best_cells_reference
from stickbreak.likelihoods._cells import Block, Cells
from stickbreak.likelihoods.responsibilities import Responsibilities

FIRST, D = 2, 4
HOLES = np.array([0, 1, 3])
LINEAR = FIRST + D * (D + 1) // 2
F = LINEAR + D + len(HOLES) + 1
A, B = np.triu_indices(D)
CELLS = Cells((Block(FIRST, D, HOLES),))


def problem(seed, n=40, K=3):
    """Weights of precisions Q (K, D, D) and natural means, features of rows, and where cells are missing, (n, D)."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((K, D, D + 1))
    Q = G @ G.swapaxes(1, 2) + 0.1 * np.eye(D)
    W = rng.standard_normal((K, F))
    W[:, FIRST:LINEAR] = -0.5 * Q[:, A, B] * np.where(A == B, 1.0, 2.0)
    W[:, -1] = 1.0
    absent = (rng.random((n, D)) < 0.5) & np.isin(np.arange(D), HOLES)
    T = rng.standard_normal((n, F))
    z = np.where(absent, 0.0, T[:, LINEAR : LINEAR + D])
    T[:, FIRST:LINEAR] = z[:, A] * z[:, B]
    T[:, FIRST:LINEAR][:, A == B] += absent
    T[:, LINEAR : LINEAR + D] = z
    T[:, LINEAR + D : -1] = absent[:, HOLES]
    T[:, -1] = 0.0
    return W, T, absent, Q


def features_of(t, cells, mean, V):
    """Features of a row whose missing cells are Normal(mean, V)."""
    t = t.copy()
    z = t[LINEAR : LINEAR + D].copy()
    z[cells] = mean
    products = np.outer(z, z)
    products[np.ix_(cells, cells)] += V
    t[FIRST:LINEAR] = products[A, B]
    t[LINEAR : LINEAR + D] = z
    t[-1] = 0.5 * np.linalg.slogdet(V)[1] if len(cells) else 0.0
    return t


def filled(W, T, absent):
    """Features (n, K, F) of the best q of each cluster."""
    out = np.repeat(T[:, None], len(W), axis=1)
    for n, k in np.ndindex(out.shape[:2]):
        cells = np.flatnonzero(absent[n])
        out[n, k] = features_of(T[n], cells, *best_cells_reference(W[k], T[n, LINEAR : LINEAR + D], cells, FIRST))
    return out


@pytest.mark.parametrize("seed", range(3))
def test_scores_features_and_sums_are_those_of_the_best_cells(seed):
    W, T, absent, _ = problem(seed)
    rng = np.random.default_rng(seed)
    best = filled(W, T, absent)
    C = T @ W.T
    CELLS.integrate(T, W, C)
    np.testing.assert_allclose(C, np.einsum("nkf,kf->nk", best, W), rtol=1e-10, atol=1e-10)
    owners = rng.integers(len(W), size=len(T))
    np.testing.assert_allclose(CELLS.filled(T, W, owners), best[np.arange(len(T)), owners], rtol=1e-10, atol=1e-10)
    R = rng.dirichlet(np.full(len(W), 0.5), len(T))
    R[R < 0.2] = 0.0
    weights = rng.choice([0.5, 2.0], len(T))
    S = (weights[:, None] * R).T @ T
    CELLS.add(Responsibilities.of(R), weights, T, W, S)
    np.testing.assert_allclose(S, np.einsum("n,nk,nkf->kf", weights, R, best), rtol=1e-10, atol=1e-10)


def test_no_other_distribution_of_the_cells_has_a_higher_score():
    W, T, absent, _ = problem(7, n=10)
    rng = np.random.default_rng(0)
    best = filled(W, T, absent)
    for n, k in np.ndindex(best.shape[:2]):
        cells = np.flatnonzero(absent[n])
        mean, V = best_cells_reference(W[k], T[n, LINEAR : LINEAR + D], cells, FIRST)
        for _ in range(5):
            step = 1e-2 * rng.standard_normal(len(cells))
            G = np.eye(len(cells)) + 1e-2 * rng.standard_normal((len(cells), len(cells)))
            other = features_of(T[n], cells, mean + step, G @ V @ G.T)
            assert other @ W[k] <= best[n, k] @ W[k] + 1e-12


def test_marginals_of_gaussians_are_those_of_the_observed_cells():
    """With known parameters the score is the log density of the observed cells, up to what all rows have in common."""
    W, T, absent, Q = problem(3)
    W[:, LINEAR + D : -1] = 0.5
    h = W[:, LINEAR : LINEAR + D]
    C = T[:, FIRST:] @ W[:, FIRST:].T
    shifted = Cells((Block(0, D, HOLES),))
    shifted.integrate(np.ascontiguousarray(T[:, FIRST:]), W[:, FIRST:], C)
    for k, precision in enumerate(Q):
        V = np.linalg.inv(precision)
        m = V @ h[k]
        for n, gone in enumerate(absent):
            o = np.flatnonzero(~gone)
            away = T[n, LINEAR : LINEAR + D][o] - m[o]
            square = away @ np.linalg.solve(V[np.ix_(o, o)], away)
            want = -0.5 * (square + np.linalg.slogdet(V[np.ix_(o, o)])[1])
            got = C[n, k] + 0.5 * (np.linalg.slogdet(precision)[1] - m @ h[k])
            assert got == pytest.approx(want, rel=1e-9, abs=1e-9)
