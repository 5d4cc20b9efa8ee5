"""What first states and transitions say of the shares that their states have.

Counts are ``counted`` (K + 1, K), first states and then the transitions from each state.
"""

import math

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .special import log_gamma, log_gamma_beside, rise

_SMALLEST = 1e-300
_MANY = 1e-3  # transitions, at least, and pseudo-counts below
_SMALL = 10.0  # this, for which log Gamma(prior + count) - log Gamma(prior) is the difference of two numbers that are not large
_NOTHING = 1e-18  # of a pseudo-count, or of one: fewer transitions, as of states that hardly meet, change no sum


@_jit
def transition_bound(counted, m, alpha, kappa, first, slope):
    """Log probability of first states and transitions given shares, by Dirichlet-multinomials.

    counted : (K + 1, K) first states and transitions;  m : (K + 1,);  slope : (K + 1,) out, the gradient by log m
    """
    K = counted.shape[1]
    value = 0.0
    log = np.empty(K)  # of Gamma(alpha m), which the transitions from all other states share
    psi = np.empty(K)
    for k in range(K + 1):
        slope[k] = 0.0
    for k in range(K):
        log[k], psi[k] = log_gamma(max(alpha * m[k], _SMALLEST))
    for j in range(K + 1):
        strength = first if j == 0 else alpha
        total = 0.0
        for k in range(K):
            share = strength * m[k]
            count = counted[j, k]
            total += count
            prior = max(share + kappa if k == j - 1 else share, _SMALLEST)
            if count <= _NOTHING * prior and count <= _NOTHING:
                continue
            if j > 0 and k != j - 1 and count > _MANY and prior < _SMALL:
                above, by_above = log_gamma(prior + count)
                value += above - log[k]
                slope[k] += share * (by_above - psi[k])
                continue
            gain, by_prior = rise(count, prior)
            value += gain
            slope[k] += share * by_prior
        value -= rise(total, first if j == 0 else alpha + kappa)[0]
    return value


@_jit
def transition_merges(counted, m, alpha, kappa, first, a, b, merged, gains):
    """What merging states a[i] and b[i] adds to the log probability of first states and transitions given shares, (n,).

        log p = sum_j { sum_k log Gamma(M_jk + alpha_j m_k + kappa [k = j]) / Gamma(alpha_j m_k + kappa [k = j])
                        - log Gamma(M_j. + alpha_j + kappa) / Gamma(alpha_j + kappa) },    j = 0: first states, without kappa

    Only columns a and b, and rows a and b, change.

    counted : M (K + 1, K), in: first states and then the transitions from each state
    m : (K + 1,) in: shares;  a, b : (n,) in;  merged : (n,) in: the share of the merged state;  gains : (n,) out
    """
    K = counted.shape[1]
    into = np.empty((K, K + 1))  # columns of M
    columns = np.empty((K, K + 1))  # of log p, without kappa
    log = np.empty(K)  # of Gamma(alpha m), which the transitions from all other states share
    rows = np.empty(K)
    total = np.empty(K)
    known = np.zeros(K, np.bool_)
    whole = alpha + kappa
    for k in range(K):
        log[k] = _log_gamma(alpha * m[k])
    for i in range(a.size):
        x = a[i]
        y = b[i]
        for k in (x, y):
            if not known[k]:
                known[k] = True
                _alone(counted, m, alpha, kappa, first, k, log, into, columns, rows, total)
        gain = -rows[x] - rows[y]
        share = merged[i]
        below = _log_gamma(alpha * share)
        inside = counted[x + 1, x] + counted[y + 1, y] + counted[x + 1, y] + counted[y + 1, x]
        gain += _gamma_rise(inside, alpha * share + kappa) - _gamma_rise(total[x] + total[y], whole)
        count = into[x, 0] + into[y, 0]
        if count > 0.0:
            gain += _gamma_rise(count, first * share) - columns[x, 0] - columns[y, 0]
        for j in range(1, K + 1):
            count = into[x, j] + into[y, j]
            if count > 0.0 and j not in (x + 1, y + 1):
                gain += _rise_from(count, alpha * share, below) - columns[x, j] - columns[y, j]
        for k in range(K):
            count = counted[x + 1, k] + counted[y + 1, k]
            if count > 0.0 and k not in (x, y):
                gain += _rise_from(count, alpha * m[k], log[k])
        gains[i] = gain


