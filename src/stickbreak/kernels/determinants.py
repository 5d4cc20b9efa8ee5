"""Log determinants of many small symmetric matrices that are sums of products, without keeping their factors.

A call of LAPACK costs more than the arithmetic of a matrix of a few dozen columns, and so do the sums that make the matrix.
"""

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from .lanes import LANES, eliminate, gather, log_product


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
    W = np.empty((D, D, LANES))
    share = np.empty((4, D, LANES))
    for first in range(0, n.size, LANES):
        lanes = min(LANES, n.size - first)
        gather(S, n, first, place, base, weight, rounding, W)
        eliminate(W, 0, M, share)
        for i in range(q):
            for j in range(i, q):
                for lane in range(lanes):
                    left[first + lane, i, j] = W[M + i, M + j, lane]
                for lane in range(LANES):
                    W[M + i, M + j, lane] += added[i, j]
        eliminate(W, M, D, share)
        for lane in range(lanes):
            out[first + lane, 0] = log_product(W, 0, M, lane)
            out[first + lane, 1] = log_product(W, M, D, lane)


@_jit
def log_determinants_left(left, added, out):
    """Log determinants of R_k + added, (K,), again for something else added; see `log_determinants`."""
    q = added.shape[0]
    W = np.empty((q, q, LANES))
    share = np.empty((4, q, LANES))
    for first in range(0, out.size, LANES):
        for i in range(q):
            for j in range(i, q):
                for lane in range(LANES):
                    W[i, j, lane] = left[min(first + lane, out.size - 1), i, j] + added[i, j]
        eliminate(W, 0, q, share)
        for lane in range(min(LANES, out.size - first)):
            out[first + lane] = log_product(W, 0, q, lane)


def gathered_reference(
    S: NDArray[np.floating],
    n: NDArray[np.floating],
    place: NDArray[np.integer],
    base: NDArray[np.floating],
    weight: NDArray[np.floating],
    rounding: NDArray[np.floating],
) -> NDArray[np.floating]:
    """The matrices J (K, D, D) of `log_determinants`."""
    J = np.column_stack([S, n])[:, place]
    diagonal = np.arange(len(base))
    J[:, diagonal, diagonal] = J[:, diagonal, diagonal] * weight + n[:, None] * rounding
    return np.asarray(J + base)


def log_determinants_reference(
    J: NDArray[np.floating], added: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """What `log_determinants` writes, and R in full."""
    M = J.shape[1] - len(added)
    A = J[:, :M, :M]
    B = J[:, M:, :M]
    left = J[:, M:, M:] - B @ np.linalg.solve(A, B.swapaxes(1, 2))
    return np.column_stack([np.linalg.slogdet(A)[1], np.linalg.slogdet(left + added)[1]]), left
