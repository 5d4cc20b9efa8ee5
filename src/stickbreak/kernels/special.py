"""Special functions for compiled loops, where scipy's cannot be called."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit

_SHIFT = 8
_FAR = 10.0  # the least number for which `rise` uses its series
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_LEAST_PSI = -1e150  # the least psi that is inverted: the derivative there is its square
_EULER = 0.5772156649015329  # -psi(1)
_HUGE = 1e25  # the tenth power of a count up to this does not overflow


@_jit
def digamma(x):
    """psi(x) for x > 0, by recurrence to x + 8 and the asymptotic series."""
    total = 0.0
    while x < _SHIFT:
        total -= 1.0 / x
        x += 1.0
    i = 1.0 / (x * x)
    series = i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i * (1 / 132 - i * 691 / 32760)))))
    return total + math.log(x) - 0.5 / x - series


@_jit
def trigamma_times(x):
    """X psi'(x) - 1 for x > 0, by the same recurrence and series."""
    total = 0.0
    y = x
    while y < _SHIFT:
        total += 1.0 / (y * y)
        y += 1.0
    i = 1.0 / (y * y)
    series = i * (1 / 6 - i * (1 / 30 - i * (1 / 42 - i * (1 / 30 - i * (5 / 66 - i * 691 / 2730)))))
    rest = (0.5 / y + series) / y  # psi'(y) - 1 / y
    return x * rest if x >= _SHIFT else x * (total + rest + 1.0 / y) - 1.0


@_jit
def inverse_digamma(y):
    """The x with psi(x) = y, by Newton steps (Minka 2000, appendix C); 1e-150 where x is smaller."""
    y = max(y, _LEAST_PSI)
    x = math.exp(min(y, 700.0)) + 0.5 if y >= -2.22 else -1.0 / (y + _EULER)
    for _ in range(4):
        x -= (digamma(x) - y) * x / (trigamma_times(x) + 1.0)
    return x


@_jit
def log_gamma(x):
    """Log Gamma(x) and psi(x) for x > 0, by recurrence to 10 and the asymptotic series."""
    product = 1.0
    slope = 0.0
    while x < _FAR:
        slope = slope * x + product
        product *= x
        x += 1.0
    i = 1.0 / x
    j = i * i
    log = math.log(x)
    above = 1 / 12 - j * (1 / 360 - j * (1 / 1260 - j * (1 / 1680 - j * (1 / 1188 - j * 691 / 360360))))
    series = j * (1 / 12 - j * (1 / 120 - j * (1 / 252 - j * (1 / 240 - j * (1 / 132 - j * 691 / 32760)))))
    value = (x - 0.5) * log - x + _HALF_LOG_2_PI + above * i
    psi = log - 0.5 * i - series
    if product != 1.0:
        value -= math.log(product)
        psi -= slope / product
    return value, psi


@_jit
def rise(count, prior):
    """Log Gamma(prior + count) - log Gamma(prior), and its derivative by the prior, psi(prior + count) - psi(prior).

    Neither is a difference of large numbers: from 10 on the differences of the asymptotic series have a closed form, and
    smaller priors are raised to 10 by recurrence.

    count : >= 0;  prior : > 0
    """
    if count == 0.0:
        return 0.0, 0.0
    if count > _HUGE and prior < _FAR:  # the two terms differ so much that nothing cancels
        return math.lgamma(prior + count) - math.lgamma(prior), digamma(prior + count) - digamma(prior)
    value = 0.0
    slope = 0.0
    if prior < _FAR:
        above, by_above, below, by_below = 1.0, 0.0, 1.0, 0.0  # products of prior + count and of prior, and derivatives
        while prior < _FAR and prior <= count:
            total = prior + count
            by_above = by_above * total + above
            above = above * total
            by_below = by_below * prior + below
            below = below * prior
            prior += 1.0
        if by_above > 0.0:
            value -= math.log(above) - math.log(below)
            slope += by_below / below - by_above / above
        growth, by_growth = 0.0, 0.0  # the product of 1 + count / prior, less one, and its derivative by -prior
        while prior < _FAR:
            inverse = 1.0 / prior
            share = count * inverse
            by_growth += share * (by_growth + inverse + growth * inverse)
            growth += share + growth * share
            prior += 1.0
        slope += by_growth / (1.0 + growth)
        value -= math.log1p(growth)
    total = prior + count
    i = 1.0 / prior
    j = 1.0 / total
    log = math.log1p(count / prior)
    gap = count * i * j  # i - j
    a = i * i
    b = j * j
    f1, g1 = i + j, a + b  # f_n = i^n + i^(n-1) j + ... + j^n;  g_n: the same of the squares
    f2 = i * f1 + b
    g2 = a * g1 + b * b
    b2 = b * b
    f4 = a * f2 + b * (i * j + b)
    g3 = a * g2 + b * b2
    b3 = b * b2
    f6 = a * f4 + b2 * (i * j + b)
    g4 = a * g3 + b2 * b2
    f8 = a * f6 + b3 * (i * j + b)
    g5 = a * g4 + b2 * b3
    f10 = a * f8 + b2 * b2 * (i * j + b)
    rest = 1 / 12 - f2 * (1 / 360) + f4 * (1 / 1260) - f6 * (1 / 1680) + f8 * (1 / 1188) - f10 * (691 / 360360)
    value += (prior - 0.5) * log + count * (math.log(total) - 1.0) - gap * rest
    rest = 1 / 12 - g1 * (1 / 120) + g2 * (1 / 252) - g3 * (1 / 240) + g4 * (1 / 132) - g5 * (691 / 32760)
    slope += log + gap * (0.5 + f1 * rest)
    return value, slope


@_jit
def rises(counts, priors, out):
    """Log Gamma(prior + count) - log Gamma(prior) of each element; all (n,), ``out`` out."""
    for i in range(counts.size):
        out[i] = rise(counts[i], priors[i])[0]


def log_rise(count: Any, prior: Any) -> NDArray[np.float64]:
    """Log Gamma(prior + count) - log Gamma(prior), element by element, without a difference of large numbers."""
    counts, priors = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(prior, dtype=np.float64))
    out = np.empty(counts.size)
    rises(counts.flatten(), priors.flatten(), out)  # copies: compiled loops take no broadcast arrays
    return out.reshape(counts.shape)


@_jit
def beyond_stirling(x):
    """What log Gamma(x) and psi(x) are beyond (x - 1/2) log x - x + log(2 pi) / 2 and log x, for x > 0."""
    product = 1.0
    slope = 0.0
    y = x
    while y < _FAR:
        slope = slope * y + product
        product *= y
        y += 1.0
    i = 1.0 / (y * y)
    above = 1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i * (1 / 1188 - i * 691 / 360360))))
    series = i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i * (1 / 132 - i * 691 / 32760)))))
    log_gamma = above / y
    psi = -0.5 / y - series
    if y > x:
        log_x = math.log(x)
        log_y = math.log(y)
        log_gamma += (y - 0.5) * log_y - (x - 0.5) * log_x - (y - x) - math.log(product)
        psi += log_y - log_x - slope / product
    return log_gamma, psi
