"""What first states and transitions say of the shares that their states have.

Counts are ``counted`` (K + 1, K), first states and then the transitions from each state.
"""

import math

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .special import log_gamma, rise

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
    log, psi = np.empty((2, K))  # of Gamma(alpha m), which the transitions from all other states share
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
