"""What first states and transitions say of the shares that their states have, and of merging two states.

Counts are ``counted`` (K + 1, K), first states and then the transitions from each state.
"""

import math

from ._jit import jit as _jit
from .special import digamma, log_gamma_and_digamma

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
    prior = max(prior, _SMALLEST)
    return math.lgamma(count + prior) - math.lgamma(prior) if count > 0.0 else 0.0


@_jit
def merge_gains(counted, m, alpha, kappa, first, a, b, pair, gains):
    """What merging states a[i] and b[i] adds to the log probability of first states and transitions.

    m : (K + 1,) shares;  a, b : (n,);  pair : (n,) share of the merged state;  gains : (n,) out
    """
    K = counted.shape[1]
    for i in range(a.size):
        p, q = a[i], b[i]
        gain = 0.0
        for j in range(K + 1):  # to the two states
            if j in (p + 1, q + 1):
                continue
            strength, to_p, to_q = first if j == 0 else alpha, counted[j, p], counted[j, q]
            if to_p + to_q == 0.0:
                continue
            gain += _rise(to_p + to_q, strength * pair[i]) - _rise(to_p, strength * m[p]) - _rise(to_q, strength * m[q])
        stays, total_p, total_q = 0.0, 0.0, 0.0
        for k in range(K):  # from them
            from_p, from_q, prior = counted[p + 1, k], counted[q + 1, k], alpha * m[k]
            if from_p + from_q == 0.0:
                continue
            total_p += from_p
            total_q += from_q
            gain -= _rise(from_p, prior + kappa if k == p else prior) + _rise(
                from_q, prior + kappa if k == q else prior
            )
            if k in (p, q):
                stays += from_p + from_q
            else:
                gain += _rise(from_p + from_q, prior)
        gain += _rise(stays, alpha * pair[i] + kappa) - _rise(total_p + total_q, alpha + kappa)
        gains[i] = gain + _rise(total_p, alpha + kappa) + _rise(total_q, alpha + kappa)
