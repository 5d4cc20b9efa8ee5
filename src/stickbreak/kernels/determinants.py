"""Log determinants of many small symmetric matrices that are sums of products, without keeping their factors.

A call of LAPACK costs more than the arithmetic of a matrix of a few dozen columns, and so do the sums that make the matrix.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part


@_part
def _gather(S, n, place, base, weight, rounding, W):
    """Write the upper triangle of a matrix (see `log_determinants`) to W (D, D)."""
    D = base.shape[0]
    for i in range(D):
        for j in range(i, D):
            at = place[i, j]
            W[i, j] = base[i, j] + (S[at] if at < S.size else n)
        at = place[i, i]
        W[i, i] = base[i, i] + ((S[at] if at < S.size else n) * weight[i] + n * rounding[i])


@_part
def _eliminate(W, first, last, share):
    """Subtract from all rows what they have of rows ``first`` to ``last``, four at most; share : (4, D) for what this needs."""
    D = W.shape[0]
    for p in range(first, last):
        one = share[p - first]
        scale = 1.0 / W[p, p]
        for i in range(p + 1, D):
            one[i] = W[p, i] * scale
        for i in range(p + 1, last):
            factor = one[i]
            for j in range(i, D):
                W[i, j] -= factor * W[p, j]
    if last - first < 4:  # they are the last
        return
    w = W[first]
    x = W[first + 1]
    y = W[first + 2]
    z = W[first + 3]
    for i in range(last, D):
        a = share[0, i]
        b = share[1, i]
        c = share[2, i]
        d = share[3, i]
        row = W[i]
        for j in range(i, D):
            row[j] -= a * w[j] + b * x[j] + c * y[j] + d * z[j]


@_jit
def log_determinants(S, n, place, base, weight, rounding, M, out):
    """Log determinants of J_k, and of what is left of it once its first M columns are eliminated.

        J_kij = base_ij + [S_k, n_k][place_ij],   on the diagonal:   base_ii + weight_i [S_k, n_k][place_ii] + n_k rounding_i

    With J = [[A, B'], [B, C]] and A (M, M) these are log |A| and log |C - B A^-1 B'|.

    S : (K, F), n : (K,) in;  place : (D, D) in, symmetric, F for n;  base : (D, D) in, symmetric
    weight, rounding : (D,) in;  out : (K, 2) out, not finite where J_k is not positive definite
    """
    D = base.shape[0]
    W = np.empty((D, D))
    share = np.empty((4, D))
    for k in range(len(S)):
        _gather(S[k], n[k], place, base, weight, rounding, W)
        for first in range(0, D, 4):
            _eliminate(W, first, min(first + 4, D), share)
        before = 0.0
        after = 0.0
        for i in range(M):
            before += math.log(W[i, i])
        for i in range(M, D):
            after += math.log(W[i, i])
        out[k, 0] = before
        out[k, 1] = after


def log_determinants_reference(
    S: NDArray[np.floating],
    n: NDArray[np.floating],
    place: NDArray[np.integer],
    base: NDArray[np.floating],
    weight: NDArray[np.floating],
    rounding: NDArray[np.floating],
    M: int,
) -> NDArray[np.floating]:
    """What `log_determinants` writes."""
    J = np.column_stack([S, n])[:, place]
    diagonal = np.arange(len(base))
    J[:, diagonal, diagonal] = J[:, diagonal, diagonal] * weight + n[:, None] * rounding
    J += base
    first = np.linalg.slogdet(J[:, :M, :M])[1]
    return np.column_stack([first, np.linalg.slogdet(J)[1] - first])
