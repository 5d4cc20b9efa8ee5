"""Latent scales of rows: Student's t as a Gaussian of precision u Lambda, with u ~ Gamma(nu / 2, nu / 2).

`integrate_scales_reference` and `add_scales_reference` are the plain NumPy statements of the two kernels.
"""

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit

Array = NDArray[np.floating]

FARTHEST = 1e300  # the largest expected square: larger ones, and those that are not numbers, count as this
FARTHEST_SINGLE = 1e30  # in float32, where larger ones are refused


@_jit
def integrate_scales(C, shift, tails, shape, offset, exact, U):
    """Integrate the scales out of scores, and find their posterior means.

    With delta = E[(x - mu)' Lambda (x - mu)] = 2 (shift - C) and a = shape,
    q(u) = Gamma(a, (nu + delta) / 2),   E[u] = 2 a / (nu + delta),   C <- offset - a log(1 + delta / nu)

    C : (n, K) in: scores at u = 1, less what a cluster has in common for all rows; out: the same with u integrated out
    tails : nu;  shape : a
    exact : whether scores beyond the range of numbers are taken for the largest; otherwise they are refused
    U : (n, K) out: E[u]
    returns : whether no score was refused; the outputs are otherwise incomplete
    """
    n, K = C.shape
    farthest = FARTHEST if exact else FARTHEST_SINGLE
    for i in range(n):
        for k in range(K):
            delta = 2.0 * (shift - np.float64(C[i, k]))
            if not abs(delta) < farthest:
                if not exact:
                    return False
                delta = farthest
            delta = max(delta, 0.0)
            C[i, k] = offset - shape * np.log1p(delta / tails)
            U[i, k] = 2.0 * shape / (tails + delta)
    return True


def integrate_scales_reference(
    C: Array, shift: float, tails: float, shape: float, offset: float
) -> tuple[Array, Array]:
    """The new scores and E[u] of `integrate_scales`, (n, K) each."""
    delta = np.clip(np.nan_to_num(2.0 * (shift - C), nan=FARTHEST), 0.0, FARTHEST)
    return offset - shape * np.log1p(delta / tails), 2.0 * shape / (tails + delta)


@_jit
def add_scales(indptr, indices, values, weights, U, likely, entropy, S):
    """Add what the scales of rows say to the last two statistics.

    S[k, -2] += sum_n w_n r_nk (log u - u + likely),   S[k, -1] += sum_n w_n r_nk (log u + entropy)   with u = E[u_nk]

    weights : (n,) in;  U : (n, K) in: E[u];  S : (K, F) in and out, float64
    """
    F = S.shape[1]
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            k = indices[p]
            r = weights[i] * np.float64(values[p])
            u = np.float64(U[i, k])
            log_u = np.log(u)
            S[k, F - 2] += r * (log_u - u + likely)
            S[k, F - 1] += r * (log_u + entropy)


def add_scales_reference(R: Array, weights: Array, U: Array, likely: float, entropy: float) -> Array:
    """What `add_scales` adds to the last two statistics for dense responsibilities R (n, K), (K, 2)."""
    wR = weights[:, None] * R
    log_u = np.log(U)
    return np.stack([(wR * (log_u - U + likely)).sum(axis=0), (wR * (log_u + entropy)).sum(axis=0)], axis=1)
