"""The bound of sticks and its gradient, for which the search for the best sticks asks often."""

import numpy as np

from ._jit import jit as _jit
from .special import log_gamma_and_digamma, trigamma

_SMALLEST = 1e-300


@_jit
def stick_bound(u, v, exponents, spread, gamma, m, slope, gradient):
    """What sticks add to the value of their means, K log gamma apart (see `allocations._sticks.stick_bound`).

    u, v : (K,) stick means and 1 - u;  m, slope : (K + 1,) means of the shares, and the gradient of their value
    gradient : (K,) out, by logit(u), that of the value of the means included
    """
    K = u.size
    head, left = np.empty(K + 1), np.empty(K + 1)  # prod (1 - u), prod E[(1 - u)^2] of the sticks before
    head[0] = left[0] = 1.0
    w, later = np.empty(K), exponents[K]
    for k in range(K - 1, -1, -1):
        w[k] = exponents[k] + later + 1.0 + gamma
        later += exponents[k]
    for k in range(K):
        head[k + 1] = head[k] * v[k]
        left[k + 1] = left[k] * (v[k] * v[k] + u[k] * v[k] / (w[k] + 1.0))
    value = -spread[K] * (left[K] - m[K] * m[K])
    later = exponents[K]
    after = m[K] * (slope[K] + 2.0 * spread[K] * m[K])  # sums over the sticks after k, and the rest
    spread_after = spread[K] * left[K]
    for k in range(K - 1, -1, -1):
        a, b = u[k] * w[k], v[k] * w[k]
        (log_gamma_a, psi_a), (log_gamma_b, psi_b) = log_gamma_and_digamma(a), log_gamma_and_digamma(b)
        log_gamma_w, psi_w = log_gamma_and_digamma(w[k])
        for_u, for_v = 1.0 + exponents[k] - a, later + gamma - b
        value += log_gamma_a + log_gamma_b - log_gamma_w + for_u * (psi_a - psi_w) + for_v * (psi_b - psi_w)
        variance = u[k] * v[k] / (w[k] + 1.0)
        square = left[k] * (u[k] * u[k] + variance)  # E[beta_k^2]
        value -= spread[k] * (square - m[k] * m[k])
        total = slope[k] + 2.0 * spread[k] * m[k]
        change = (1.0 - 2.0 * u[k]) / (w[k] + 1.0)
        by_u = w[k] * (for_u * trigamma(a) - for_v * trigamma(b))
        by_u += head[k] * total - after / max(v[k], _SMALLEST)
        by_u -= spread[k] * left[k] * (2.0 * u[k] + change)
        by_u -= (change - 2.0 * v[k]) / (v[k] * v[k] + variance) * spread_after
        gradient[k] = by_u * u[k] * v[k]
        later += exponents[k]
        after += m[k] * total
        spread_after += spread[k] * square
    return value
