"""The bound of sticks and its gradient, for which the search for the best sticks asks often."""

import math

import numpy as np

from ._jit import jit as _jit
from .special import beyond_stirling, trigamma_times

_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_QUARTER = np.pi**2 / 12  # half the second derivative of log Gamma(1 + x) at 0


@_jit
def stick_weights(u, v, exponents, gamma, strengths, w, by_left, by_own):
    """The weights w (K,) of sticks, and by_left and by_own (K,), their derivatives by log h, h the length before, and logit u.

    See `allocations._sticks.stick_weight`.
    """
    left = 1.0
    later = exponents[-1]
    for k in range(u.size - 1, -1, -1):
        odds = v[k] / u[k]
        exponent = exponents[k]
        own = (1.0 + exponent) * odds
        others = (gamma + later) / odds
        w[k] = own + others
        by_own[k] = others - own
        later += exponent
    for k in range(u.size):
        bent = 0.0
        by_bent = 0.0
        for i in range(strengths.shape[0]):
            strength = strengths[i, 1]
            part = _QUARTER * strength * left
            term = 2.0 * strengths[i, 0] * strength * left * part / (1.0 + part)
            bent += term
            by_bent += term * (2.0 + part) / (1.0 + part)
        w[k] += bent
        by_left[k] = by_bent
        left *= v[k]


@_jit
def stick_bound(u, v, log_u, log_v, exponents, gamma, strengths, spread, by_spread, slope, gradient):
    """The terms that sticks add to the value of their means (see `allocations._sticks.stick_bound`).

    u, v, log_u, log_v : (K,) stick means, 1 - u, and logs
    strengths : (n, 2), a number of rows and their concentration
    spread, by_spread, slope : (K + 1,) s, and the derivatives of s and of the value of the means by log m
    gradient : (K,) out, by logit(u), that of the value of the means included
    """
    K = u.size
    head = np.empty(K + 1)  # mean and variance of prod (1 - u) of the sticks before
    loose = np.empty(K + 1)
    w = np.empty(K)
    by_left = np.empty(K)
    by_w = np.empty(K)
    by_own = np.empty(K)
    stick_weights(u, v, exponents, gamma, strengths, w, by_left, by_own)
    m = 1.0
    left = 0.0
    for k in range(K):
        head[k] = m
        loose[k] = left
        rest = v[k]
        variance = u[k] * rest / (w[k] + 1.0)
        left = left * (rest * rest + variance) + m * m * variance
        m *= rest
    value = K * math.log(gamma) - spread[K] * left
    later = exponents[K]
    after = slope[K] - by_spread[K] * left + 2.0 * spread[K] * m * m  # sums over the sticks after k, and the rest
    spread_after = spread[K] * (left + m * m)
    for k in range(K - 1, -1, -1):
        mean = u[k]
        rest = v[k]
        weight = w[k]
        s = spread[k]
        exponent = exponents[k]
        a = mean * weight
        b = rest * weight
        rest_a, psi_a = beyond_stirling(a)
        rest_b, psi_b = beyond_stirling(b)
        rest_w, psi_w = beyond_stirling(weight)
        t_a = trigamma_times(a)
        t_b = trigamma_times(b)
        t_w = trigamma_times(weight)
        for_u = 1.0 + exponent - a
        for_v = later + gamma - b
        value += 0.5 * (log_u[k] + log_v[k] - math.log(weight)) + _HALF_LOG_2_PI + rest_a + rest_b - rest_w
        value += (gamma - 1.0) * log_v[k] + for_u * (psi_a - psi_w) + for_v * (psi_b - psi_w)
        variance = mean * rest / (weight + 1.0)
        m = head[k] * mean
        left = loose[k] + head[k] * head[k]
        varies = loose[k] * (mean * mean + variance) + head[k] * head[k] * variance
        value -= s * varies
        square = varies + m * m  # E[beta_k^2]
        total = slope[k] - by_spread[k] * varies + 2.0 * s * m * m
        change = (1.0 - 2.0 * mean) / (weight + 1.0)
        share = spread_after / (rest + mean / (weight + 1.0))
        by_u = rest * (1.0 + for_u * t_a + total) - mean * (gamma + for_v * t_b + after)
        by_u -= s * left * (2.0 * mean + change) * mean * rest + (change - 2.0 * rest) * mean * share
        gradient[k] = by_u
        by_weight = (for_u * (t_a - t_w) + for_v * (t_b - t_w)) / weight
        by_w[k] = by_weight + (s * left * rest + share) * mean / ((weight + 1.0) * (weight + 1.0))
        later += exponent
        after += total
        spread_after += s * square
    through_w = 0.0
    for k in range(K - 1, -1, -1):
        gradient[k] += by_w[k] * by_own[k] - u[k] * through_w
        through_w += by_w[k] * by_left[k]
    return value


@_jit
def stick_merges(N, gamma, first, second, gains):
    """What sum_k log gamma - log(gamma + N_{>=k}) gains when clusters a = first[i] and b = second[i], a < b, become one.

    The cluster of a + b moves up to its place among decreasing counts, at p; of the N_{>=k} of the K - 1 clusters that are left
    those at k <= p stay as they were, from p on to a they are N_{>=k-1} - N_a - N_b, from there to b N_{>=k} - N_b, and
    behind N_{>=k+1}.

    N : (K,) in, decreasing;  first, second : (n,) in;  gains : (n,) out
    """
    K = N.size
    tails = np.empty(K)
    tail = 0.0
    for k in range(K - 1, -1, -1):
        tail += N[k]
        tails[k] = tail
    for i in range(first.size):
        a = first[i]
        b = second[i]
        size = N[a] + N[b]
        gain = math.log(gamma + tails[b]) - math.log(gamma)
        for k in range(a + 1, b):
            gain += math.log((gamma + tails[k]) / (gamma + max(tails[k] - N[b], 0.0)))
        k = a
        while k > 0 and N[k - 1] < size:
            gain += math.log((gamma + tails[k]) / (gamma + max(tails[k - 1] - size, 0.0)))
            k -= 1
        gains[i] = gain
