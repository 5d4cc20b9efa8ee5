"""Building sufficient statistics block by block."""

import numpy as np

from ._jit import jit as _jit


@_jit
def pack_products(X, origin, unit, linear, T):
    """Write ``[z_a z_b for a <= b]``, followed by z itself if ``linear``, with z = (x - origin) / unit.

    The scatter matrix is symmetric, so only its upper triangle is stored: D (D + 1) / 2 numbers a row, and the quadratic
    form costs half the multiply-adds of the full matrix.

    X : (n, D) in;  origin, unit : (D,) in;  T : (n, D (D + 1) / 2 [+ D]) out
    """
    n, D = X.shape
    z = np.empty(D, T.dtype)
    pairs = D * (D + 1) // 2
    for i in range(n):
        for a in range(D):
            z[a] = (X[i, a] - origin[a]) / unit[a]
        start = 0
        for a in range(D):
            factor = z[a]
            others = z[a:]
            products = T[i, start : start + D - a]
            for b in range(D - a):
                products[b] = factor * others[b]
            start += D - a
        if linear:
            for a in range(D):
                T[i, pairs + a] = z[a]


@_jit
def pack_pairs(X, origin, unit, first, second, T):
    """Write ``[z_a z_b for the pairs (a, b)]``, followed by z itself, with z = (x - origin) / unit.

    X : (n, D) in;  origin, unit : (D,) in;  first, second : (P,) in, columns a and b;  T : (n, P + D) out
    """
    n, D = X.shape
    z = np.empty(D, T.dtype)
    pairs = len(first)
    for i in range(n):
        for a in range(D):
            z[a] = (X[i, a] - origin[a]) / unit[a]
        for p in range(pairs):
            T[i, p] = z[first[p]] * z[second[p]]
        for a in range(D):
            T[i, pairs + a] = z[a]


@_jit
def gather_scatters(S, D, columns, base, weight, rounding, kappa, m, grain, B):
    """Write the upper triangles of B_k = base + S_k + weight_k diag(rounding) - kappa_k m_k m_k', squares of S times ``grain``.

    S : (K, at least D (D + 1) / 2) in, packed products as of `pack_products`;  columns : (q,) in, ascending, those to take
    base : (q, q) in;  weight, kappa : (K,) in;  rounding : (q,) in;  m : (K, q) in;  B : (K, q, q) out, otherwise untouched
    """
    q = len(columns)
    for k in range(len(S)):
        for i in range(q):
            a = columns[i]
            start = a * D - a * (a + 1) // 2  # that of the products of column a, less a
            factor = kappa[k] * m[k, i]
            for j in range(i, q):
                B[k, i, j] = base[i, j] + S[k, start + columns[j]] - factor * m[k, j]
            B[k, i, i] += (grain - 1.0) * S[k, start + a] + weight[k] * rounding[i]
