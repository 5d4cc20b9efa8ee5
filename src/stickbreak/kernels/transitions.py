"""What first states and transitions say of the shares that their states have, and of merging two states.

Counts are ``counted`` (K + 1, K), first states and then the transitions from each state.
"""

import math

import numba

from .special import digamma, log_gamma_and_digamma

_jit = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})

_SMALLEST = 1e-300


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


@_jit
def _rise(count, prior):
    """Log Gamma(count + prior) - log Gamma(prior)."""
    return math.lgamma(count + prior) - math.lgamma(prior) if count > 0.0 else 0.0


@_jit
def merge_gains(counted, prior, a, b, pair, kappa, strength, gains):
    """What merging states a[i] and b[i] adds to the log probability of first states and transitions.

    prior : (K + 1, K) pseudo-counts;  a, b : (n,);  pair : (2, n) pseudo-counts of first states and of transitions to the
    merged state, without kappa;  strength : sum of the pseudo-counts of the transitions from a state;  gains : (n,) out
    """
    K = counted.shape[1]
    for i in range(a.size):
        first, second = a[i], b[i]
        gain = 0.0
        for j in range(K + 1):  # to the two states
            if j in (first + 1, second + 1):
                continue
            to_first, to_second = counted[j, first], counted[j, second]
            gain += _rise(to_first + to_second, pair[0 if j == 0 else 1, i])
            gain -= _rise(to_first, prior[j, first]) + _rise(to_second, prior[j, second])
        stays, total_first, total_second = 0.0, 0.0, 0.0
        for k in range(K):  # from them
            from_first, from_second = counted[first + 1, k], counted[second + 1, k]
            total_first += from_first
            total_second += from_second
            gain -= _rise(from_first, prior[first + 1, k]) + _rise(from_second, prior[second + 1, k])
            if k in (first, second):
                stays += from_first + from_second
            else:
                gain += _rise(from_first + from_second, prior[first + 1, k])
        gain += _rise(stays, pair[1, i] + kappa) - _rise(total_first + total_second, strength)
        gains[i] = gain + _rise(total_first, strength) + _rise(total_second, strength)
