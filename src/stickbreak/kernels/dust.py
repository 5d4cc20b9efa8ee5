"""Bits of rows: 1 where a row is from the family of its cluster, 0 where it is background.

`integrate_bits_reference` and `add_bits_reference` are the plain NumPy statements of the two kernels.
"""

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit

Array = NDArray[np.floating]

FARTHEST = 1e300  # the largest log odds: larger ones count as this, and those that are not numbers as background
FARTHEST_SINGLE = 1e30  # in float32, where lower ones are refused


@_jit
def integrate_bits(C, most, exact, U):
    """Integrate bits t out of their log odds, and find their posterior means.

    E[t] = 1 / (1 + exp(-C)),   C <- log(1 + exp(C))

    C : (n, K) in: log odds of t = 1; out: the log of what the odds have in all
    most : the largest log odds that are taken as they are
    exact : whether log odds beyond the range of numbers are taken for the largest; otherwise they are refused
    U : (n, K) out: E[t]
    returns : whether no log odds were refused; the outputs are otherwise incomplete
    """
    n, K = C.shape
    for i in range(n):
        for k in range(K):
            odds = np.float64(C[i, k])
            if not -FARTHEST_SINGLE < odds <= most:
                if not exact:
                    return False
                odds = np.float64(min(max(odds, -FARTHEST), FARTHEST) if odds == odds else -FARTHEST)
            small = np.exp(-abs(odds))
            C[i, k] = max(odds, 0.0) + np.log1p(small)
            U[i, k] = (1.0 if odds >= 0.0 else small) / (1.0 + small)
    return True


def integrate_bits_reference(C: Array) -> tuple[Array, Array]:
    """The new scores and E[t] of `integrate_bits`, (n, K) each."""
    odds = np.clip(np.nan_to_num(C, nan=-FARTHEST, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)
    return np.logaddexp(0.0, odds), np.exp(-np.logaddexp(0.0, -odds))


@_jit
def add_bits(indptr, indices, values, weights, U, S):
    """Add the entropies of the bits of rows to the last statistic.

    S[k, -1] -= sum_n w_n r_nk (u log u + (1 - u) log(1 - u))   with u = E[t_nk]

    weights : (n,) in;  U : (n, K) in: E[t];  S : (K, F) in and out, float64
    """
    F = S.shape[1]
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            k = indices[p]
            u = np.float64(U[i, k])
            if 0.0 < u < 1.0:
                S[k, F - 1] -= weights[i] * np.float64(values[p]) * (u * np.log(u) + (1.0 - u) * np.log1p(-u))


def add_bits_reference(R: Array, weights: Array, U: Array) -> Array:
    """What `add_bits` adds to the last statistic for dense responsibilities R (n, K), (K,)."""
    certain = (U <= 0.0) | (U >= 1.0)
    u = np.where(certain, 0.5, U)
    entropies = np.where(certain, 0.0, -u * np.log(u) - (1.0 - u) * np.log(1.0 - u))
    return np.asarray((weights[:, None] * R * entropies).sum(axis=0))
