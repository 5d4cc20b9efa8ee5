"""What first states and transitions say of the shares that their states have, and of merging two states.

Counts are ``counted`` (K + 1, K), first states and then the transitions from each state.
"""

import math

import numpy as np

from ._jit import jit as _jit
from .special import rise

_SMALLEST = 1e-300
_QUARTER = np.pi**2 / 12  # half the second derivative of log Gamma(1 + x) at 0


@_jit
def transition_bound(counted, m, alpha, kappa, first, slope):
    """Log probability of first states and transitions given shares, by Dirichlet-multinomials.

    counted : (K + 1, K) first states and transitions;  m : (K + 1,);  slope : (K + 1,) out, the gradient by log m
    """
    K = counted.shape[1]
    value = 0.0
    slope[:] = 0.0
    for j in range(K + 1):
        strength = first if j == 0 else alpha
        total = 0.0
        for k in range(K):
            share = strength * m[k]
            log, psi = rise(counted[j, k], max(share + kappa if k == j - 1 else share, _SMALLEST))
            value += log
            slope[k] += share * psi
            total += counted[j, k]
        value -= rise(total, first if j == 0 else alpha + kappa)[0]
    return value


@_jit
def spread_of_shares(m, alpha, kappa, half, shifted, first, spread, by_spread):
    """The coefficients s of the variances of shares in the bound (see `allocations.markov.HDPMarkovChain`).

    half : psi'(1 + kappa) / 2;  shifted : whether log Gamma(kappa + x) is replaced by log Gamma(1 + kappa + x) - log x
    m : (K + 1,);  spread, by_spread : (K + 1,) out, s and its derivative by log m
    """
    K = m.size - 1
    for k in range(K + 1):
        spread[k], by_spread[k] = 0.0, 0.0
        _add_curvature(K - 1.0 if k < K else K, alpha, m[k], _QUARTER, spread, by_spread, k)
        _add_curvature(1.0, first, m[k], _QUARTER, spread, by_spread, k)
        if k == K:
            continue
        _add_curvature(1.0, alpha, m[k], half, spread, by_spread, k)
        if not shifted:
            square = (alpha / kappa) ** 2
            r = alpha * m[k] / kappa
            curvature = _log_curvature(r)
            spread[k] += square * curvature
            by_spread[k] += square * ((1.0 / (1.0 + r)) ** 2 - 2.0 * curvature)


@_jit
def _add_curvature(many, strength, m, half, spread, by_spread, k):
    """Add s = many * half strength^2 / (1 + half strength m), and its derivative by log m."""
    part = half * strength * m
    s = many * half * strength * strength / (1.0 + part)
    spread[k] += s
    by_spread[k] -= s * part / (1.0 + part)


@_jit
def _log_curvature(r):
    """(log(1 + r) - r / (1 + r)) / r^2 for r >= 0."""
    if r > 0.02:
        return (math.log1p(r) - r / (1.0 + r)) / (r * r)
    return 1 / 2 - r * (2 / 3 - r * (3 / 4 - r * (4 / 5 - r * (5 / 6 - r * (6 / 7 - r * (7 / 8 - r * 8 / 9))))))


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
            drawn[k] += share * rise(counted[j, k], prior)[1]


@_jit
def draw_from_shares(counted, prior, uniform, drawn):
    """Draw how many first states and transitions of each kind were drawn from the prior, given how many there are.

    The nth of a kind is drawn from the prior with chance a / (a + n - 1), otherwise it repeats one before it: the tables of a
    Chinese restaurant of n guests.

    counted : (K + 1, K) in, whole numbers;  prior : (K + 1, K) in, pseudo-counts a
    uniform : in, as many random numbers as are counted;  drawn : (K + 1, K) out
    """
    place = 0
    for j in range(counted.shape[0]):
        for k in range(counted.shape[1]):
            a = prior[j, k]
            many = 0
            for n in range(int(counted[j, k])):
                many += uniform[place + n] * (a + n) < a
            drawn[j, k] = many
            place += int(counted[j, k])


@_jit
def _rise(count, prior):
    """Log Gamma(count + prior) - log Gamma(prior)."""
    return rise(count, max(prior, _SMALLEST))[0]


@_jit
def merge_gains(counted, m, alpha, kappa, first, a, b, pair, gains):
    """What merging states a[i] and b[i] adds to the log probability of first states and transitions.

    m : (K + 1,) shares;  a, b : (n,);  pair : (n,) share of the merged state;  gains : (n,) out
    """
    K = counted.shape[1]
    for i in range(a.size):
        p = a[i]
        q = b[i]
        gain = 0.0
        for j in range(K + 1):  # to the two states
            if j in (p + 1, q + 1):
                continue
            strength = first if j == 0 else alpha
            to_p = counted[j, p]
            to_q = counted[j, q]
            if to_p + to_q == 0.0:
                continue
            gain += _rise(to_p + to_q, strength * pair[i]) - _rise(to_p, strength * m[p]) - _rise(to_q, strength * m[q])
        stays = 0.0
        total_p = 0.0
        total_q = 0.0
        for k in range(K):  # from them
            from_p = counted[p + 1, k]
            from_q = counted[q + 1, k]
            prior = alpha * m[k]
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
