"""Inverses of many small symmetric matrices from their Cholesky factors.

A call of LAPACK costs more than the arithmetic of a matrix of a few dozen columns.
"""

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part


@_part
def _inverse_factor(L, X):
    """Write X = L^-1; both (D, D), of which the lower triangles count."""
    for i in range(X.shape[0]):
        row = X[i]
        factor = 1.0 / L[i, i]
        for b in range(i):
            row[b] = 0.0
        for a in range(i):
            share = -factor * L[i, a]
            other = X[a]
            for b in range(a + 1):
                row[b] += share * other[b]
        row[i] = factor


@_jit
def invert(L, P):
    """Write (L_k L_k')^-1 = X' X with X = L_k^-1.

    L : (K, D, D) in, lower triangles;  P : (K, D, D) in: zeros, out
    """
    K, D = L.shape[:2]
    X = np.empty((D, D))
    for k in range(K):
        _inverse_factor(L[k], X)
        for i in range(D):
            row = X[i]
            for a in range(i + 1):
                share = row[a]
                sums = P[k, a]
                for b in range(a + 1):
                    sums[b] += share * row[b]
        for a in range(D):
            for b in range(a):
                P[k, b, a] = P[k, a, b]


def invert_reference(L: np.ndarray) -> np.ndarray:
    """The matrices P of `invert`."""
    return np.linalg.inv(L @ L.swapaxes(1, 2))
