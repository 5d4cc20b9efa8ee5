"""Log determinants of many small symmetric matrices that are sums of products, without keeping their factors.

A call of LAPACK costs more than the arithmetic of a matrix of a few dozen columns, and so do the sums that make the matrix.
Rows of such matrices are short, so several matrices go together: elements of W (D, D, lanes) that are side by side are of
one place in one matrix each.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part
from ._jit import part_apart as _part_apart

_LANES = 4


@_part_apart
def _gather(S, n, first, place, base, weight, rounding, W):
    """Write upper triangles of matrices (see `log_determinants`) from ``first`` on to W, the last again in lanes to spare."""
    D = base.shape[0]
    last = n.size - 1
    for i in range(D):
        for j in range(i, D):
            at = place[i, j]
            is_count = at == S.shape[1]
            times = weight[i] if i == j else 1.0
            rounded = rounding[i] if i == j else 0.0
            for lane in range(_LANES):
                k = min(first + lane, last)
                W[i, j, lane] = base[i, j] + ((n[k] if is_count else S[k, at]) * times + n[k] * rounded)


@_part_apart
def _divided(row, share):
    """Set ``share`` (m, lanes) to a row divided by its first element."""
    for j in range(len(row) - 1, -1, -1):
        for lane in range(_LANES):
            share[j, lane] = row[j, lane] / row[0, lane]


@_part_apart
def _subtract(row, share, one):
    """Subtract from a row (m, lanes) its share (lanes,) of another."""
    for j in range(len(row)):
        for lane in range(_LANES):
            row[j, lane] -= share[lane] * one[j, lane]


@_part_apart
def _subtract_four(row, a, b, c, d, w, x, y, z):
    """Subtract from a row (m, lanes) its shares (lanes,) of four others."""
    for j in range(len(row)):
        for lane in range(_LANES):
            of_first = a[lane] * w[j, lane] + b[lane] * x[j, lane]
            row[j, lane] -= of_first + c[lane] * y[j, lane] + d[lane] * z[j, lane]


@_part
def _eliminate(W, first, last, share):
    """Subtract from the rows of W after them what they have of rows ``first`` to ``last``.

    share : (4, D, lanes) for what this needs
    """
    D = W.shape[0]
    for p in range(first, last, 4):
        end = min(p + 4, last)
        for i in range(p, end):
            _divided(W[i, i:], share[i - p, i:])
            for j in range(i + 1, D if end - p < 4 else end):
                _subtract(W[j, j:], share[i - p, j], W[i, j:])
        if end - p == 4:
            for j in range(end, D):
                a, b, c, d = share[0, j], share[1, j], share[2, j], share[3, j]
                _subtract_four(W[j, j:], a, b, c, d, W[p, j:], W[p + 1, j:], W[p + 2, j:], W[p + 3, j:])


@_part
def _log_product(W, first, last, lane):
    """The sum of the logarithms of diagonal elements of one matrix."""
    total = 0.0
    for i in range(first, last):
        total += math.log(W[i, i, lane])
    return total


@_jit
def log_determinants(S, n, place, base, weight, rounding, added, out, left):
    """Log determinants of a part of J_k, and of what is left of J_k, and something ``added``, once that part is eliminated.

        J_kij = base_ij + [S_k, n_k][place_ij],   on the diagonal:   base_ii + weight_i [S_k, n_k][place_ii] + n_k rounding_i

    With J = [[A, B'], [B, C]] these are log |A| and log |R + added|, R = C - B A^-1 B'.

    S : (K, F), n : (K,) in;  place : (D, D) in, symmetric, F for n;  base : (D, D) in, symmetric;  weight, rounding : (D,) in
    added : (q, q) in, symmetric;  out : (K, 2) out, not finite where the matrices are not positive definite
    left : (K, q, q) out, the upper triangle of R
    """
    D = base.shape[0]
    q = added.shape[0]
    M = D - q
    W = np.empty((D, D, _LANES))
    share = np.empty((4, D, _LANES))
    for first in range(0, n.size, _LANES):
        lanes = min(_LANES, n.size - first)
        _gather(S, n, first, place, base, weight, rounding, W)
        _eliminate(W, 0, M, share)
        for i in range(q):
            for j in range(i, q):
                for lane in range(lanes):
                    left[first + lane, i, j] = W[M + i, M + j, lane]
                for lane in range(_LANES):
                    W[M + i, M + j, lane] += added[i, j]
        _eliminate(W, M, D, share)
        for lane in range(lanes):
            out[first + lane, 0] = _log_product(W, 0, M, lane)
            out[first + lane, 1] = _log_product(W, M, D, lane)


@_jit
def log_determinants_left(left, added, out):
    """Log determinants of R_k + added, (K,), again for something else added; see `log_determinants`."""
    q = added.shape[0]
    W = np.empty((q, q, _LANES))
    share = np.empty((4, q, _LANES))
    for first in range(0, out.size, _LANES):
        for i in range(q):
            for j in range(i, q):
                for lane in range(_LANES):
                    W[i, j, lane] = left[min(first + lane, out.size - 1), i, j] + added[i, j]
        _eliminate(W, 0, q, share)
        for lane in range(min(_LANES, out.size - first)):
            out[first + lane] = _log_product(W, 0, q, lane)


def log_determinants_reference(
    S: NDArray[np.floating],
    n: NDArray[np.floating],
    place: NDArray[np.integer],
    base: NDArray[np.floating],
    weight: NDArray[np.floating],
    rounding: NDArray[np.floating],
    added: NDArray[np.floating],
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """What `log_determinants` writes, and R in full."""
    J = np.column_stack([S, n])[:, place]
    diagonal = np.arange(len(base))
    J[:, diagonal, diagonal] = J[:, diagonal, diagonal] * weight + n[:, None] * rounding
    J += base
    M = len(base) - len(added)
    A = J[:, :M, :M]
    B = J[:, M:, :M]
    left = J[:, M:, M:] - B @ np.linalg.solve(A, B.swapaxes(1, 2))
    return np.column_stack([np.linalg.slogdet(A)[1], np.linalg.slogdet(left + added)[1]]), left