@_part
def _alone(counted, m, alpha, kappa, first, k, log, into, columns, rows, total):
    """Column k of the terms of log p without kappa, row k of log p, and the transitions from k."""
    K = counted.shape[1]
    into[k, 0] = counted[0, k]
    columns[k, 0] = _gamma_rise(counted[0, k], first * m[k])
    for j in range(1, K + 1):
        into[k, j] = counted[j, k]
        columns[k, j] = _rise_from(counted[j, k], alpha * m[k], log[k])
    count = 0.0
    row = 0.0
    for i in range(K):
        count += counted[k + 1, i]
        if i != k:
            row += _rise_from(counted[k + 1, i], alpha * m[i], log[i])
    total[k] = count
    rows[k] = row + _gamma_rise(counted[k + 1, k], alpha * m[k] + kappa) - _gamma_rise(count, alpha + kappa)


@_part
def _gamma_rise(count, prior):
    """Log Gamma(prior + count) - log Gamma(prior)."""
    if count == 0.0:
        return 0.0
    return rise(count, max(prior, _SMALLEST))[0]


@_part
def _log_gamma(x):
    """Log Gamma(x) for x that may be zero."""
    log, product = log_gamma_beside(max(x, _SMALLEST))
    return log - math.log(product)


@_part
def _rise_from(count, prior, below):
    """`_gamma_rise` where log Gamma(prior) is ``below``; to the rounding of that where it is not large."""
    prior = max(prior, _SMALLEST)
    if count <= _NOTHING * prior and count <= _NOTHING:
        return 0.0
    if prior < _SMALL:
        return _log_gamma(prior + count) - below
    return rise(count, prior)[0]


@_jit
def spread_of_shares(m, curvatures, ratio, spread, by_spread):
    """The coefficients s of the variances of shares in the bound (see `allocations.markov.HDPMarkovChain`).

    s_k = sum_i n_i h_i a_i^2 / (1 + h_i a_i m_k),  and a term for kappa and alpha m_k together

    curvatures : (n, 4) for each kind of rows how many follow the share of a state and of the rest, n, their strength a, and h
    ratio : alpha / kappa;  0 where log Gamma(kappa + x) is replaced by log Gamma(1 + kappa + x) - log x
    m : (K + 1,);  spread, by_spread : (K + 1,) out, s and its derivative by log m
    """
    K = m.size - 1
    for k in range(K + 1):
        share = m[k]
        s = 0.0
        slope = 0.0
        for i in range(curvatures.shape[0]):
            strength = curvatures[i, 2]
            bent = curvatures[i, 3] * strength
            part = bent * share
            term = curvatures[i, 0 if k < K else 1] * bent * strength / (1.0 + part)
            s += term
            slope -= term * part / (1.0 + part)
        if k < K and ratio > 0.0:
            r = ratio * share
            curvature = ratio * ratio * _log_curvature(r)
            rest = ratio / (1.0 + r)
            s += curvature
            slope += rest * rest - 2.0 * curvature
        spread[k] = s
        by_spread[k] = slope


@_part
def _log_curvature(r):
    """(log(1 + r) - r / (1 + r)) / r^2 for r >= 0."""
    if r > 0.02:
        return (math.log1p(r) - r / (1.0 + r)) / (r * r)
    return 1 / 2 - r * (2 / 3 - r * (3 / 4 - r * (4 / 5 - r * (5 / 6 - r * (6 / 7 - r * (7 / 8 - r * 8 / 9))))))


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
