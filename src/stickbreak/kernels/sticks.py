"""The bound of sticks, and of the transitions that share them, with gradients: searches for the best sticks ask often."""

import numba
import numpy as np

from .special import digamma, log_gamma_and_digamma, trigamma

_jit = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})

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


@_jit
def transition_bound(counted, m, alpha, kappa, first, own, slope):
    """sum_jk log Gamma(theta_jk) less log Gamma of the prior's counts, of which those of a state to itself are own + alpha m.

    counted : (K + 1, K) first states and transitions;  m : (K + 1,);  slope : (K + 1,) out, the gradient by m
    """
    K = counted.shape[1]
    value = 0.0
    for k in range(K + 1):
        shared, by_shared = log_gamma_and_digamma(1.0 + alpha * m[k])
        begin, by_begin = log_gamma_and_digamma(1.0 + first * m[k])
        others = K - 1.0 if k < K else K
        value -= others * shared + begin
        slope[k] = -(others * alpha * by_shared + first * by_begin)
        if k < K:
            stay, by_stay = log_gamma_and_digamma(own + alpha * m[k])
            value -= stay
            slope[k] -= alpha * by_stay
    for j in range(K + 1):
        strength = first if j == 0 else alpha
        for k in range(K + 1):
            theta = (counted[j, k] if k < K else _SMALLEST) + strength * m[k]
            if k == j - 1:
                theta += kappa
            log_gamma, psi = log_gamma_and_digamma(theta)
            value += log_gamma
            slope[k] += strength * psi
    return value


@_jit
def drawn_from_shares(counted, m, alpha, kappa, first, drawn):
    """Expected number of first states and transitions to each state that were drawn from the shares (Teh et al. 2006), (K,)."""
    K = counted.shape[1]
    drawn[:] = 0.0
    for j in range(K + 1):
        strength = first if j == 0 else alpha
        for k in range(K):
            share = strength * m[k]
            prior = max(share + kappa if k == j - 1 else share, _SMALLEST)
            drawn[k] += share * (digamma(prior + counted[j, k]) - digamma(prior))
