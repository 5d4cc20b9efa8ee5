"""The sticks of a Markov chain with the highest bound: the search in one loop, since every lap asks for several."""

import math

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part
from .sticks import stick_bound
from .transitions import spread_of_shares, transition_bound

_SMALLEST = 1e-100  # of a stick mean, so that its weight and the square of that are numbers
_LEAST_SHARE = 1e-300
_KEPT = 10  # of the last steps, which tell the curvature
_MOST_STEPS = 200
_MOST_TRIES = 20  # of the length of a step
_FLAT = 1e-5  # slope by each variable at which the search ends
_ENOUGH = 1e-3  # share of the first slope, times its length, that a step gains at least
_STEEP = 0.9  # share of the first slope that may be left at its end
_SHORTER, _LONGER = 0.1, 4.0  # the least and the largest factor by which the length of a step changes


@_jit
def chain_bound(x, counted, alpha, kappa, first, exponents, gamma, strengths, curvatures, ratio, gradient):
    """The part of the bound of a chain that depends on its sticks (see `allocations.markov.HDPMarkovChain`).

    x : (K,) in, logits of stick means;  counted : (K + 1, K) in, first states and transitions
    exponents : (K + 1,), strengths : (2, 2), curvatures : (3, 4), ratio : see `stick_bound` and `spread_of_shares`
    gradient : (K,) out, by x
    """
    K = x.size
    u = np.empty(K)
    v = np.empty(K)
    log_u = np.empty(K)
    log_v = np.empty(K)
    m = np.empty(K + 1)
    slope = np.empty(K + 1)
    spread = np.empty(K + 1)
    by_spread = np.empty(K + 1)
    left = 1.0
    for k in range(K):
        away = math.exp(-abs(x[k]))
        near = math.log1p(away)
        log_u[k] = min(x[k], 0.0) - near
        log_v[k] = -max(x[k], 0.0) - near
        large = 1.0 / (1.0 + away)
        small = max(away / (1.0 + away), _SMALLEST)
        u[k] = large if x[k] > 0.0 else small
        v[k] = small if x[k] > 0.0 else large
        m[k] = u[k] * left
        left *= v[k]
    m[K] = left
    value = transition_bound(counted, m, alpha, kappa, first, slope)
    spread_of_shares(m, curvatures, ratio, spread, by_spread)
    if ratio == 0.0 and kappa > 0.0:
        for k in range(K):
            own = alpha * max(m[k], _LEAST_SHARE)
            value -= math.log1p(kappa / own)
            slope[k] += kappa / (own + kappa)
    return value + stick_bound(u, v, log_u, log_v, exponents, gamma, strengths, spread, by_spread, slope, gradient)


@_jit
def best_chain_sticks(x, scale, least, counted, alpha, kappa, first, exponents, gamma, strengths, curvatures, ratio):
    """The highest bound that L-BFGS finds from x (K,) on, in and out: logits of stick means (Nocedal and Wright, Alg. 7.5).

    scale : (K,) in, of the variables in which all curvatures are about one;  least : gain of a step with which the search ends
    The others are those of `chain_bound`.
    """
    K = x.size
    chain = counted, alpha, kappa, first, exponents, gamma, strengths, curvatures, ratio
    gradient = np.empty(K)
    ahead = np.empty(K)
    tried = np.empty(K)
    step = np.empty(K)
    steps = np.empty((_KEPT, K))
    changes = np.empty((_KEPT, K))
    weights = np.empty(_KEPT)
    known = 0
    value = _scaled_bound(x, scale, chain, gradient)
    for _ in range(_MOST_STEPS):
        if not _steepest(gradient) > _FLAT:
            break
        slope = _direct(gradient, steps, changes, weights, known, step)
        if not slope > 0.0:
            known = 0
            slope = _direct(gradient, steps, changes, weights, known, step)
        length = 1.0 if known > 0 else min(1.0, 1.0 / math.sqrt(slope))
        found = _searched(x, scale, chain, value, slope, length, step, tried, ahead)
        if not found > value:
            break
        told = _remember(x, scale, tried, gradient, ahead, known % _KEPT, steps, changes, weights)
        known = known + 1 if told else 0  # a step that tells nothing has taken the place of the oldest
        gained = found - value
        value = found
        if gained <= least:
            break
    return value


@_part
def _scaled_bound(x, scale, chain, gradient):
    """The bound, and its gradient by x / scale."""
    counted, alpha, kappa, first, exponents, gamma, strengths, curvatures, ratio = chain
    value = chain_bound(x, counted, alpha, kappa, first, exponents, gamma, strengths, curvatures, ratio, gradient)
    for k in range(x.size):
        gradient[k] *= scale[k]
    return value


@_part
def _searched(x, scale, chain, value, slope, length, step, tried, ahead):
    """The bound after a step that is long enough and gains enough (the Wolfe conditions), or else no more than ``value``.

    length : the first that is tried;  tried, ahead : (K,) out, where the step ends, and the gradient there
    """
    longest = 0.0  # that gains enough
    for _ in range(_MOST_TRIES):
        for k in range(x.size):
            tried[k] = x[k] + scale[k] * length * step[k]
        found = _scaled_bound(tried, scale, chain, ahead)
        gain = found - value
        if gain >= _ENOUGH * length * slope:
            if length <= longest or _product(ahead, step) <= _STEEP * slope:
                return found
            longest = length
            length *= _LONGER
        elif longest > 0.0:
            length = longest
        else:
            bent = length * slope - gain  # of the parabola through both values and the first slope
            share = 0.5 * length * slope / bent if math.isfinite(bent) and bent > 0.0 else 0.0
            length *= min(max(share, _SHORTER), 0.5)
    return value


@_part
def _remember(x, scale, tried, gradient, ahead, place, steps, changes, weights):
    """Take a step, keep it and how the gradient has changed, and say whether these tell a curvature."""
    for k in range(x.size):
        steps[place, k] = (tried[k] - x[k]) / scale[k]
        changes[place, k] = gradient[k] - ahead[k]
        gradient[k] = ahead[k]
        x[k] = tried[k]
    curvature = _product(steps[place], changes[place])
    told = curvature > 0.0
    weights[place] = 1.0 / curvature if told else 0.0
    return told


@_part
def _direct(gradient, steps, changes, weights, known, step):
    """Set the direction ``step`` (K,) that the last steps suggest, by two loops over them, and return the slope along it."""
    share = np.empty(_KEPT)
    first = max(0, known - _KEPT)
    for k in range(step.size):
        step[k] = gradient[k]
    for i in range(known - 1, first - 1, -1):
        place = i % _KEPT
        share[place] = weights[place] * _product(steps[place], step)
        _add(step, -share[place], changes[place])
    if known > 0:
        place = (known - 1) % _KEPT
        factor = 1.0 / (weights[place] * _product(changes[place], changes[place]))
        _add(step, factor - 1.0, step)
    for i in range(first, known):
        place = i % _KEPT
        _add(step, share[place] - weights[place] * _product(changes[place], step), steps[place])
    return _product(gradient, step)


@_part
def _add(a, factor, b):
    """Add ``factor`` times b to a."""
    for k in range(a.size):
        a[k] += factor * b[k]


@_part
def _product(a, b):
    """The inner product."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@_part
def _steepest(gradient):
    """The size of the largest slope."""
    largest = 0.0
    for k in range(gradient.size):
        largest = max(largest, abs(gradient[k]))
    return largest
