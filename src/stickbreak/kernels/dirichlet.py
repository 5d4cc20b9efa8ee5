"""The best log-normal q(alpha) of the parameters of Dirichlet distributions, given sums of the logarithms of their rows.

`objective` is the plain NumPy statement of what the kernel `best_shapes` maximises.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ._jit import jit as _jit
from .special import beyond_stirling, trigamma_times
from .vectors import put

Array = NDArray[np.floating]

_MOST_STEPS = 100
_SETTLED = 1e-12  # nats for each row that the next Newton step may gain when it is the last
_LONGEST = 2.0  # the largest change of log alpha in a step
_HALVINGS = 30
_ROUNDING = 1e-13  # of the objective, by which it may fall in a step
_LOG_TWO_PI = math.log(2.0 * math.pi)


@_jit
def _spreads(count, y, median, variance, s):
    """The best variances s (D,) of log alpha for E[alpha] = exp(y): the positive roots of

    s^2 / (2 variance) + b s - 1 = 0   with b = count (exp(y) + 1) + (1 - (y - median)) / variance
    """
    for d in range(y.size):
        b = count * (math.exp(y[d]) + 1.0) + (1.0 - (y[d] - median[d])) / variance
        root = math.sqrt(b * b + 2.0 / variance)
        s[d] = 2.0 / (b + root) if b > 0.0 else variance * (root - b)


@_jit
def _value(count, sums, y, s, median, variance):
    """`objective`, with the large terms of log Gamma cancelled by hand."""
    total = 0.0
    for d in range(y.size):
        total += math.exp(y[d])
    log_total = math.log(total)
    value = count * (beyond_stirling(total)[0] - 0.5 * log_total - 0.5 * (y.size - 1) * _LOG_TWO_PI)
    for d in range(y.size):
        m = math.exp(y[d])
        value += m * (sums[d] - count * (y[d] - log_total))
        value += count * (0.5 * y[d] - beyond_stirling(m)[0] - 0.5 * (m + 1.0) * s[d])
        away = y[d] - 0.5 * s[d] - median[d]
        ratio = s[d] / variance
        value -= 0.5 * (away * away / variance + ratio - 1.0 - math.log(ratio))
    return value


@_jit
def _newton(count, sums, y, s, median, variance, step, q):
    """The Newton step (D,) of `_value` over y, where s is the best for each y; returns what it promises, twice its gain.

    The Hessian is a diagonal and one product, H = c m m' - diag(q), so that the step takes O(D).  Where it is not negative
    definite, the likelihood counts by its Fisher information.

    q : (D,) scratch
    """
    D = y.size
    total = 0.0
    for d in range(D):
        total += math.exp(y[d])
    log_total = math.log(total)
    psi_total = beyond_stirling(total)[1]
    c = count * (trigamma_times(total) + 1.0) / total
    for fisher in range(2):
        lowest = 1.0
        share = 0.0
        for d in range(D):
            m = math.exp(y[d])
            pull = m * (sums[d] - count * (y[d] - log_total + beyond_stirling(m)[1] - psi_total + 0.5 * s[d]))
            step[d] = pull - (y[d] - 0.5 * s[d] - median[d]) / variance
            q[d] = count * m * (trigamma_times(m) + 1.0) + 1.0 / variance
            if fisher == 0:
                cross = 0.5 / variance - 0.5 * count * m
                q[d] -= pull + cross * cross / (0.25 / variance + 0.5 / (s[d] * s[d]))
            lowest = min(lowest, q[d])
            share += c * m * m / q[d]
        if lowest > 0.0 and share < 1.0:
            break
    along = 0.0
    for d in range(D):
        along += math.exp(y[d]) * step[d] / q[d]
    factor = c * along / max(1.0 - share, 1e-300)
    gain = 0.0
    longest = 0.0
    for d in range(D):
        slope = step[d]
        moved = (slope + factor * math.exp(y[d])) / q[d]
        gain += slope * moved
        longest = max(longest, abs(moved))
        step[d] = moved
    if longest > _LONGEST:
        for d in range(D):
            step[d] *= _LONGEST / longest
    return gain


@_jit
def _begin(count, sums, median, variance, y):
    """A first y (D,): between the prior and the Dirichlet distribution whose geometric means are those of the rows."""
    D = y.size
    highest = -np.inf
    for d in range(D):
        highest = max(highest, sums[d] / count)
    within = 0.0
    for d in range(D):
        within += math.exp(sums[d] / count - highest)
    log_within = math.log(within) + highest  # of the sum of the geometric means, which is short of 1
    short = max(-math.expm1(min(log_within, 0.0)), 1e-12)
    log_alpha = math.log(0.5 * max(D - 1.0, 1.0) / short)
    trust = 0.5 * count * variance
    for d in range(D):
        own = max(log_alpha + sums[d] / count - log_within, -20.0)
        y[d] = (trust * own + median[d] + 0.5 * variance) / (trust + 1.0)


@_jit
def _climb(count, sums, median, variance, y, s):
    """Maximise `_value` over y and s (D,), in and out, by Newton steps that are halved while they lower it; the value."""
    D = y.size
    step = np.empty(D)
    q = np.empty(D)
    further = np.empty(D)
    wider = np.empty(D)
    value = _value(count, sums, y, s, median, variance)
    for _ in range(_MOST_STEPS):
        gain = _newton(count, sums, y, s, median, variance, step, q)
        size = 1.0
        reached = -np.inf
        for _ in range(_HALVINGS):
            for d in range(D):
                further[d] = y[d] + size * step[d]
            _spreads(count, further, median, variance, wider)
            reached = _value(count, sums, further, wider, median, variance)
            if reached >= value - _ROUNDING * abs(value):
                break
            size *= 0.5
        if not reached >= value - _ROUNDING * abs(value):
            break
        put(further, y)
        put(wider, s)
        value = reached
        if gain <= _SETTLED * (1.0 + count):
            break
    return value


@_jit
def best_shapes(counts, sums, median, variance, y, s, values):
    """Maximise `objective` for each cluster.

    counts : (K,) in;  sums : (K, D) in
    median : (D,) of log alpha under the prior, in;  variance : of log alpha under the prior, in
    y : (K, D) out: log E[alpha];  s : (K, D) out: variances of log alpha;  values : (K,) out
    """
    for k in range(counts.size):
        if counts[k] > 0.0:
            _begin(counts[k], sums[k], median, variance, y[k])
            _spreads(counts[k], y[k], median, variance, s[k])
            values[k] = _climb(counts[k], sums[k], median, variance, y[k], s[k])
        else:
            for d in range(median.size):
                y[k, d] = median[d] + 0.5 * variance
                s[k, d] = variance
            values[k] = 0.0


def log_partition(alpha: Array) -> Array:
    """A(alpha) = sum_d log Gamma(alpha_d) - log Gamma(sum_d alpha_d) over the last axis."""
    return np.asarray(gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1)))


def objective(counts: Array, sums: Array, median: Array, variance: float, y: Array, s: Array) -> Array:
    """What `best_shapes` maximises, (K,): the bound on the log marginal of each cluster, with m = exp(y) = E[alpha].

    sums . m - count (A(m) + sum_d (m_d + 1) s_d / 2) - KL[Normal(y - s / 2, s) || Normal(median, variance)]
    """
    m = np.exp(y)
    partition = log_partition(m) + 0.5 * ((m + 1.0) * s).sum(axis=1)
    away = y - 0.5 * s - median
    cost = 0.5 * (away**2 / variance + s / variance - 1.0 - np.log(s / variance)).sum(axis=1)
    return np.asarray((sums * m).sum(axis=1) - counts * partition - cost)
